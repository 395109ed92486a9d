"""Published rows: read from files or a hub, checked column by column, and what their images have in common.

The images of SWE-bench and of the sets that follow it hold the repository in /testbed, with its environment.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gumshoe.config import parse_yaml
from gumshoe.env.diff import parse_patch
from gumshoe.env.tasks.taskset import OnError, load_entries, refuse
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import parse_json, read_bounded, read_json, read_jsonl

Columns = Mapping[str, Any]

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


def read_rows(path: str | Path, split: str = "test") -> list[Columns]:
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


def _checked(rows: Iterable[Any], file: Path) -> Iterator[Columns]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise TaskError(f"{file}: row {number} is not a mapping of columns to values")
        yield row


def _from_task_repository(folder: Path, split: str) -> list[Columns]:
    """A row for each folder in `tasks`, whose files are columns; one that cannot be read lacks them."""
    places = sorted(file.parent for file in folder.glob("tasks/*/task.yaml"))
    rows: list[Columns] = [{"instance_id": place.name, "split": split, **_columns(place)} for place in places]
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


def _from_hub(name: str, split: str) -> list[Columns]:
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        loaded = datasets.load_dataset(name, split=split)
    except (OSError, ValueError, DatasetsError) as error:
        first = str(error).strip().splitlines()[0]
        raise TaskError(f"no file and no dataset {name!r} with split {split!r}: {first}") from None
    return [dict(row) for row in loaded if isinstance(row, dict)]


@dataclass(frozen=True)
class Row:
    """A row of a benchmark, which says in messages where something is wrong.

    Attributes:
        columns: the columns and their values.
        number: which of the rows it is, from 1.
        folder: the folder of the file that it is from.
        name_column: the column that names its task.
    """

    columns: Columns
    number: int = 1
    folder: Path = Path()
    name_column: str = "instance_id"

    def __getitem__(self, column: str) -> Any:
        return self.columns[column]

    def get(self, column: str) -> Any:
        """The value of a column; None where it is missing."""
        return self.columns.get(column)

    @property
    def name(self) -> str:
        """What the row is called in messages: its task, or its number if it does not say."""
        name = self.get(self.name_column)
        return f"task {name}" if isinstance(name, str) and name else f"row {self.number}"

    def error(self, problem: str) -> TaskError:
        """What to raise because of the row."""
        return TaskError(f"{self.name}: {problem}")

    def require(self, columns: Sequence[str], *, texts: Sequence[str] = ()) -> None:
        """Raises TaskError if one of `columns` is missing, or one of `texts` among them is not a string."""
        missing = [column for column in columns if self.get(column) is None]
        if missing:
            raise self.error(f"column {missing[0]} is missing")
        wrong = [column for column in texts if not isinstance(self[column], str)]
        if wrong:
            raise self.error(f"column {wrong[0]} is not a string")

    def json(self, column: str) -> Any:
        """A value that may be stored as JSON in a string. Raises TaskError."""
        value = self[column]
        if not isinstance(value, str):
            return value
        try:
            return parse_json(value)
        except ValueError as error:
            raise self.error(f"column {column} is not JSON: {error}") from None

    def tests(self, column: str) -> tuple[str, ...]:
        """A list of test ids; many sets keep it in a string, as JSON or as Python writes a list. Raises TaskError."""
        value = self[column]
        try:
            value = self.json(column)
        except TaskError:
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(value)
        if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
            raise self.error(f"column {column} is not a list of test ids")
        return tuple(value)


@dataclass(frozen=True)
class RowSource:
    """A benchmark that is published as rows.

    Attributes:
        make: the task and the answer of a row; told whether the regime is `debug`. Raises TaskError.
        graded: a task as a grader runs it.
        path, split, regime: what is read unless something else is asked for.
        names: short names of datasets.
        name_column: the column that names a row's task.
    """

    make: Callable[[Row, bool], tuple[Task, Oracle]]
    graded: Callable[[Task, Oracle], Task]
    path: str
    split: str
    regime: str
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    name_column: str = "instance_id"

    def load(
        self,
        path: str | Path | None = None,
        split: str | None = None,
        regime: str | None = None,
        *,
        on_error: OnError = refuse,
    ) -> list[tuple[Task, Oracle]]:
        """The instances in their order.

        Args:
            path: a .jsonl, .json or .parquet file, a task repository (a folder with sweb.yaml), or the name of a
                dataset on the hub.
            split: of the task repository or the dataset.
            regime: `issue` or `debug`.
            on_error: may take the error of a single row.

        Raises:
            TaskError: the source cannot be read, or a row lacks a column or holds something else there.
        """
        place, regime = path or self.path, regime or self.regime
        if regime not in ("issue", "debug"):
            raise TaskError(f"no regime {regime!r}: give issue or debug")
        place = self.names.get(str(place), place)
        folder = Path(place).resolve().parent
        rows = (
            Row(columns, number, folder, self.name_column)
            for number, columns in enumerate(read_rows(place, split or self.split), 1)
        )
        return load_entries(rows, lambda row: self.make(row, regime == "debug"), on_error)


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
