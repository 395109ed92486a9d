"""Runs a suite in forks, each with its limits; a run that hangs or dies costs nothing but itself.

Standard library and pytest only, Python 3.6 and later.
"""

import contextlib
import json
import math
import os
import resource
import select
import signal
import time
from typing import Any

import pytest

from gumshoe.env.inside.suite_plugins import Recorder, Tracer


class InChild(BaseException):
    """Unwinds a fresh fork back into pytest."""


class EarlyForks:
    """Runs the suite in forks of a process that has pytest loaded, but not configured."""

    def __init__(self, project):
        self.project = project

    def run(self, tests, trace=False):
        return forked(lambda writer: self.child(tests, trace, writer), self.project.wall_s)

    def child(self, tests, trace, writer):
        enter_child(self.project)
        pytest.main(self.project.arguments + tests, plugins=plugins(self.project, trace, writer))
        os._exit(1)


class LateForks:
    """Runs the suite in forks of a process that has pytest configured and is about to collect.

    It is a pytest plugin: `work(self)` is called where pytest would collect.
    """

    def __init__(self, project, work):
        self.project = project
        self.work = work
        self.session: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session):
        self.session = session
        session.items, session.testscollected = [], 0
        try:
            self.work(self)
        except InChild:
            return None
        return True

    def run(self, tests, trace=False):
        return forked(lambda writer: self.child(tests, trace, writer), self.project.wall_s)

    def child(self, tests, trace, writer):
        enter_child(self.project)
        if tests:
            self.session.config.args = list(tests)
        for plugin in plugins(self.project, trace, writer):
            self.session.config.pluginmanager.register(plugin)
        raise InChild


def plugins(project, trace, writer):
    if not trace:
        return [Recorder(project.root, project.temporary, writer, None)]
    tracer = Tracer(project.root)
    tracer.start()
    return [Recorder(project.root, project.temporary, writer, tracer), tracer]


def forked(child, wall_s):
    """What `child(writer)`, run in a fork, wrote as JSON; {"status": "timeout" or "crashed"} where it did not."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        child(writer)
    os.close(writer)
    try:
        text, in_time = read_all(reader, time.time() + wall_s)
    finally:
        os.close(reader)
        status, usage = end(pid)
    if text:
        seen = json.loads(text.decode("utf-8"))
        seen["cpu_s"] = usage.ru_utime + usage.ru_stime
        return seen
    used_up = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGXCPU)
    return {"status": "crashed" if in_time and not used_up else "timeout"}


def enter_child(project):
    os.setsid()
    # The timer is fine-grained; the limit, in whole seconds, is for what a fork of the tests uses up.
    signal.setitimer(signal.ITIMER_PROF, project.cpu_s)
    whole = math.ceil(project.cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
    memory = project.memory if allowed == resource.RLIM_INFINITY else min(project.memory, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read_all(descriptor, deadline):
    """What comes until the other end is closed, and whether it was in time."""
    parts = []
    while True:
        left = deadline - time.time()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return b"", False
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(parts), True
        parts.append(part)


def end(child):
    """Kills what the child left behind in its group, waits for it and returns its status and what it used."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):  # the group or the process is gone already
            kill(child, signal.SIGKILL)
    return os.wait4(child, 0)[1:]
