"""Files on disk: atomic writes, lines of JSON that survive a killed process, errors that name the line, and folders in
which one process at a time works.

A writer appends one whole line and syncs it, so that a crash leaves at most one unfinished line at the end. Readers of
such a file pass `finished=True` and never see it; the next writer cuts it off (`repair_tail`). A lock ends with its
process, however that ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import jsonlines
from pydantic import BaseModel, ValidationError

from gumshoe.errors import ConfigError, DatasetError, GumshoeError
from gumshoe.text import clean_json, may_hold_surrogates

_MODEL_PARTS = {
    "config.json": ("config.json",),
    "tokenizer": ("tokenizer.json", "tokenizer.model", "vocab.json"),
    "weights": ("*.safetensors", "*.bin"),
}
_MODEL_OBJECTS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")

ModelT = TypeVar("ModelT", bound=BaseModel)
ValueT = TypeVar("ValueT")


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replaces a file in one step: a reader sees the old content or the new, even after a crash."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with _errors_of(path), beside.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            _sync(file)
        with _errors_of(path):
            beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def write_jsonl(path: Path, rows: Iterable[Any]) -> None:
    """Replaces a file of JSON lines in one step. A row is a model or a value that JSON can hold."""
    lines = (row.model_dump_json() if isinstance(row, BaseModel) else json.dumps(row) for row in rows)
    write_atomic(path, "".join(f"{line}\n" for line in lines))


def count_lines(path: Path) -> int:
    """How many lines a file has; 0 if there is no such file."""
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except (FileNotFoundError, NotADirectoryError):
        return 0


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Writes lines, given without line ends, to a file, and returns how many."""
    with path.open("w", encoding="utf-8") as file:
        return sum(file.write(f"{line}\n") > 0 for line in lines)


def cache_folder() -> Path:
    """Where what takes long to make is kept: `GUMSHOE_CACHE`, else `gumshoe` in the user's cache folder."""
    named = os.environ.get("GUMSHOE_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gumshoe"


@contextmanager
def new_folder(path: Path) -> Generator[Path]:
    """A folder to fill. It replaces `path` when the block ends without an error, and is removed otherwise."""
    fresh, old = (path.with_name(f".{path.name}.{state}") for state in ("new", "old"))
    for left_behind in (fresh, old):
        shutil.rmtree(left_behind, ignore_errors=True)
    with _errors_of(path):
        fresh.mkdir(parents=True)
    try:
        yield fresh
        with _errors_of(path):
            if path.exists():
                path.rename(old)
            fresh.rename(path)
    finally:
        for left_behind in (fresh, old):
            shutil.rmtree(left_behind, ignore_errors=True)


def check_folder(path: Path) -> None:
    """Raises OSError where a folder cannot be made, before the work is done that it is for; none is left behind."""
    with _errors_of(path):
        missing = [place for place in (path, *path.parents) if not place.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for place in missing:
            place.rmdir()


@contextmanager
def _errors_of(path: Path) -> Generator[None]:
    """Names `path` in an OSError, in place of a passing file beside it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def open_append(path: Path) -> IO[bytes]:
    """The file, created if missing, open for `append_line`; an unfinished last line is cut off first."""
    repair_tail(path)
    return path.open("ab")


def append_line(file: IO[bytes], line: str | bytes, *, sync: bool = True) -> None:
    """Appends a line, given without its line end. It survives this process; with `sync`, also a machine that fails."""
    # Lone surrogates, which broken names and outputs contain, cannot be encoded as UTF-8.
    file.write((line.encode("utf-8", "replace") if isinstance(line, str) else line) + b"\n")
    file.flush()
    if sync:
        os.fsync(file.fileno())


def repair_tail(path: Path) -> bool:
    """Cuts off a last line without a line end, such as a killed process leaves. Returns whether there was one."""
    if not path.exists():
        return False
    with path.open("r+b") as file:
        size = keep = file.seek(0, os.SEEK_END)
        while keep > 0:
            start = max(0, keep - 65536)
            file.seek(start)
            newline = file.read(keep - start).rfind(b"\n")
            keep = start + newline + 1
            if newline >= 0:
                break
        if keep == size:
            return False
        file.truncate(keep)
        _sync(file)
    return True


def ends_whole(path: Path) -> bool:
    """Whether a file is empty or its last line has a line end."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def read_jsonl(
    path: Path, *, error: type[GumshoeError] = DatasetError, finished: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects in a file of JSON lines with their line numbers, from 1. Empty lines are skipped, and with `finished`
    a last line without a line end. Raises `error` where the file is unreadable, or a line is not a JSON object.
    """
    for number, value in _read_lines(path, parse_json, error, finished):
        if not isinstance(value, dict):
            raise error(f"{path} line {number} is not a JSON object")
        yield number, value


def read_records(
    path: Path, model: type[ModelT], *, error: type[GumshoeError] = DatasetError, finished: bool = False
) -> Iterator[ModelT]:
    """The records in a file of JSON lines, as `read_jsonl`; `error` names the line and the field."""
    for _, record in _read_lines(path, model.model_validate_json, error, finished):
        yield record


def read_json(path: Path, *, error: type[GumshoeError] = DatasetError) -> Any:
    """The value in a JSON file. Raises `error` when it is missing, unreadable, or not JSON."""
    try:
        return parse_json(path.read_bytes())
    except OSError as why:
        raise error(f"{path} cannot be read: {why.strerror}") from None
    except ValueError as why:
        raise error(f"{path} cannot be read: it is not JSON: {why}") from None


def read_bounded(path: Path, limit: int, *, error: type[GumshoeError] = DatasetError) -> bytes:
    """A regular file of at most `limit` bytes. A pipe or a device is refused, not waited for. Raises `error`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as why:
        raise error(f"{path} cannot be read: {why.strerror}") from None
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        os.close(handle)
        raise error(f"{path} cannot be read: it is not a regular file")
    with os.fdopen(handle, "rb") as file:
        # Checked before it is read: a sparse file costs its writer nothing.
        data = b"" if facts.st_size > limit else file.read(limit + 1)
        if max(facts.st_size, len(data)) > limit:
            raise error(f"{path} cannot be read: it is larger than {limit} bytes")
        return data


def parse_json(text: str | bytes) -> Any:
    """The JSON value, lone surrogates replaced. Raises ValueError for what is not JSON, or is nested too deeply."""
    try:
        value = json.loads(text)
        return clean_json(value) if may_hold_surrogates(text) else value
    except RecursionError:
        raise ValueError("nested too deeply") from None


def describe(error: ValidationError) -> str:
    """The first problem of a record, in one line: `field: what is wrong`."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = " ".join(str(first["msg"]).split())[:200]
    return f"{where}: {message}" if where else message


def check_model_files(folder: Path, *, error: type[GumshoeError]) -> None:
    """Raises `error` unless `folder` holds a model's config, tokenizer and weights, and its JSON files hold objects."""
    for what, patterns in _MODEL_PARTS.items():
        if not any(next(folder.glob(pattern), None) for pattern in patterns):
            raise error(f"{folder} is not a model folder: it holds no {what}")
    for file in (folder / name for name in _MODEL_OBJECTS):
        if file.exists() and not isinstance(read_json(file, error=error), dict):
            raise error(f"{file} cannot be read: it does not hold a JSON object")


def _read_lines(
    path: Path, parse: Callable[[str], ValueT], error: type[GumshoeError], finished: bool
) -> Iterator[tuple[int, ValueT]]:
    at = 0

    def lines(file: IO[bytes]) -> Iterator[bytes]:
        nonlocal at
        for at, line in enumerate(file, start=1):  # noqa: B007 - read when the reader asks for the number
            if line.endswith(b"\n") or not finished:
                yield line

    try:
        with path.open("rb") as file:
            reader: Any = cast(Any, jsonlines.Reader)(lines(file), loads=parse)  # the library types only `Any` values
            for value in reader.iter(skip_empty=True, allow_none=True):
                yield at, value
    except jsonlines.InvalidLineError as invalid:
        cause = invalid.__cause__
        why = describe(cause) if isinstance(cause, ValidationError) else f"not JSON: {cause}"
        raise error(f"{path} line {invalid.lineno}: {why}") from None
    except OSError as why:
        raise error(f"{path} cannot be read: {why.strerror}") from None


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


_LOCK = ".lock"
_PATIENCE_S = 0.5


def take_lock(folder: Path) -> IO[bytes]:
    """The folder's lock, held until the file that is returned is closed.

    A process killed while it starts a program leaves a child that holds the lock for a moment; this waits that long.
    Raises ConfigError, with the holder's process id, if another process has the lock.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while (file := try_lock(folder / _LOCK)) is None:
        if time.monotonic() >= deadline:
            holder = (folder / _LOCK).read_text(encoding="utf-8", errors="replace").strip()
            raise ConfigError(f"process {holder or '?'} is using the folder {folder}: wait for it, or stop it")
        time.sleep(0.1)
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
    file.flush()
    return file


def try_lock(path: Path) -> IO[bytes] | None:
    """A file's lock, held until the file that is returned is closed; None where another process has it."""
    file = path.open("a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def is_locked(folder: Path) -> bool:
    """Whether a process works in the folder now."""
    try:
        with (folder / _LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def in_turn(folder: Path) -> Generator[None]:
    """Admits one thread of one process at a time; the others wait. Raises OSError if the folder cannot be written."""
    with (folder / _LOCK).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
