"""Published rows: read from files or a hub, checked column by column, and what their images have in common.

The images of SWE-bench and of the sets that follow it hold the repository in /testbed, with its environment.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gumshoe.config import parse_yaml
from gumshoe.env.diff import parse_patch
from gumshoe.env.tasks.taskset import OnError, load_entries
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import parse_json, read_bounded, read_json, read_jsonl

__all__ = [
    "ACTIVATE",
    "ROOT",
    "Row",
    "apply_command",
    "json_value",
    "load_instances",
    "read_rows",
    "required",
    "row_name",
    "runnable_test_files",
    "script",
    "test_ids",
    "test_targets",
]

Row = Mapping[str, Any]

FILES = {
    "patch": "gold.patch",
    "test_patch": "test.patch",
    "eval_script": "eval.sh",
    "problem_statement": "problem_statement.md",
}
"""The columns that a task repository keeps in files of their own."""
MAX_BYTES = 64 << 20
ROOT = "/testbed"
# The environment `testbed` where there is one, else what conda activates by itself, else what the image sets.
ACTIVATE = """\
if [ -f /opt/miniconda3/bin/activate ]; then
  source /opt/miniconda3/bin/activate
  if [ -d /opt/miniconda3/envs/testbed ]; then conda activate testbed; fi
fi
"""


def read_rows(path: str | Path, split: str = "test") -> list[Row]:
    """The rows of a file, or of split `split` of a task repository of SWE-bench 5 or of the hub's dataset of that name.

    Raises TaskError.
    """
    file = Path(path)
    if file.is_file():
        return list(_checked(_from_file(file), file))
    if (file / "sweb.yaml").is_file():
        return _from_task_repository(file, split)
    if file.exists():
        raise TaskError(
            f"{path} is a folder without sweb.yaml: give a .jsonl, .json or .parquet file, a task repository, or the "
            "name of a dataset"
        )
    if file.suffix in {".jsonl", ".json", ".parquet"}:
        raise TaskError(f"no file {path}")
    return _from_hub(str(path), split)


def _from_file(file: Path) -> Iterable[Any]:
    try:
        if file.suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(file).to_pylist()
        if file.suffix == ".json":
            rows = read_json(file, error=TaskError)
            return list(rows.values()) if isinstance(rows, dict) else rows if isinstance(rows, list) else [rows]
        return [row for _, row in read_jsonl(file, error=TaskError)]
    except (OSError, ValueError) as error:
        raise TaskError(f"{file} cannot be read: {' '.join(str(error).split())}") from None


def _checked(rows: Iterable[Any], file: Path) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise TaskError(f"{file}: row {number} is not a mapping of columns to values")
        yield row


def _from_task_repository(folder: Path, split: str) -> list[Row]:
    """A row for each folder in `tasks`, whose files are columns; one that cannot be read lacks them."""
    places = sorted(file.parent for file in folder.glob("tasks/*/task.yaml"))
    rows: list[Row] = [{"instance_id": place.name, "split": split, **_columns(place)} for place in places]
    chosen = [row for row in rows if row["split"] == split]
    if not chosen:
        splits = ", ".join(sorted({str(row["split"]) for row in rows})) or "none"
        raise TaskError(f"{folder} has no task of the split {split}; it has {splits}")
    return chosen


def _columns(place: Path) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, parse in (("task.yaml", parse_yaml), ("tests.json", parse_json)):
        with suppress(TaskError, ValueError):
            facts = parse(read_bounded(place / name, MAX_BYTES, error=TaskError).decode())
            columns |= facts if isinstance(facts, dict) else {}
    for column, name in FILES.items():
        with suppress(TaskError):
            data = read_bounded(place / name, MAX_BYTES, error=TaskError)
            columns[column] = data.decode("utf-8", "surrogateescape")
    return columns


def _from_hub(name: str, split: str) -> list[Row]:
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        loaded = datasets.load_dataset(name, split=split)
    except (OSError, ValueError, DatasetsError) as error:
        first = str(error).strip().splitlines()[0]
        raise TaskError(f"no file and no dataset {name!r} with split {split!r}: {first}") from None
    return [dict(row) for row in loaded if isinstance(row, dict)]


def load_instances(
    path: str | Path,
    split: str,
    regime: str,
    make: Callable[[Row, int, bool], tuple[Task, Oracle]],
    on_error: OnError,
) -> list[tuple[Task, Oracle]]:
    """What `make` makes of each row, its number from 1, and whether the regime is `debug`. Raises TaskError."""
    if regime not in ("issue", "debug"):
        raise TaskError(f"no regime {regime!r}: give issue or debug")
    rows = enumerate(read_rows(path, split), 1)
    return load_entries(rows, lambda entry: make(entry[1], entry[0], regime == "debug"), on_error)


def row_name(row: Row, number: int, column: str = "instance_id") -> str:
    """What a row is called in messages: its task, or its number where it does not say."""
    name = row.get(column)
    return f"task {name}" if isinstance(name, str) and name else f"row {number}"


def required(row: Row, columns: Sequence[str], where: str, *, texts: Sequence[str] = ()) -> None:
    """Raises TaskError where one of `columns` is missing, or one of `texts` among them is not a string."""
    missing = [column for column in columns if row.get(column) is None]
    if missing:
        raise TaskError(f"{where}: column {missing[0]} is missing")
    wrong = [column for column in texts if not isinstance(row[column], str)]
    if wrong:
        raise TaskError(f"{where}: column {wrong[0]} is not a string")


def json_value(row: Row, column: str, where: str, kind: str) -> Any:
    """A value that may be stored as JSON in a string. `kind` is what it should be, for the message."""
    value = row[column]
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError as error:
        raise TaskError(f"{where}: column {column} is not {kind}: {error}") from None


def test_ids(row: Row, column: str, where: str) -> tuple[str, ...]:
    """A list of test ids; many sets keep it in a string, as JSON or as Python writes a list. Raises TaskError."""
    value = row[column]
    try:
        value = json_value(row, column, where, "a JSON list")
    except TaskError:
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            value = ast.literal_eval(value)
    if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
        raise TaskError(f"{where}: column {column} is not a list of test ids")
    return tuple(value)


def script(*lines: str) -> tuple[str, ...]:
    """A setup command of several lines that ends at the first one that fails."""
    return ("bash", "-ec", "\n".join(lines))


def apply_command(patch: str) -> str:
    """A script line that applies a patch, which it contains."""
    end = f"END_{hashlib.sha256(patch.encode()).hexdigest()[:16]}"
    text = patch if patch.endswith("\n") else f"{patch}\n"
    return f"git -c safe.directory='*' apply --whitespace=nowarn - <<'{end}'\n{text}{end}"


def test_targets(patch: str) -> list[str]:
    """The files that a test patch touches and that are in the repository once it is applied."""
    return list(dict.fromkeys(file.target for file in parse_patch(patch) if file.target is not None))


def runnable_test_files(patch: str) -> list[str]:
    """Those of the `test_targets` that can be run."""
    return [path for path in test_targets(patch) if path.endswith(".py")]
