"""Watches one run of the tests at chosen places, and writes the values of expressions there.

A probe is `{"event": "line" | "return" | "failure", "path", "line", "time", "test", "up", "expression"}`, see
`StopProbe` in gumshoe.records. Every test that reaches the place is watched, so that failing and passing tests can be
compared. One JSON line for each goes to a file as soon as it is known: `{"probe": index, "event", "test", "time",
"values"}` with the value as the debugger shows it, short and in full; `error` instead if there is no value. A probe
that can never be met has `problem`. One that may not have been met because tracing ended in the middle of a test has
`lost`: the interpreter ends it where a recursion is too deep to call a trace function.

Expressions that may change something, namely those with calls, are evaluated in forks.
"""

import ast
import collections
import json
import os
import sys
import threading

from ..debugger.breakpoints import Breakpoints
from ..debugger.files import WorkspaceFiles
from ..debugger.requests import CommandError
from ..debugger.stops import caller_of, failing_frames
from ..programs.channel import append_lines
from ..programs.program import flush_output
from ..values import describe_exception, full_repr, short_repr, shorten
from .forks import start_fork

MOST_LOOKS = 100
"""How often one probe looks in one test, in addition to the time that it is about."""
MOST_FORKS = 5
"""The same for expressions that are evaluated in forks."""
FORK_S = 2.0
"""How long an expression in a fork may take."""
_CHANGING = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, getattr(ast, "NamedExpr", ast.Await))


Moment = collections.namedtuple("Moment", ("event", "test", "time"))
"""When something came by the place of a probe: what it was, in which test, and for which time in it, from 1."""


class Probe:
    """One probe, compiled. Raises CommandError."""

    def __init__(self, index, facts, breakpoints):
        self.index = index
        self.event = facts["event"]
        self.time = facts["time"]
        self.test = facts["test"]
        self.up = facts["up"]
        self.expression = facts["expression"]
        self.place = _place(self.event, facts["path"], facts["line"], breakpoints)
        self.in_fork = False
        if self.expression not in ("", "__exception__", "__return__"):
            try:
                tree = ast.parse(self.expression.strip(), mode="eval")
                self.code = compile(tree, "<probe>", "eval")
            except (SyntaxError, ValueError) as error:
                raise CommandError("{}: {}".format(self.expression, error)) from None
            self.in_fork = any(isinstance(node, _CHANGING) for node in ast.walk(tree))

    def wants(self, event):
        """Whether it looks at such an event; a probe about a failure also looks at the same place in other tests."""
        return event == self.event or (event == "line" and self.event == "failure")

    def is_about(self, moment):
        """Whether this is the very moment that the probe is about."""
        is_its_test = self.test in (None, moment.test or "")
        return moment.event == self.event and is_its_test and self.time in (None, moment.time)


def _place(event, path, line, breakpoints):
    """Where the probe looks. Raises CommandError."""
    try:
        found = breakpoints.add(path, line)
    except CommandError:
        if event != "failure":
            raise
        # A doctest of a text file fails where no breakpoint can be.
        return breakpoints.files.resolve(path), line
    return found.path, found.line


class ProbeDebugger:
    """Stands in for a debugger: it never stops, it only looks.

    Args:
        probes: as in the request.
        record: the file to write to.
    """

    def __init__(self, probes, record):
        self.files = WorkspaceFiles(os.getcwd())
        self.test = None
        self.pid = os.getpid()
        self._record = record
        self._breakpoints = Breakpoints(self.files)
        self._probes = []
        self._by_place = {}
        self._is_engaged = False
        for index, facts in enumerate(probes):
            self._add(index, facts)
        self._begin_test()

    def _add(self, index, facts):
        try:
            probe = Probe(index, facts, self._breakpoints)
        except CommandError as error:
            self._write({"probe": index, "problem": str(error)})
            return
        self._probes.append(probe)
        self._by_place.setdefault(probe.place, []).append(probe)

    # - what the hooks tell

    def engage(self):
        """Begins to watch."""
        self._is_engaged = True
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def begin_test(self, name):
        """A test begins; with None, one has ended."""
        if self._is_engaged and sys.gettrace() != self._on_call:
            for probe in self._probes:
                self._write({"probe": probe.index, "test": self.test, "lost": True})
            self.engage()
        self.test = name
        self._begin_test()

    def _begin_test(self):
        self._counts = {}
        self._looks = {}
        self._known = set()

    def on_breakpoint_call(self, *args, **kwargs):
        """`breakpoint()` does nothing."""

    def post_mortem(self, kind, value, trace, test=None):
        """A test, or the program, has failed."""
        if os.getpid() != self.pid:
            return
        frames, culprit = failing_frames(self.files, value, trace)
        words = describe_exception(type(culprit) if culprit is not value else kind, culprit)
        place = (self.files.name(frames[-1][0].f_code.co_filename), frames[-1][1]) if frames else None
        for probe in self._probes:
            if probe.event == "failure" and place == probe.place:
                if probe.expression == "__exception__":
                    self._tell(probe, Moment("failure", test, 1), {"values": [words]})
                elif probe.up < len(frames):
                    self._look(probe, Moment("failure", test, 1), frames[-1 - probe.up][0])

    # - tracing

    def _on_call(self, frame, event, arg):
        return self._on_event if self._breakpoints.wants(frame.f_code) else None

    def _on_event(self, frame, event, arg):
        if event in ("line", "return") and os.getpid() == self.pid:
            place = (self.files.name(frame.f_code.co_filename), frame.f_lineno)
            there = self._by_place.get(place)
            if there:
                time_there = self._counts[event, place] = self._counts.get((event, place), 0) + 1
                for probe in there:
                    if probe.wants(event):
                        self._look(probe, Moment(event, self.test, time_there), frame, arg)
        return self._on_event

    # - looking

    def _look(self, probe, moment, frame, returned=None):
        """Notes the value of a probe's expression in this frame, or in one above it."""
        key = probe.index, moment.event
        looks = self._looks[key] = self._looks.get(key, 0) + 1
        is_asked_for = probe.time and probe.is_about(moment)
        if looks > (MOST_FORKS if probe.in_fork else MOST_LOOKS) and not is_asked_for:
            return
        if probe.expression in ("", "__exception__"):
            self._tell(probe, moment, {"values": [""]})
            return
        if probe.expression == "__return__":
            self._tell(probe, moment, {"values": [short_repr(returned)]})
            return
        for _ in range(probe.up):
            frame = frame and caller_of(frame, self.files.name)
        if frame is None:
            self._tell(probe, moment, {"error": "there is no frame of the project so far up"})
        elif probe.in_fork:
            self._look_in_fork(probe, moment, frame)
        else:
            self._tell(probe, moment, _evaluate(probe.code, frame))

    def _look_in_fork(self, probe, moment, frame):
        flush_output()
        fork = start_fork()
        if fork is None:
            code = 1
            try:
                silent = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(silent, descriptor)
                self._tell(probe, moment, _evaluate(probe.code, frame))
                code = 0
            finally:
                os._exit(code)
        code = fork.wait(fork.began + FORK_S)
        if code is None:
            self._tell(probe, moment, {"error": "it took too long"})
        elif code:
            self._tell(probe, moment, {"error": "its process ended with exit code {}".format(code)})
        fork.kill()

    # - telling

    def _tell(self, probe, moment, found):
        """Writes what was found, unless the same was found before in this test and the probe asks for another time."""
        known = (probe.index, moment.event, moment.test, json.dumps(found, sort_keys=True))
        if known in self._known and not (probe.time and probe.is_about(moment)):
            return
        self._known.add(known)
        self._write(dict(found, probe=probe.index, event=moment.event, test=moment.test, time=moment.time))

    def _write(self, facts):
        append_lines(self._record, [facts])


def _evaluate(code, frame):
    """The value of an expression in a frame, or why it has none."""
    names = dict(frame.f_globals)
    names.update(frame.f_locals)
    try:
        value = eval(code, names)
        short, whole = short_repr(value), shorten(full_repr(value))
    except BaseException as error:  # the expression, and the value's own repr, may raise anything
        return {"error": describe_exception(type(error), error)}
    return {"values": [short] if short == whole else [short, whole]}
