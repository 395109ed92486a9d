"""Traces the program, stops it, and answers requests while it is stopped. Standard library only, Python 3.6 to 3.14."""

import os
import sys
import threading

from gumshoe_breakpoints import Breakpoints
from gumshoe_checkpoints import Checkpoints, flush_output
from gumshoe_command_line import lines_of
from gumshoe_commands import Commands
from gumshoe_files import Files
from gumshoe_stops import Plan, Stop, failing_frames, is_pause, line_of
from gumshoe_values import CommandError, describe_exception, short_repr

_get_ident, _stat = threading.get_ident, os.stat
_current_frame = vars(sys)["_getframe"]
_END_OF_ITERATION = (StopIteration, StopAsyncIteration, GeneratorExit)


class Debugger:
    """The debugger of this process.

    `state` is ready (the program is not started), running, stopped or exited. A stop answers requests in the thread
    that stopped, until a command lets it go on; other threads that come to a stop meanwhile wait for their turn.
    """

    def __init__(self, channel, root, deferred=False):
        self.channel = channel
        self.deferred = deferred
        self.files = Files(root)
        self.breakpoints = Breakpoints(self.files)
        self.checkpoints = Checkpoints(self._tell_gone)
        self.commands = Commands(self)
        self.state = "ready"
        self.stop = None
        self.plan = None
        self.evaluating = None
        self.dead = False
        self.request = None
        self.queue = []
        self.results = []
        self.extra = {}
        self.last_exception = None
        self.test = None
        self._counts = {}
        self._turn = threading.RLock()
        self._raising = None
        self._at_prompt = False
        self._seen = 0, {}

    # - tracing

    def on_call(self, frame, event, arg):
        """The global trace function: decides whether a frame that begins is followed line by line."""
        if self.dead:
            return None
        code = frame.f_code
        if self.breakpoints.wants(code):
            return self.on_event
        plan = self.plan
        if (
            plan is not None
            and plan.kind == "step"
            and plan.thread == _get_ident()
            and self.files.name(code.co_filename)
        ):
            return self.on_event
        return None

    def on_event(self, frame, event, arg):
        """The local trace function of frames that are followed.

        Returns None, which leaves the frame's trace function as it is: `resume` may just have taken it away.
        """
        if self.dead or self.state == "exited":
            return
        if event != "exception":
            self._count(frame, event)
        if event == "line":
            self._raising = None
            self._on_line(frame)
        elif event == "return":
            self._on_return(frame, arg)
        elif event == "exception":
            self._on_exception(frame, *arg)

    # - counting

    def begin_test(self, name):
        """A test begins; with None, one has ended. Stops say which test runs, and how often it was there."""
        self.test = name
        self._begin_span()

    def _begin_span(self):
        self._counts = {}
        self.breakpoints.span += 1

    def _count(self, frame, event):
        key = (frame.f_code.co_filename, frame.f_lineno, event)
        self._counts[key] = self._counts.get(key, 0) + 1

    def _time(self, frame, event):
        """How often the test was at this line, this time included; None where it was not followed from the first."""
        if not self.breakpoints.follows_all(frame.f_code):
            return None
        return self._counts[frame.f_code.co_filename, frame.f_lineno, event]

    # - what plans want

    def _plan_for(self, frame):
        """The plan, where it is about this frame: it is the frame's own, or goes step by step through its thread."""
        plan = self.plan
        if plan is None or plan.thread != _get_ident() or not self.files.name(frame.f_code.co_filename):
            return None
        return plan if plan.kind == "step" or plan.frame is frame else None

    def _on_line(self, frame):
        hit, problem = self.breakpoints.hit(frame)
        if hit is not None:
            self.stop_at(frame, "breakpoint", breakpoint=hit.number, note=problem, time=self._time(frame, "line"))
            return
        plan = self._plan_for(frame)
        if plan is not None and plan.kind != "return" and frame.f_lineno >= plan.line:
            self.stop_at(frame, "step", time=self._time(frame, "line"))

    def _on_return(self, frame, value):
        plan = self._plan_for(frame)
        if plan is None:
            return
        if self._raising is frame:
            self._leave(frame)
        elif not is_pause(frame):
            self.stop_at(frame, "return", value=short_repr(value), time=self._time(frame, "return"))
        elif plan.kind == "step":
            self._leave(frame)

    def _on_exception(self, frame, kind, value, trace):
        plan = self._plan_for(frame)
        if plan is None or (issubclass(kind, _END_OF_ITERATION) and trace is None):
            return
        self._raising = frame
        if plan.kind in ("step", "next") and not issubclass(kind, _END_OF_ITERATION):
            self.last_exception = value
            self.stop_at(frame, "exception", exception=describe_exception(kind, value))

    def _leave(self, frame):
        """The plan's frame has ended: goes on in the nearest workspace frame that called it."""
        self.resume(Plan("next", self.caller(frame)))

    def caller(self, frame):
        """The nearest workspace frame that called `frame`, or None."""
        frame = frame.f_back
        while frame is not None and not self.files.name(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    # - going on

    def resume(self, plan):
        """Sets up tracing for the way to the next stop. A plan without a frame stops at any workspace line."""
        if plan is not None and plan.frame is None:
            plan.kind = "step"
        self.plan = plan
        if self.state == "ready":
            self._begin_span()
        self.state = "running"
        self._report_breakpoints()
        needed = not self.deferred and (plan is not None or bool(self.breakpoints))
        frame = _current_frame(1)
        while frame is not None:
            if frame.f_code.co_filename != __file__:
                frame.f_trace = self.on_event if needed and self._is_followed(frame) else None
            frame = frame.f_back
        self._trace(needed)

    def end_of_main(self):
        """Lets the program's other threads go on to their ends; one that is at a stop first has its turn."""
        with self._turn:
            self.resume(None)

    def _trace(self, needed):
        threading.settrace(self.on_call if needed else None)
        sys.settrace(self.on_call if needed else None)

    def engage(self):
        """Begins tracing that was put off while a test runner started, which runs none of the workspace's code."""
        if self.deferred:
            self.deferred = False
            if self.state == "running" and not self.dead:
                self._trace(self.plan is not None or bool(self.breakpoints))

    def _report_breakpoints(self):
        """Tells the host of changed breakpoints before the program goes on, since it may never come back."""
        if self.request is not None and self.breakpoints.unreported:
            self.breakpoints.unreported = False
            self.channel.send(
                {"id": self.request.get("id"), "interim": True, "breakpoints": self.breakpoints.as_data()}
            )

    def _is_followed(self, frame):
        return self.breakpoints.wants(frame.f_code) or self._plan_for(frame) is not None

    # - stopping

    def stack(self, frame):
        """Workspace frames up to `frame`, outermost first; `frame` alone where there are none."""
        found = []
        inner = frame
        while frame is not None:
            if self.files.name(frame.f_code.co_filename):
                found.append((frame, line_of(frame)))
            frame = frame.f_back
        return found[::-1] or [(inner, line_of(inner))]

    def stop_at(self, frame, reason, **facts):
        """Stops in a running frame."""
        self._interact(Stop(self.files, reason, self.stack(frame), test=self.test, **facts))

    def post_mortem(self, kind, value, trace, test=None):
        """Stops at the innermost workspace frame of a traceback, or of what caused the exception.

        Is called by the hooks into the test runners, and for exceptions that nothing caught.
        """
        if self.is_silent():
            return
        frames, culprit = failing_frames(self.files, value, trace)
        if not frames:
            return
        self.last_exception = value
        message = describe_exception(type(culprit) if culprit is not value else kind, culprit)
        self._interact(Stop(self.files, "post-mortem", frames, exception=message, test=test))

    def is_silent(self):
        """Whether nothing may stop here: in a child, before the start, and in code run by a command."""
        return self.dead or self.state in ("ready", "exited") or self.evaluating == _get_ident()

    def on_interrupt(self, number, frame):
        """The handler of SIGINT: stops the program where it is, or ends what a command runs."""
        if self.dead:
            raise KeyboardInterrupt
        if self.evaluating == _get_ident():
            raise KeyboardInterrupt
        if self.state == "running" and not self._at_prompt:
            self.stop_at(frame, "interrupt")

    def on_breakpoint_call(self, *args, **kwargs):
        """What `breakpoint()` and `pdb.set_trace()` do."""
        if not self.is_silent():
            self.stop_at(_current_frame(1), "breakpoint() call")

    # - answering

    def _interact(self, stop):
        """Answers requests until one of them lets the program go on."""
        with self._turn:
            sys.settrace(None)
            self.state, self.stop, self.plan = "stopped", stop, None
            self._seen = 0, {}
            if self.results:
                self.results[-1]["stop"] = stop.as_data()
            self.serve()
            self.stop = None

    def serve(self):
        """Runs queued commands, answers, and waits for more, until a command lets the program go on."""
        while True:
            while self.queue:
                line = self.queue.pop(0)
                result = {"command": line, "output": ""}
                self.results.append(result)
                if self.commands.run(line, result):
                    return
            self.answer()
            self.take_request()

    def take_request(self):
        """Waits for the next request and queues its commands."""
        self._at_prompt = True
        self.request = self.channel.receive()
        self.checkpoints.note(self.channel.nonce)
        self._at_prompt = False
        self.results = []
        stale = self._changed_files()
        if stale:
            # The host starts the program anew and gives it the same commands.
            self.queue = []
            self.extra = {"state": "stale", "changed": stale}
            return
        if "breakpoints" in self.request:
            self.breakpoints.replace_all(self.request["breakpoints"])
        try:
            self.queue = lines_of(self.request)
        except CommandError as error:
            self.queue = []
            self.results.append({"command": str(self.request.get("op")), "output": str(error), "failed": True})

    def answer(self, exit_code=None):
        """Answers the request in hand, if there is one."""
        if self.request is None:
            return
        flush_output()
        stop = self.stop
        reply = {"id": self.request.get("id"), "state": self.state, "results": self.results, "exit_code": exit_code}
        reply["stop"] = stop.as_data() if stop is not None else None
        reply["frames"] = stop.frames_as_data() if stop is not None else []
        reply["index"] = stop.index if stop is not None else None
        reply["breakpoints"] = self.breakpoints.as_data()
        self.breakpoints.unreported = False
        reply["checkpoints"] = sorted(self.checkpoints.addresses)
        reply.update(self.extra)
        self.extra = {}
        self.request = None
        self.checkpoints.note(None)
        if self._seen[0] != len(sys.modules):
            self._seen = len(sys.modules), self._loaded_files()
        self.channel.send(reply)

    def _tell_gone(self, nonce, code):
        """Tells the host that the program has ended without an answer."""
        self.channel.nonce = nonce
        self.channel.send({"gone": code})

    def _changed_files(self):
        """Workspace modules whose files were changed since the program stopped."""
        seen = self._seen[1] if self.state == "stopped" else {}
        return sorted(self.files.shown(path) for path, stamp in seen.items() if _stamp(path) != stamp)

    def _loaded_files(self):
        """The files of the workspace's modules, with what changes when they do."""
        found = {}
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and self.files.name(path):
                found[path] = _stamp(path)
        return found

    def finish(self, exit_code):
        """Tells the host that the program has ended."""
        self.state, self.stop = "exited", None
        self.results += [{"command": line, "output": "not run: the program has ended"} for line in self.queue]
        self.queue = []
        self.answer(exit_code)


def _stamp(path):
    """What changes when a file is written; None where there is no such file."""
    try:
        status = _stat(path)
        return status.st_mtime_ns, status.st_size
    except OSError:
        return None
