"""Traces the program, stops it, and answers requests while it is stopped."""

import functools
import sys
import threading

from ..values import describe_exception, short_repr
from .breakpoints import Breakpoints, Counts, Log, Watches
from .checkpoints import Checkpoints
from .commands import Commands
from .files import LoadedSources, WorkspaceFiles
from .requests import Requests
from .stops import END_OF_ITERATION, Plan, Stop, caller_of, failing_frames, is_pause, is_raising, stack_of, waits
from .tracing import LateTracing, TracedThreads, set_trace

_get_ident = threading.get_ident
_current_frame = vars(sys)["_getframe"]


LOST = "{}: too deep a recursion, or the program itself, ended tracing; what breakpoints there missed is not known"


class Debugger:
    """The debugger of this process.

    A stop answers requests in the thread that stopped, until a command lets the program go on; other threads that come
    to a stop meanwhile wait for their turn.

    Its parts, which stay the same objects, are `files`, `breakpoints`, `sources`, `watches`, `log`, `checkpoints`,
    `counts`, `commands`, and `requests`, the conversation with the host. What changes, and who changes it:

    | attribute | what it says | set by |
    |---|---|---|
    | `state` | ready (the program is not started), running, stopped or exited | `resume`, `_interact`, `finish` |
    | `stop` | where the program is stopped; None unless it is | `_interact`, `finish`, the command `jump` |
    | `plan` | how far a step goes; None if only breakpoints and the like stop it | `resume`, `_interact` |
    | `test` | the running test, if a test runner has told | `begin_test` |
    | `evaluating` | the thread in which code of a command is running, if any | `inspection` |
    | `last_exception` | the one that commands call `__exception__` | `_on_exception`, `post_mortem` |
    | `deferred` | whether tracing is put off until `engage` | `engage` |
    | `dead` | whether this is a child of the program, in which nothing is debugged | `detach` |

    Args:
        channel: leads to the host.
        root: the folder of the workspace.
        deferred: whether tracing begins with `engage`, not with the program.
    """

    def __init__(self, channel, root, deferred=False):
        self.deferred = deferred
        self.files = WorkspaceFiles(root)
        self.breakpoints = Breakpoints(self.files)
        self.sources = LoadedSources(self.files)
        self.watches = Watches(self.files)
        self.log = Log(self.files)
        self.checkpoints = Checkpoints(lambda nonce, code: self.requests.tell_gone(nonce, code))
        self.requests = Requests(channel, self.checkpoints.note)
        self.commands = Commands(self)
        self.counts = Counts(self.breakpoints)
        self.state = "ready"
        self.stop = None
        self.plan = None
        self.test = None
        self.evaluating = None
        self.last_exception = None
        self.dead = False
        # Threads: whose turn it is to stop, which are traced, and when that begins.
        self._turn = threading.RLock()
        self._threads = TracedThreads(self.breakpoints.wanted, self.on_call)
        self._late = LateTracing(self.breakpoints, self._begin_trace, self._trace_again)
        # What was seen last.
        self._raising_frame = None  # the frame that last saw an exception
        self._line_since = None  # the line that has begun in it since
        self._caught = None  # the exception that `catch` has looked at

    # - tracing

    def on_call(self, frame, event, arg):
        """The global trace function: decides whether a frame that begins is followed line by line."""
        if self.dead:
            return None
        code = frame.f_code
        if self.breakpoints.wants(code):
            return self._follow(frame)
        plan = self.plan
        steps = plan is not None and plan.kind == "step" and plan.thread == _get_ident()
        if not (steps or self.watches or self.breakpoints.catches) or not self.files.name(code.co_filename):
            return None
        return self._follow(frame, lines=steps or bool(self.watches))

    def _follow(self, frame, lines=True):
        """The trace function of a frame; without `lines`, which Python 3.6 always has, it costs less."""
        if hasattr(frame, "f_trace_lines"):
            frame.f_trace_lines = lines
        return functools.partial(self.on_event, frame.f_code)

    def on_event(self, code, frame, event, arg):
        """The local trace function of frames that are followed. It is given the code: reading it raises an audit event.

        Returns None, which leaves the frame's trace function as it is: `resume` may just have taken it away.
        """
        line = frame.f_lineno
        if self.dead or self.state == "exited" or (event == "line" and self._late.is_report(code, line)):
            return
        if event != "exception":
            self.counts.add(code, line, event)
        if event == "line":
            if self._raising_frame is frame:
                self._line_since = line
            self._on_line(frame, code, line)
        elif event == "return":
            self._on_return(frame, arg)
        elif event == "exception":
            self._on_exception(frame, *arg)

    def begin_test(self, name):
        """A test begins; with None, one has ended. Stops say which test is running, and how often it was there."""
        self._trace_again()
        self.test = name
        self.counts.begin()
        if self._late.pause():
            self._threads.note_pause()

    # - what plans want

    def _plan_for(self, frame):
        """The plan, if it is about this frame: it is the frame's own, or steps through every line of its thread."""
        plan = self.plan
        if plan is None or plan.thread != _get_ident() or not self.files.name(frame.f_code.co_filename):
            return None
        return plan if plan.kind == "step" or plan.frame is frame else None

    def _on_line(self, frame, code, line):
        hit = self.breakpoints.hit(frame, code, line, self.log.add)
        watched = self.watches.check(frame) if self.watches else None
        if hit is not None:
            facts = watched or {"note": hit.problem}
            self.stop_at(frame, "breakpoint", breakpoint=hit.number, time=self.counts.of(frame, "line"), **facts)
            return
        if watched is not None:
            self.stop_at(frame, "watch", **watched)
            return
        plan = self._plan_for(frame)
        if plan is not None and plan.kind != "return" and line >= plan.line:
            self.stop_at(frame, "step", time=self.counts.of(frame, "line"))

    def _on_return(self, frame, value):
        raised = self._raising_frame is frame and value is None and is_raising(frame, self._line_since)
        paused = not raised and is_pause(frame)
        watched = self.watches.check(frame) if self.watches else None
        ended = None if paused or not self.watches else self.watches.ended(frame, caller_of(frame, self.files.name))
        if watched is not None or ended is not None:
            notes = [str(each) for each in (watched and watched["note"], ended) if each]
            self.stop_at(frame, "watch", **dict(watched or {}, note="\n".join(notes)))
            return
        plan = self._plan_for(frame)
        if plan is None:
            return
        if raised:
            self._leave(frame)
        elif not paused:
            self.stop_at(frame, "return", value=short_repr(value), time=self.counts.of(frame, "return"))
        elif plan.kind == "step":
            if waits(frame, value):
                self.resume(Plan("next", frame))  # until what it awaits is there
            else:
                self._leave(frame)

    def _on_exception(self, frame, kind, value, trace):
        if issubclass(kind, END_OF_ITERATION) and trace is None:
            return
        self._raising_frame, self._line_since = frame, None
        if self.breakpoints.catches and value is not self._caught:
            self._caught = value  # It is seen again in each frame that it passes through.
            hit = self.breakpoints.catching(frame, kind)
            if hit is not None:
                self.last_exception = value
                message = describe_exception(kind, value)
                self.stop_at(frame, "raised", breakpoint=hit.number, exception=message, note=hit.problem)
                return
        plan = self._plan_for(frame)
        if plan is not None and plan.kind in ("step", "next") and not issubclass(kind, END_OF_ITERATION):
            self.last_exception = value
            self.stop_at(frame, "exception", exception=describe_exception(kind, value))

    def _leave(self, frame):
        """The plan's frame has ended: goes on in the nearest workspace frame that called it."""
        self.resume(Plan("next", caller_of(frame, self.files.name)))

    # - going on

    def resume(self, plan):
        """Sets up tracing until the next stop. A plan without a frame stops at any workspace line."""
        if plan is not None and plan.frame is None:
            plan.kind = "step"
        self.plan = plan
        if self.state == "ready":
            self.counts.begin()
        self.state = "running"
        self._announce()
        needed = not self.deferred and self._needs_trace()
        if self.watches and self.stop is not None:
            self.watches.started(self.stop.frames[-1][0])
        frame = _current_frame(1)
        while frame is not None:
            if frame.f_code.co_filename != __file__:
                frame.f_trace = self._follow(frame) if needed and self._is_followed(frame) else None
            frame = frame.f_back
        self._threads.set(needed, self._only_breakpoints())

    def end_of_main(self):
        """Lets the program's other threads run to their ends; a thread that is at a stop gets its turn first."""
        self._trace_again()
        with self._turn:
            self.resume(None)

    def _trace_again(self, entered=None):
        """Begins anew in this thread if the interpreter has ended tracing."""
        if self.state == "running" and self._threads.is_lost():
            self._begin_trace(entered)

    def engage(self):
        """Begins tracing, which was put off while a test runner started, since that runs no workspace code."""
        if self.deferred:
            self.deferred = False
            begin = self._late.start if self._only_breakpoints() else self._begin_trace
            begin()

    def _begin_trace(self, entered=None):
        """Begins tracing in this thread; `entered`, if given, is a frame that may have a breakpoint."""
        if self.state == "running" and not self.dead:
            if self._threads.is_lost():
                self.log.note(LOST.format(self.test or "the program"))
            self._threads.set(self._needs_trace(), self._only_breakpoints())
            if entered is not None and self.breakpoints.wants(entered.f_code):
                entered.f_trace = self._follow(entered)

    def _only_breakpoints(self):
        return self.plan is None and not self.watches and not self.breakpoints.catches

    def _needs_trace(self):
        return self.plan is not None or bool(self.breakpoints) or bool(self.watches)

    def _announce(self):
        """Tells the host of breakpoints and results that would be lost if the program never stopped again."""
        if self.requests.in_hand and (self.breakpoints.unreported or len(self.requests.results) > 1):
            self.requests.announce(self._reported_breakpoints())

    def _reported_breakpoints(self):
        self.breakpoints.unreported = False
        return self.breakpoints.as_data()

    def _is_followed(self, frame):
        if self.breakpoints.wants(frame.f_code) or self._plan_for(frame) is not None:
            return True
        return bool(self.watches or self.breakpoints.catches) and self.files.name(frame.f_code.co_filename) is not None

    # - stopping

    def stop_at(self, frame, reason, **facts):
        """Stops in a running frame."""
        self._interact(Stop(self.files, reason, stack_of(self.files, frame), test=self.test, **facts))

    def post_mortem(self, kind, value, trace, test=None):
        """Stops at the innermost workspace frame of a traceback, or of what caused the exception.

        Called by the hooks into the test runners, and for exceptions that nothing caught.
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
        if self.dead or self.evaluating == _get_ident():
            raise KeyboardInterrupt
        if self.state == "running" and not self.requests.is_waiting:
            self.stop_at(frame, "interrupt")

    def on_breakpoint_call(self, *args, **kwargs):
        """What `breakpoint()` and `pdb.set_trace()` do."""
        if not self.is_silent():
            self.stop_at(_current_frame(1), "breakpoint() call")

    def detach(self):
        """Stops nothing from now on: this process is a child of the program."""
        self.dead = True
        set_trace(None)
        self.requests.close()

    # - answering

    def _interact(self, stop):
        """Answers requests until one of them lets the program go on."""
        with self._turn:
            sys.settrace(None)
            self._late.end()
            self.state, self.stop, self.plan = "stopped", stop, None
            self.sources.forget()
            if self.requests.results:
                self.requests.note_result(stop=stop.as_data(), **self.log.take())
            self.serve()
            self.stop = None

    def serve(self):
        """Runs queued commands, answers, and waits for more, until a command lets the program go on."""
        while True:
            while self.requests.queue:
                line, result = self.requests.next_command()
                if self.commands.run(line, result):
                    return
            self.answer()
            self.take_request()

    def take_request(self):
        """Waits for the next request. If a file of the program has changed, it is not carried out."""
        request = self.requests.take()
        stale = self.sources.changed() if self.state == "stopped" else []
        if stale:
            # The host starts the program again and gives it the same commands.
            self.requests.leave_to_host("stale", changed=stale)
        elif "breakpoints" in request:
            self.breakpoints.replace_all(request["breakpoints"])

    def answer(self, exit_code=None):
        """Answers the request in hand, if there is one."""
        if not self.requests.in_hand:
            return
        stop = self.stop
        self.sources.note()
        self.requests.answer(
            state=self.state,
            exit_code=exit_code,
            stop=stop.as_data() if stop is not None else None,
            frames=stop.frames_as_data() if stop is not None else [],
            index=stop.index if stop is not None else None,
            breakpoints=self._reported_breakpoints(),
            checkpoints=sorted(self.checkpoints.addresses),
        )

    def finish(self, exit_code):
        """Tells the host that the program has ended."""
        self.state, self.stop = "exited", None
        if self.requests.results:
            self.requests.note_result(**self.log.take())
        self.requests.give_up_queue()
        self.answer(exit_code)
