"""The warden: Gumshoe's own process inside a sandbox, which does everything there that the host asks for.

Bytes travel as base64. Its public methods are the operations of the protocol that `serving` describes.
"""

import base64
import errno
import functools
import io
import os
import shutil
import sys
import tarfile
import time

from . import system
from .disk import DiskWatch
from .files import Files, Ignore, grep, hold_exactly
from .jobs import ForkedJob
from .programs import ProgramRun, Programs
from .sessions import Session
from .snapshots import Snapshots
from .tampering import Tampering


class Warden:
    """Holds what lasts between requests: the root, the limits of programs, the sessions and the snapshots.

    `package` are the files of this package, by their paths.
    """

    def __init__(self, host, package, adopts_orphans):
        self.host = host
        self.files = Files("/")
        self.snapshots = None
        self.patch_limit = None
        self.limits = {}
        self.environment = dict(os.environ)
        self.cap = 1 << 18
        self.disposable = None
        self.watch = None
        self.sessions = {}
        self.programs = Programs(host, package, adopts_orphans, self.sessions)
        self.opened = 0
        self.package = {path: text.encode("ascii") for path, text in package.items()}
        self.tampered = Tampering(os.getpid())

    def configure(self, layout, cap):
        """Says where the workspace is and what programs may use; makes the folders.

        `layout` is the host's `SandboxLayout` without what only the host needs; `cap` is how many bytes of a program's
        output are kept.
        """
        self.watch = None if layout["disk"] is None else DiskWatch(layout["disk"])
        if layout["user"] is not None:
            system.become(*layout["user"])
        if layout["disposable"] is not None:
            os.mkdir(layout["disposable"], 0o700)
            self.disposable = layout["disposable"]
        for folder in [layout["root"], *layout["folders"]]:
            os.makedirs(folder, exist_ok=True)
        os.makedirs(layout["state"], mode=0o700, exist_ok=True)
        self.files = Files(os.path.realpath(layout["root"]))
        state = os.path.realpath(layout["state"])
        self.snapshots = Snapshots(self.files, state, layout["limits"].get("RLIMIT_FSIZE"))
        self.patch_limit = layout["patch_limit"]
        self.limits = layout["limits"]
        self.cap = cap
        self.environment = dict(os.environ)
        self.environment.update(layout["environment"])
        self.programs.start_launcher()
        return {"root": self.files.root, "state": state, "environment": self.environment, "python": sys.executable}

    def ping(self):
        """The warden's process ID."""
        return {"pid": os.getpid()}

    def run(self, argv, input=None, env=None, timeout_s=None, forked=None):
        """Runs a program to its end; `forked` says how the test server does it, as `_starter` takes it.

        The reply says whether that has forked the program, and if not though it was asked, why not (`cold`).
        """
        data = None if input is None else base64.b64decode(input)
        run = ProgramRun(self._starter(argv, env, forked), data, self.cap)
        try:
            reply = run.finish(timeout_s, self.host, self.watch)
            return dict(reply, warm=isinstance(run.job, ForkedJob), cold=run.job.refused)
        finally:
            self.programs.clean_up_after(run.job)

    def read(self, path, inside=True):
        """A file's bytes, in base64."""
        return base64.b64encode(self.files.read(path, inside)).decode("ascii")

    def read_real(self, path):
        """`real_path` and `read` in one."""
        return [self.files.real(path), self.read(path)]

    def real_path(self, path):
        """The path with its links followed, relative to the root."""
        return self.files.real(path)

    def write(self, path, data, inside=True, mode=None, mtime=None):
        """Writes a file atomically; `data` is base64."""
        self.files.write(path, base64.b64decode(data), inside, mode, mtime)

    def remove(self, path, inside=True):
        """Removes a file."""
        self.files.remove(path, inside)

    def walk(self, path, ignore=(), depth=None):
        """The entries below a folder, sorted."""
        return list(self.files.walk(path, Ignore(ignore), depth))

    def grep(self, pattern, path, ignore=(), limit=200):
        """Matching lines below a folder, and whether there were more."""
        matches, more = grep(self.files, pattern, path, Ignore(ignore), limit)
        return {"matches": matches, "more": more}

    def unpack(self, archive, folder):
        """Unpacks a tar archive made by the host below a folder."""
        folder = os.path.join(self.files.root, folder)
        os.makedirs(folder, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(archive))) as tar:
            if hasattr(tarfile, "fully_trusted_filter"):
                tar.extraction_filter = tarfile.fully_trusted_filter
            tar.extractall(folder)

    def renew(self, folder):
        """Makes a folder hold exactly the files of this package."""
        self.tampered.note_modules(hold_exactly(folder, self.package))

    def begin_episode(self):
        """From now on, what programs do to the harness is kept for `tampering`."""
        self.tampered.begin(time.time())

    def tampering(self, python, env):
        """What was done to the harness since `begin_episode`, as texts; `python` is whose files count."""
        jobs = [session.job for session in self.sessions.values() if session.poll() is None]
        jobs += self.programs.server_jobs()
        return self.tampered.facts(self.programs.launcher.pid, jobs, python, self._environment(env))

    def snapshot(self):
        """Keeps the files as they are, and returns the snapshot's name."""
        return self.snapshots.take()

    def restore(self, name, only=None):
        """Puts the files back to a snapshot; with `only`, just those that the patterns match."""
        self.snapshots.restore(name, None if only is None else Ignore(only))

    def changes(self, name, ignore=(), ignore_new=()):
        """Paths that differ from a snapshot, then and now: git's mode and the content in base64, or None."""
        changes = self.snapshots.changes(name, Ignore(ignore), Ignore(ignore_new), self.patch_limit)
        return {
            path: [side and (side[0], base64.b64encode(side[1]).decode("ascii")) for side in sides]
            for path, sides in changes.items()
        }

    def session_open(self, argv, env=None, forked=None):
        """Starts a program on a terminal and returns its session's name."""
        start = self._starter(argv, env, forked, terminal=True)
        session = Session(start, self.cap, self.host, self.watch)
        self.opened += 1
        name = str(self.opened)
        self.sessions[name] = session
        return name

    def session_request(self, session, message, timeout_s):
        """Sends a message to the program's control channel and waits for its answer."""
        return self._session(session).request(message, timeout_s)

    def session_wait_message(self, session, timeout_s):
        """Waits for the next message from the program's control channel."""
        return self._session(session).wait_message(timeout_s)

    def session_interrupt(self, session):
        """Sends SIGINT to what runs in the foreground."""
        self._session(session).interrupt()

    def session_close(self, session):
        """Ends the program and all it started. Idempotent."""
        ended = self.sessions.pop(session, None)
        if ended is not None:
            ended.close()
            self.programs.clean_up_after(ended.job)

    def shutdown(self):
        """Kills everything, the launcher too, and removes the folder that was made for this sandbox. Idempotent.

        All of that is done before the answer, even if the host is killed then.
        """
        self._stop_all()
        self.programs.close()
        if self.disposable is not None:
            shutil.rmtree(self.disposable, ignore_errors=True)
            self.disposable = None

    def _stop_all(self):
        """Kills every session and everything else below this process."""
        for name in list(self.sessions):
            self.session_close(name)
        self.programs.close_server()
        self.programs.kill_strays()

    def _session(self, name):
        if name not in self.sessions:
            raise OSError(errno.ESRCH, "it was killed with everything else in the sandbox")
        return self.sessions[name]

    def _environment(self, env):
        environment = dict(self.environment)
        environment.update(env or {})
        return environment

    def _starter(self, argv, env, forked, terminal=False):
        """The function that starts a program on some descriptors.

        `forked` has the test server fork it, if the server accepts it: `program`, what follows the interpreter and its
        options, and the server's own `argv` and `env`.
        """
        self.programs.start_launcher()
        launch = self._launch(argv, env, terminal)
        if forked is not None:
            forked = {"program": forked["program"], "server": self._launch(forked["argv"], forked["env"], False)}
        return functools.partial(self.programs.start, launch, forked)

    def _launch(self, argv, env, terminal):
        """What the launcher is to be told."""
        return {
            "argv": argv,
            "cwd": self.files.root,
            "env": self._environment(env),
            "limits": self.limits,
            "terminal": terminal,
        }
