"""A pytest plugin that forks once tests are collected, and runs them with other code in each fork. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14. Importing a project and collecting its tests takes far longer than one test:
here that is done once for all variants. In a fork, existing functions are given their changed code; what ran when
modules were imported is not run again, so a change that needs this is left to the caller.
"""

import contextlib
import gc
import json
import os
import time
import types

import pytest

from ..debugger.files import code_objects
from ..programs import children
from .change import count_hits

PATIENCE = 5
LEAST_S = 1.5


plugin = None
"""Set by the code that runs pytest in this process."""


def pytest_configure(config):
    """Registers the plugin."""
    if plugin is not None:
        config.pluginmanager.register(plugin, "gumshoe_forks_runner")


class Forks:
    """Runs the tests once for each change, one after the other.

    Args:
        changes: by number, each a `change.Change`; 0 stands for the unchanged run.
        is_same: whether a file of outcomes shows that the tests failed as they should; if that of the unchanged run
            does not, nothing is answered.
        folder: where outcomes, hits and `forks.json` go; the latter says, by number, how each run ended.
        end: time by which the last run has to be over.
    """

    def __init__(self, changes, is_same, folder, end):
        self.changes = changes
        self.is_same = is_same
        self.folder = folder
        self.end = end

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Runs in place of the tests; in a fork, the tests follow."""
        answers = {}
        patience = None
        functions = functions_of({change.path for change in self.changes.values()})
        for number, change in [(0, None), *sorted(self.changes.items())]:
            changed = changed_functions(functions[change.path], change) if change is not None else []
            if change is not None and not changed:
                continue
            limit = self.end if patience is None else min(self.end, time.time() + patience)
            answer = self._run(number, changed, limit, session)
            if answer is None:
                return None
            answers[number] = answer
            if number == 0:
                patience = max(LEAST_S, PATIENCE * float(answer["duration_s"] or 0))
                if not self.is_same(self._file(0, "jsonl")):
                    return True
        with open(os.path.join(self.folder, "forks.json"), "w") as file:
            json.dump(answers, file)
        return True

    def _run(self, number, functions, limit, session):
        """How one fork ended; None in the fork itself."""
        began = time.time()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            count_hits(self._file(number, "hits"))
            for function, code in functions:
                function.__code__ = code
            session.config.pluginmanager.get_plugin("gumshoe_outcomes_writer").path = self._file(number, "jsonl")
            return None
        code = _wait(pid, limit)
        answer = {"exit_code": code, "duration_s": round(time.time() - began, 3), "hits": 0, "whole": False}
        with contextlib.suppress(OSError):
            answer["hits"] = os.path.getsize(self._file(number, "hits"))
        return answer

    def _file(self, number, kind):
        return os.path.join(self.folder, "{}.{}".format(number, kind))


def _wait(pid, limit):
    """The exit code of a fork; None where it had to be stopped. All that it started ends with it."""
    status = children.wait(pid, limit)
    children.kill(pid)
    if status is None:
        os.waitpid(pid, 0)
        return None
    return children.exit_code(status)


def functions_of(paths):
    """The existing functions of each file."""
    known = {}
    found = {path: known.setdefault(os.path.realpath(path), []) for path in paths}
    by_name = {}
    for each in gc.get_objects():
        if isinstance(each, types.FunctionType):
            name = each.__code__.co_filename
            if name not in by_name:
                by_name[name] = None
                with contextlib.suppress(ValueError):  # a name that no file can have
                    by_name[name] = known.get(os.path.realpath(name))
            if by_name[name] is not None:
                by_name[name].append(each)
    return found


def changed_functions(functions, change):
    """The functions of a module whose code changes, each with its new code; none if the new code cannot replace theirs,
    or the change is outside of functions.
    """
    former = set(code_objects(change.former)) if change.former is not None else ()
    wanted = {_key(each): each for each in code_objects(change.code) if each not in former}
    found = []
    for function in functions:
        new = wanted.get(_key(function.__code__))
        if new is not None:
            if new.co_freevars != function.__code__.co_freevars:
                return []
            found.append((function, new))
    return found


def _key(code):
    return code.co_name, code.co_firstlineno
