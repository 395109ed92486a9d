"""Commands that run the program on, set breakpoints and travel in time."""

import contextlib
import os
import re
import threading

from ..functions import body_line
from ..programs.program import flush_output
from ..values import shorten
from .breakpoints import is_loaded
from .files import function_line
from .inspection import NOT_STARTED, Inspection
from .requests import HELP, CommandError, check_expression, number, split_command
from .stops import Plan, Stop, caller_of, stack_of

_get_ident = threading.get_ident
_exit = os._exit
_CONDITION = re.compile(r"\s*(?:,|\sif\s)\s*")


def _split_condition(rest):
    """A place or a name, and what follows it after a comma or `if`."""
    return [*_CONDITION.split(rest, 1), ""][:2]


class Commands(Inspection):
    """All commands. Those that let the program continue return True."""

    @property
    def breakpoints(self):
        """All breakpoints."""
        return self.debugger.breakpoints

    def run(self, line, result):
        """Runs one command; true when the program continues. The command's output goes into `result`."""
        try:
            name, rest = split_command(line)
            output = getattr(self, "do_" + name)(rest) if name else self.execute(rest)
        except CommandError as error:
            output = str(error)
            result["failed"] = True
        except KeyboardInterrupt:
            output = "interrupted"
            result["failed"] = True
        if output is True:
            return True
        result["output"] = shorten(output or "")
        return False

    # - commands that let the program continue

    def _moving(self):
        if self.debugger.state == "ready":
            return None
        if self.stop.finished:
            raise CommandError("this is a post-mortem: the code here has ended; only c continues, to the next failure")
        return self.stop.frames[-1][0]

    def _frame_to_leave(self):
        """The frame that `next` and `return` are about: of one that has just returned, its caller."""
        frame = self._moving()
        returned = frame is not None and self.stop.reason == "return"
        return caller_of(frame, self.files.name) if returned else frame

    def do_continue(self, rest):
        """Goes on to the next stop."""
        self.debugger.resume(None)
        return True

    def do_step(self, rest):
        """Goes on to the next workspace line, into calls."""
        self._moving()
        self.debugger.resume(Plan("step"))
        return True

    def do_next(self, rest):
        """Goes on to the next line of this frame, over calls."""
        self.debugger.resume(Plan("next", self._frame_to_leave()))
        return True

    def do_return(self, rest):
        """Goes on until this frame returns."""
        self.debugger.resume(Plan("return", self._frame_to_leave()))
        return True

    def do_until(self, rest):
        """Goes on to a line at or after the given one, or the next, in this frame."""
        frame = self._moving()
        if frame is None:
            raise CommandError(NOT_STARTED)
        line = number(rest, "until LINE") if rest else self.stop.line + 1
        self.debugger.resume(Plan("until", frame, line))
        return True

    def do_jump(self, rest):
        """Makes another line of this frame the next one."""
        frame = self._moving()
        if frame is None:
            raise CommandError(NOT_STARTED)
        line = number(rest, "jump LINE")
        try:
            frame.f_lineno = line
        except ValueError as error:
            raise CommandError("cannot jump: {}".format(error)) from None
        self.debugger.stop = Stop(self.files, "jump", stack_of(self.files, frame))
        self.requests.note_result(stop=self.stop.as_data())
        return ""

    def do_quit(self, rest):
        """Ends the program here and now."""
        self.requests.note_result(output="quit")
        self.debugger.finish(0)
        _exit(0)

    # - commands about breakpoints

    def do_break(self, rest, temporary=False):
        """`break FILE:LINE, CONDITION`, `break FUNCTION, CONDITION`; without arguments all breakpoints."""
        if not rest:
            known = [str(each) for _, each in sorted(self.breakpoints.by_number.items())]
            return "\n".join(known) or "no breakpoints"
        where, condition = _split_condition(rest)
        if condition:
            check_expression(condition)
        path, line = self._find_place(where)
        return str(self.breakpoints.add(path, line, condition=condition or None, temporary=temporary))

    def do_tbreak(self, rest):
        """A breakpoint that is gone once it was hit."""
        if not rest:
            raise CommandError("give a place: tbreak FILE:LINE")
        return self.do_break(rest, temporary=True)

    def do_log(self, rest):
        """`log FILE:LINE, EXPRESSION`: notes the value each time and does not stop."""
        where, expression = _split_condition(rest)
        if not expression:
            raise CommandError("give a place and an expression: log FILE:LINE, EXPRESSION")
        check_expression(expression, "expression")
        path, line = self._find_place(where)
        return str(self.breakpoints.add(path, line, log=expression))

    def do_catch(self, rest):
        """`catch TYPE, CONDITION`: stops where such an exception is raised; `catch` alone, at any."""
        name, condition = _split_condition(rest)
        if not re.match(r"([^\W\d]\w*(\.[^\W\d]\w*)*|\*?)$", name):
            raise CommandError("give the name of an exception: catch KeyError")
        if condition:
            check_expression(condition)
        new = self.breakpoints.add(catch=name or "*", condition=condition or None)
        known = new.catch == "*" or is_loaded(new.catch)
        return str(new) if known else "{}: no exception of this name is loaded so far".format(new)

    def do_watch(self, rest):
        """`watch EXPRESSION`: stops when its value changes, until the chosen function ends; alone, all watches."""
        watches = self.debugger.watches
        if not rest:
            return "\n".join(map(str, watches.all)) or "no watches"
        self._moving()
        if self.stop is None:
            raise CommandError(NOT_STARTED)
        check_expression(rest, "expression")
        new = self._evaluate(lambda: watches.add(rest, self.stop.frame))
        return "{}: {}".format(new, new.shown)

    def do_unwatch(self, rest):
        """Deletes watches, or the one of that number."""
        watches = self.debugger.watches
        wanted = number(rest, "unwatch NUMBER") if rest else None
        kept = [each for each in watches.all if wanted is not None and each.number != wanted]
        deleted = len(watches.all) - len(kept)
        if wanted is not None and not deleted:
            raise CommandError("no watch {}".format(rest))
        watches.all = kept
        return "deleted {}".format(deleted)

    def _find_place(self, where):
        """Path and line of `FILE:LINE`, `FILE:FUNCTION`, `LINE` or `FUNCTION`."""
        path, colon, place = where.rpartition(":")
        if colon:
            path = self.files.resolve(path.strip())
        elif where.isdigit():
            path = self._current_path()
        else:
            return self._find_function(where)
        place = place.strip()
        return path, int(place) if place.isdigit() else function_line(self.files, path, place)

    def _current_path(self):
        if self.stop is None:
            raise CommandError("give a file: b FILE:LINE")
        return self.files.shown(self.stop.frame.f_code.co_filename)

    def _find_function(self, name):
        """Where to find a function that the chosen frame, or a loaded workspace module, knows by `name`."""
        value = None
        if self.stop is not None:
            try:
                value = self._value(name)
            except CommandError:
                value = None
        code = getattr(getattr(value, "__func__", value), "__code__", None)
        if code is not None and self.files.name(code.co_filename):
            return self.files.name(code.co_filename), body_line(code)
        return self._search_function(name)

    def _search_function(self, name):
        """The one place in the workspace where a function is defined. Raises CommandError."""
        found = []
        for path in self.files.defining(name.rpartition(".")[2]):
            for function in (name, name.partition(".")[2]):
                with contextlib.suppress(CommandError):
                    found.append((path, function_line(self.files, path, function)))
                    break
        if len(found) == 1:
            return found[0]
        if not found:
            raise CommandError("no function {} in the workspace".format(name))
        places = ", ".join("{}:{}".format(*place) for place in found[:5])
        raise CommandError("{} exists in several places: b FILE:LINE with one of {}".format(name, places))

    def _chosen(self, rest, usage):
        """The breakpoints that `rest` names by number or place. Raises CommandError."""
        if not rest:
            raise CommandError("give a number: " + usage)
        if ":" in rest:
            path, line = self._find_place(rest)
            line = self.files.stop_line(path, line)
            found = [each for each in self.breakpoints.by_number.values() if (each.path, each.line) == (path, line)]
        else:
            numbers = [number(word, usage) for word in rest.replace(",", " ").split()]
            found = [self.breakpoints.by_number[each] for each in numbers if each in self.breakpoints.by_number]
        if not found:
            raise CommandError("no breakpoint {}".format(rest))
        return found

    def do_clear(self, rest):
        """Deletes breakpoints: by number, by place, or all."""
        chosen = self._chosen(rest, "clear NUMBER") if rest else list(self.breakpoints.by_number.values())
        for each in chosen:
            del self.breakpoints.by_number[each.number]
        self.breakpoints.changed()
        return "deleted " + (", ".join("breakpoint {}".format(each.number) for each in chosen) or "nothing")

    def do_enable(self, rest):
        """Switches breakpoints on."""
        return self._change(self._chosen(rest, "enable NUMBER"), enabled=True)

    def do_disable(self, rest):
        """Switches breakpoints off."""
        return self._change(self._chosen(rest, "disable NUMBER"), enabled=False)

    def do_condition(self, rest):
        """`condition NUMBER EXPRESSION`; without an expression the condition is taken away."""
        which, _, condition = rest.partition(" ")
        if condition.strip():
            check_expression(condition)
        return self._change(self._chosen(which, "condition NUMBER EXPRESSION")[:1], condition=condition.strip() or None)

    def do_ignore(self, rest):
        """`ignore NUMBER COUNT`: passes over the next COUNT hits."""
        which, _, count = rest.partition(" ")
        chosen = self._chosen(which, "ignore NUMBER COUNT")[:1]
        return self._change(chosen, ignore=max(0, number(count.strip(), "ignore NUMBER COUNT")))

    def _change(self, chosen, **facts):
        """Changes breakpoints, and describes them."""
        for each in chosen:
            vars(each).update(facts)
        self.breakpoints.changed()
        return "\n".join(map(str, chosen))

    # - time travel

    def do_hold(self, rest):
        """Keeps the state of the process for the host, beyond the end of the program."""
        return self.do_checkpoint(rest, hold=True)

    def do_checkpoint(self, rest, hold=False):
        """Keeps the state of the process under a name."""
        self._stopped()
        if not re.match(r"[\w.-]+$", rest):
            raise CommandError("give a name: checkpoint NAME")
        others = [each.name for each in threading.enumerate() if each.ident != _get_ident()]
        if others:
            raise CommandError("no checkpoint while other threads run: " + ", ".join(sorted(others)))
        flush_output()
        # | `make` returns | in |
        # |---|---|
        # | None | the process that runs on, now that the checkpoint is there |
        # | an empty message | the copy of a held checkpoint that waits in place of a program that has ended |
        # | a message | a copy that `restore` has woken, to go on with the request and the breakpoints in it |
        message = self.debugger.checkpoints.make(rest, hold)
        if message is None:
            return "checkpoint " + rest
        if not message:
            self.requests.drop()
            return ""
        self.requests.take_over(message)
        self.breakpoints.replace_all(message["breakpoints"])
        # The result that `run` fills in belongs to the past; the one to answer with came with the message.
        self.requests.note_result(output="restored " + rest, stop=self.stop.as_data())
        return "restored " + rest

    def do_restore(self, rest):
        """Goes back to a checkpoint. Breakpoints stay as they are now."""
        message = dict(self.requests.as_data(), breakpoints=self.breakpoints.as_data())
        self.debugger.checkpoints.restore(rest, message)

    def do_restart(self, rest):
        """Leaves it to the host to start the program anew, with the commands that follow."""
        self.requests.note_result(output="restarted")
        self.requests.leave_to_host("restart", rest=self.requests.queue)
        return "restarted"

    def do_help(self, rest):
        """Names the commands."""
        return HELP

    def do_unknown(self, rest):
        """Says that a command of pdb is not there."""
        raise CommandError("no command {}. {}".format(rest, HELP))
