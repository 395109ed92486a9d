"""Call a function with retries, through a breaker."""

from .backoff import Backoff


class Unavailable(Exception):
    """The call was not made, or failed each time."""


class Client:
    """Args:
    breaker: tells whether the service may be called.
    backoff: waits between attempts.
    sleep: function that waits for a number of seconds.
    """

    def __init__(self, breaker, backoff=None, sleep=None):
        self._breaker = breaker
        self._backoff = Backoff() if backoff is None else backoff
        self._sleep = (lambda seconds: None) if sleep is None else sleep
        self.attempts = 0

    def call(self, function, *args):
        """Return what `function` returns; OSError is retried, everything else is passed on.

        Raises:
            Unavailable: the breaker refuses, or all attempts failed.
        """
        waits = self._backoff.waits()
        while self._breaker.allows():
            self.attempts += 1
            try:
                result = function(*args)
            except OSError as error:
                self._breaker.failed()
                wait = next(waits, None)
                if wait is None:
                    raise Unavailable("all attempts failed") from error
                self._sleep(wait)
            else:
                self._breaker.succeeded()
                return result
        raise Unavailable("the breaker is " + self._breaker.state)
