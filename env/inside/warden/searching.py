"""Searching the lines of text files with a regular expression."""

import errno
import re
import signal

from .files import read_regular

FILE_LIMIT = 8 << 20
LINE_LIMIT = 400
TIME_LIMIT_S = 20
# What has a different meaning when lines are searched one by one than when a whole text is.
LINE_BOUND = re.compile(r"\\[AZ]|\(\?|\r")


def grep(files, pattern, path, ignore, limit, case_sensitive):
    """At most `limit` matches as (path, line, text), and whether there were more.

    Binary files (a NUL byte in the first 8 KiB) and files above 8 MiB are passed over. Raises re.error, OSError, and
    TimeoutError for an expression that takes too long.
    """
    flags = 0 if case_sensitive else re.IGNORECASE
    expression = re.compile(pattern, flags)
    filter_expression = None if LINE_BOUND.search(pattern) else re.compile(pattern, flags | re.MULTILINE)
    matches = []
    with _TimeLimit(TIME_LIMIT_S):
        for relative, real in files.files_below(path, ignore):
            text = _text_of(real)
            if text is None or (filter_expression and "\r" not in text and not filter_expression.search(text)):
                continue
            for number, line in enumerate(text.split("\n"), 1):
                if expression.search(line.rstrip("\r")):
                    if len(matches) == limit:
                        return matches, True
                    matches.append((relative, number, line.rstrip("\r")[:LINE_LIMIT]))
    return matches, False


def _text_of(path):
    try:
        data = read_regular(path, FILE_LIMIT)
    except OSError:
        return None
    if b"\0" in data[:8192]:
        return None
    return data.decode("utf-8", "replace")


class _TimeLimit:
    """Raises TimeoutError in the block when it takes too long; `re` looks at signals while it works."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self._stop)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def _stop(self, _number, _frame):
        raise TimeoutError(errno.ETIMEDOUT, "the search took longer than {} s".format(self.seconds))
