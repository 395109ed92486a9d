"""A model server as a subprocess: started, watched, started again when it dies, and never left behind."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve.backends import (
    Backend,
    check_model_folder,
    choose_backend,
    environment,
    lay_out_for_transformers,
    look_for,
    serve_command,
)
from gumshoe.eval.serve.guardian import GRACE_S

GUARDIAN = Path(__file__).with_name("guardian.py")
POLL_S = 0.1
REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here
"""Where a client on this machine finds a server that listens there."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Prepared:
    """What is found before a server is started, and stays the same each time that it is started again.

    `command` is the exact argv, `variables` what its environment has besides our own, `folder` where it runs, None for
    where we do. Requests must give the name `model`; a client on this machine reaches it at `address`: host and port.
    """

    backend: Backend
    command: list[str]
    model: str
    address: tuple[str, int]
    variables: dict[str, str]
    folder: Path | None

    @property
    def shell_command(self) -> str:
        """The command as one would type it, variables included."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(self.variables.items())]
        into = [] if self.folder is None else ["cd", shlex.quote(str(self.folder)), "&&"]
        return " ".join([*into, *variables, shlex.join(self.command)])


class ModelServer:
    """A model folder behind an OpenAI-compatible endpoint, for as long as the context is open.

        with ModelServer(Path("runs/train/smollm2/model")) as server:
            client = openai.OpenAI(base_url=server.base_url, api_key="none")
            client.chat.completions.create(model=server.model, ...)

    The server runs in a process group of its own under a guardian (see `guardian.py`), which ends it when we are gone,
    however that happened. A server that dies is started again, on the same port and under the same name, at most
    `config.restarts` times; meanwhile clients see refused connections. One that was closed cannot be started again:
    make another. All that it prints is appended to `log`, or to a temporary file.

    Raises (when entered): ServeError with one line for a missing model folder, a port in use, nothing installed that
    can serve, and a server that died or stayed silent.
    """

    def __init__(self, folder: Path | str, config: ServeConfig | None = None, *, log: Path | None = None) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.config = config or ServeConfig()
        self.restarts = 0
        self._prepared: Prepared | None = None
        self._scratch: Path | None = None
        self._wanted_log = log
        self.log = log or Path(os.devnull)
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: str | None = None
        self._closing = threading.Event()
        self._changed = threading.Lock()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def prepared(self) -> Prepared:
        """What was found when it was started, which comes first."""
        assert self._prepared is not None, "the server was not started"
        return self._prepared

    @property
    def base_url(self) -> str:
        """Where clients go, such as `http://127.0.0.1:8000/v1`."""
        host, port = self.prepared.address
        return f"http://{host}:{port}/v1"

    @property
    def model(self) -> str:
        """The name that requests must give."""
        return self.prepared.model

    def start(self) -> None:
        """Starts the server and waits until it answers. Raises ServeError; nothing is left behind then."""
        try:
            self._prepared = self._prepare()
            self._launch()
            self._await_health()
        except BaseException:
            self.close()
            raise
        self._watcher = threading.Thread(target=self._watch, name="gumshoe-serve", daemon=True)
        self._watcher.start()

    def check(self) -> None:
        """Raises ServeError if the server has died for good."""
        if self._failure is not None:
            raise ServeError(self._failure)

    def wait(self) -> None:
        """Blocks until the server has died for good or is closed. Raises ServeError in the first case."""
        while self._watcher is not None and self._watcher.is_alive():
            self._watcher.join(timeout=0.5)
        self.check()

    def close(self) -> None:
        """Stops the server and all it started. Idempotent."""
        self._closing.set()
        if self._watcher is not None:
            self._watcher.join()
            self._watcher = None
        with self._changed:
            self._stop_process()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def _prepare(self) -> Prepared:
        """Checks the folder, the backend, the port and the log, and lays out what is served. Raises ServeError."""
        check_model_folder(self.folder)
        installed = look_for(self.config.python or sys.executable)
        backend = choose_backend(self.config.backend, installed)
        port = _usable_port(self.config.host, self.config.port)
        self._scratch = Path(tempfile.mkdtemp(prefix="gumshoe-serve-"))
        self.log = self._wanted_log or self._scratch / "server.log"
        _refuse_unwritable(self.log)
        served, folder = self.folder, None
        if backend == "transformers":
            # It serves a folder under the path that it is given: a custom name is relative to where it runs.
            folder = None if self.config.name is None else self._scratch / "served"
            view = self._scratch / "model" if folder is None else folder / _name_for_transformers(self.config)
            served = lay_out_for_transformers(self.folder, view)
        command, model = serve_command(backend, self.config, installed, model=served, port=port)
        return Prepared(
            backend,
            command,
            model,
            address=(REACHABLE.get(self.config.host, self.config.host), port),
            variables=environment(backend, self.config, installed, model=self.folder, scratch=self._scratch),
            folder=folder,
        )

    def _launch(self) -> None:
        with self._changed, self.log.open("ab") as log:
            if self._closing.is_set():
                return
            log.write(f"$ {self.prepared.shell_command}\n".encode())
            log.flush()
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(GUARDIAN), *self.prepared.command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.prepared.variables},
                cwd=self.prepared.folder,
                start_new_session=True,
            )

    def _await_health(self) -> None:
        """Raises ServeError when the server dies, or does not answer in time."""
        deadline = time.monotonic() + self.config.startup_s
        while not self._closing.is_set():
            code = self._process.poll() if self._process is not None else None
            if code is not None:
                raise ServeError(self._crash_message(code))
            if self.healthy():
                return
            if time.monotonic() > deadline:
                waited = f"{self.config.startup_s:g} s"
                raise ServeError(f"the model server did not answer within {waited}: {self._last_words()}")
            self._closing.wait(max(0.0, min(POLL_S, deadline - time.monotonic())))

    def healthy(self) -> bool:
        """Whether `/health` answers 200 at this moment."""
        connection = http.client.HTTPConnection(*self.prepared.address, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _watch(self) -> None:
        """Starts the server again whenever it has died, until there have been too many deaths."""
        while not self._closing.wait(POLL_S):
            code = self._process.poll() if self._process is not None else None
            if code is None:
                continue
            if self.restarts >= self.config.restarts:
                self._failure = self._crash_message(code)
                return
            self.restarts += 1
            with self._changed:
                self._stop_process()
            try:
                self._launch()
                self._await_health()
            except ServeError as error:
                self._failure = str(error)
                return

    def _stop_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        try:
            process.wait(timeout=GRACE_S + 10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _crash_message(self, code: int) -> str:
        again = f" after {self.restarts} restarts" if self.restarts else ""
        return f"the model server died (exit code {code}){again}: {self._last_words()}"

    def _last_words(self, window: int = 65536) -> str:
        """The last line that the server printed, as a terminal would show it."""
        with self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - window))
            text = file.read().decode(errors="replace")
        lines = (ESCAPES.sub("", line).strip() for line in reversed(text.splitlines()))
        last = next((line[:500] for line in lines if line and not line.startswith("$ ")), "it said nothing")
        return last if self._wanted_log is None else f"{last} (all of it: {self._wanted_log})"


def _name_for_transformers(config: ServeConfig) -> str:
    """The name that the config gives. Raises ServeError if no folder that transformers serves can have it."""
    name = config.name or ""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ServeError(f"transformers cannot serve a model as {name!r}: use letters, digits, '.', '_' and '-'")
    return name


def _refuse_unwritable(log: Path) -> None:
    """Raises ServeError where nothing can be written to `log`."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.open("ab").close()
    except OSError as error:
        raise ServeError(f"the log {log} cannot be written: {error.strerror or error}") from None


def _usable_port(host: str, port: int) -> int:
    """`port`, or a free one for 0. Raises ServeError if we cannot listen there: another server would answer."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            return int(probe.getsockname()[1])
    except (OSError, OverflowError) as error:
        number = error.errno if isinstance(error, OSError) and error.errno else 0
        reason = os.strerror(number) if number > 0 else str(error)
        cure = "give another --port, or 0 for a free one" if port else "give an address of this machine"
        what = f"port {port} on {host} cannot be used" if port else f"cannot listen on {host}"
        raise ServeError(f"{what} ({reason}): {cure}") from None
