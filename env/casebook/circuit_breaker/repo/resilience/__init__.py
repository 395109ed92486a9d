"""Call services that fail now and then: backoff, circuit breaker, and a client that uses both."""
