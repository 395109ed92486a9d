"""Commands that look at the stopped program: frames, source and values."""

import contextlib
import inspect
import io
import pprint
import sys
import threading

from ..functions import code_lines, code_objects, parameters
from ..values import describe_exception, full_repr, short_repr, shorten, text_of
from .requests import CommandError, number

NOT_STARTED = "the program is not started: set breakpoints, then c"
_get_ident = threading.get_ident


class Inspection:
    """Commands are methods `do_NAME(rest of the line)` that return what to say. They raise CommandError."""

    def __init__(self, debugger):
        self.debugger = debugger

    @property
    def stop(self):
        """Where the program is stopped; None before it is started."""
        return self.debugger.stop

    @property
    def files(self):
        """The workspace's files."""
        return self.debugger.files

    @property
    def requests(self):
        """The request in hand; what commands show goes into its results."""
        return self.debugger.requests

    # - commands about frames

    def _stopped(self):
        if self.stop is None:
            raise CommandError(NOT_STARTED)
        return self.stop

    def do_where(self, rest):
        """The workspace frames, outermost first; `>` marks the chosen one."""
        stop = self._stopped()
        lines = ["[... {} outer frames ...]".format(stop.hidden)] if stop.hidden else []
        for index, frame in enumerate(stop.frames_as_data()):
            mark = ">" if index == stop.index else " "
            lines.append("{} {path}:{line} in {function}: {code}".format(mark, **frame))
        return "\n".join(lines)

    def do_up(self, rest):
        """Chooses the frame that called this one."""
        return self._choose(self._stopped().index - (number(rest, "up COUNT") if rest else 1), "oldest frame")

    def do_down(self, rest):
        """Chooses the frame that this one called."""
        return self._choose(self._stopped().index + (number(rest, "down COUNT") if rest else 1), "newest frame")

    def _choose(self, index, edge):
        stop = self._stopped()
        last = len(stop.frames) - 1
        if not 0 <= index <= last and stop.index == min(max(index, 0), last):
            raise CommandError(edge)
        stop.index = min(max(index, 0), last)
        self.requests.note_result(stop=stop.frame_chosen())
        return ""

    def do_locals(self, rest):
        """The variables of this frame."""
        stop = self._stopped()
        descriptions = self._evaluate(stop.variables)
        stop.frames_as_data()[stop.index]["local_values"] = descriptions
        return self._values(descriptions.items()) or "no variables"

    def do_args(self, rest):
        """The arguments of this function."""
        stop = self._stopped()
        values = stop.locals()
        names = [name for name in parameters(stop.frame.f_code) if name in values]
        descriptions = self._evaluate(lambda: [(name, short_repr(values[name])) for name in names])
        return self._values(descriptions) or "no arguments"

    def _values(self, descriptions):
        """One line per value; the values are also put into the result."""
        values = list(descriptions)
        self.requests.note_result(values=[[name, shorten(value)] for name, value in values])
        return "\n".join("{} = {}".format(*each) for each in values)

    def do_list(self, rest):
        """Lines around the current one, or `list FIRST, LAST`."""
        stop = self._stopped()
        lines = self.files.source(stop.frame.f_code.co_filename)
        if rest and rest != ".":
            numbers = [number(part, "list FIRST, LAST") for part in rest.split(",")]
            first = max(1, numbers[0])
            last = numbers[-1] if len(numbers) > 1 else first + 10
        else:
            first, last = max(1, stop.line - 5), stop.line + 5
        return self._numbered(lines, first, min(last, len(lines)))

    def do_longlist(self, rest):
        """The whole function."""
        stop = self._stopped()
        lines = self.files.source(stop.frame.f_code.co_filename)
        code = stop.frame.f_code
        inside = [line for each in code_objects(code) for line in code_lines(each)]
        first = code.co_firstlineno if code.co_name != "<module>" else 1
        return self._numbered(lines, first, min(len(lines), max([*inside, stop.line])))

    def _numbered(self, lines, first, last):
        current = self.stop.line
        numbers = range(first, last + 1)
        return "\n".join("{}{} {}".format("->" if n == current else "  ", n, lines[n - 1]) for n in numbers)

    def do_source(self, rest):
        """The source of an object."""
        value = self._value(rest)
        try:
            return "".join(inspect.getsourcelines(value)[0]).rstrip()
        except (OSError, TypeError) as error:
            raise CommandError(str(error)) from None

    # - commands about values

    def _evaluate(self, function):
        """Runs code of the program while it is stopped; SIGINT ends it."""
        self.debugger.evaluating = _get_ident()
        try:
            return function()
        finally:
            self.debugger.evaluating = None

    def _value(self, expression):
        """The value of an expression in the chosen frame. Raises CommandError."""
        stop = self._stopped()
        if not expression:
            raise CommandError("give an expression")
        names = dict(stop.frame.f_globals)
        names.update(stop.locals())
        names.update(__exception__=self.debugger.last_exception)
        if stop.facts.get("value") is not None and "__return__" not in names:
            names["__return__"] = stop.facts["value"]
        try:
            return self._evaluate(lambda: eval(expression, names))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the agent's expression may raise anything
            raise CommandError(describe_exception(type(error), error)) from None

    def _shown(self, function, expression):
        try:
            return self._evaluate(function)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the value's own repr may raise anything
            text = describe_exception(type(error), error)
            raise CommandError("{} cannot be printed: {}".format(expression, text)) from None

    def do_p(self, rest):
        """The value of an expression."""
        value = self._value(rest)
        return self._values([(rest, self._shown(lambda: full_repr(value), rest))])

    def do_pp(self, rest):
        """The value of an expression, pretty-printed."""
        value = self._value(rest)
        text = self._shown(lambda: text_of(value, lambda each: pprint.pformat(each, width=100)), rest)
        return "{} ={}{}".format(rest, "\n" if "\n" in text else " ", text)

    def do_whatis(self, rest):
        """The type of an expression."""
        value = self._value(rest)
        kind = type(value)
        name = kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__
        return "{}: {}".format(rest, name)

    def do_retval(self, rest):
        """The value this function returns."""
        if self._stopped().reason != "return":
            raise CommandError("not at a return")
        return "returns " + self.stop.facts["value"]

    def do_exception(self, rest):
        """The last exception seen, with what caused it."""
        if self.debugger.last_exception is None:
            raise CommandError("no exception has been seen yet")
        lines, error = [], self.debugger.last_exception
        while error is not None and len(lines) < 6:
            lines.append(describe_exception(type(error), error))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\ncaused by ".join(lines)

    def execute(self, source):
        """Runs a statement in the chosen frame; the value of an expression is printed."""
        stop = self._stopped()
        values = stop.locals()
        frame_globals = stop.frame.f_globals
        printed = io.StringIO()
        names = dict(frame_globals)
        names.update(values)
        before = dict(names)
        saved = sys.stdout, sys.displayhook
        try:
            code = compile(source + "\n", "<command>", "single")
            sys.stdout = printed
            sys.displayhook = lambda value: None if value is None else printed.write(text_of(value, repr) + "\n")
            self._evaluate(lambda: exec(code, names))  # noqa: S102 - what a debugger is for
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the agent's code may raise anything
            raise CommandError(printed.getvalue() + describe_exception(type(error), error)) from None
        finally:
            sys.stdout, sys.displayhook = saved
        for name, value in names.items():
            if name != "__builtins__" and (name not in before or before[name] is not value):
                values[name] = value
        deleted = [name for name in values if name not in names]
        if deleted and not isinstance(values, dict):
            raise CommandError(
                "since Python 3.13, no debugger can delete a function's variables: " + ", ".join(deleted)
            )
        for name in deleted:
            del values[name]
        _write_back(stop.frame, values)
        return printed.getvalue().rstrip("\n")


def _write_back(frame, values):
    """Makes a running function see variables that were assigned in its `f_locals`; Python 3.13 does so by itself."""
    if sys.version_info < (3, 13):
        with contextlib.suppress(ImportError, AttributeError):
            import ctypes

            assigned = dict(values)
            # Python 3.11 and 3.12 write back only once, until they are asked for the variables again.
            current = frame.f_locals
            current.update(assigned)
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
            for name in set(current) - set(assigned):
                del current[name]
