"""Statistics over the last values of a stream, and alarms made of them."""
