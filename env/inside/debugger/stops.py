"""Where a stopped program is, and how far it should go."""

import dis
import threading
import types
from traceback import walk_stack, walk_tb

from ..values import short_repr

FRAME_LIMIT, LOCALS_LIMIT = 30, 40
"""How many frames of a stop, and how many variables of a frame, are shown."""
END_OF_ITERATION = (StopIteration, StopAsyncIteration, GeneratorExit)
# Flags of code objects, as in `inspect`, which takes long to import.
GENERATOR, COROUTINE, ITERABLE_COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
RESUMABLE = GENERATOR | COROUTINE | ASYNC_GENERATOR
"""Functions whose calls can be left and resumed."""
_YIELDS = ("YIELD_VALUE", "YIELD_FROM", "SEND")
_get_ident = threading.get_ident


class Stop:
    """A place where the program is stopped: the frames to look at, innermost last, and the chosen one."""

    def __init__(self, files, reason, frames, **facts):
        self.files = files
        self.reason = reason
        self.frames = frames[-FRAME_LIMIT:]
        self.hidden = len(frames) - len(self.frames)
        self.index = len(self.frames) - 1
        self.facts = {key: value for key, value in facts.items() if value is not None}
        self._locals = {}
        self._described = None

    @property
    def frame(self):
        """The chosen frame."""
        return self.frames[self.index][0]

    @property
    def line(self):
        """The line the chosen frame is at."""
        return self.frames[self.index][1]

    @property
    def finished(self):
        """Whether the frames have ended, so that nothing can be run in them step by step."""
        return self.reason == "post-mortem"

    def locals(self):
        """The chosen frame's variables; one dictionary per stop, since asking again would undo assignments."""
        if self.index not in self._locals:
            self._locals[self.index] = self.frame.f_locals
        return self._locals[self.index]

    def as_data(self):
        """The stop as the host reads it."""
        data = self.frame_chosen()
        data.update(self.facts, reason=self.reason)
        return data

    def frame_chosen(self):
        """The chosen frame as the host reads it, without why the program stopped."""
        frame, line = self.frames[self.index]
        place = {"path": self.files.shown(frame.f_code.co_filename), "line": line, "function": frame.f_code.co_name}
        return dict(place, reason="frame", up=len(self.frames) - 1 - self.index, source=self.around(2))

    def around(self, margin):
        """Numbered lines around the current one."""
        lines = self.files.source(self.frame.f_code.co_filename)
        first = max(1, self.line - margin)
        return [[number, lines[number - 1]] for number in range(first, min(len(lines), self.line + margin) + 1)]

    def frames_as_data(self):
        """All frames. The command `locals` adds the variables of those that it has shown, as `local_values`."""
        if self._described is None:
            self._described = [self._frame_as_data(frame, line) for frame, line in self.frames]
        return self._described

    def _frame_as_data(self, frame, line):
        filename = frame.f_code.co_filename
        name = self.files.shown(filename)
        return {"path": name, "line": line, "function": frame.f_code.co_name, "code": self.files.line(filename, line)}

    def variables(self):
        """Names and short reprs of the chosen frame's variables, without modules, functions and classes."""
        descriptions = {}
        for name, value in list(self.locals().items()):
            if name.startswith(("__", "@")) or isinstance(value, DULL):
                continue
            if len(descriptions) == LOCALS_LIMIT:
                break
            descriptions[name] = short_repr(value)
        return descriptions


DULL = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)
"""Kinds of values that say nothing about a run."""


def failing_frames(files, value, trace):
    """The workspace frames of an exception, or of the first of its causes that has any, and which one it is."""
    seen = []
    while value is not None and all(value is not each for each in seen):
        frames = [each for each in walk_tb(trace) if files.name(each[0].f_code.co_filename)]
        if frames:
            return frames, value
        seen.append(value)
        value = value.__cause__ or value.__context__
        trace = value.__traceback__ if value is not None else None
    return [], None


def stack_of(files, frame):
    """Workspace frames up to `frame`, outermost first; `frame` alone where there are none."""
    frames = [each for each, _ in walk_stack(frame) if files.name(each.f_code.co_filename)]
    return [(each, line_of(each)) for each in frames[::-1] or [frame]]


def caller_of(frame, is_wanted, depth=None):
    """The nearest frame that called `frame` and whose file is wanted; None if there is none.

    Args:
        frame: the one that was called.
        is_wanted: takes a file's name.
        depth: how many frames are searched; None for all.
    """
    frame = frame.f_back
    while frame is not None and not is_wanted(frame.f_code.co_filename):
        depth = depth and depth - 1
        frame = None if depth == 0 else frame.f_back
    return frame


def line_of(frame):
    """The frame's line; its first line if the interpreter knows none."""
    return frame.f_lineno or frame.f_code.co_firstlineno


def is_pause(frame):
    """Whether the return event of a generator or coroutine is only a yield."""
    code = frame.f_code
    if not code.co_flags & RESUMABLE or frame.f_lasti < 0:
        return False
    return "RETURN" not in dis.opname[code.co_code[frame.f_lasti]]


def is_raising(frame, line):
    """Whether a frame in which an exception was raised ends with it.

    Args:
        frame: at a return event without a value.
        line: the last line that has begun since, as in `finally`, `with` or `except`; None for none. An exception that
            propagates after it takes the frame back to where the exception came from.
    """
    operation = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    if line is None:
        return True
    return "RETURN" not in operation and (operation not in _YIELDS or frame.f_lineno != line)


def waits(frame, value):
    """Whether a frame that pauses is waiting for something, rather than handing a value to its caller."""
    flags = frame.f_code.co_flags
    if flags & (COROUTINE | ITERABLE_COROUTINE):
        return True
    # What an asynchronous generator yields comes wrapped; what it awaits does not.
    return bool(flags & ASYNC_GENERATOR and type(value).__name__ != "async_generator_wrapped_value")


class Plan:
    """How far a step goes: `kind` is step, next, return or until; `frame` is the frame it is about."""

    def __init__(self, kind, frame=None, line=0):
        self.kind = kind
        self.frame = frame
        self.line = line
        self.thread = _get_ident()
