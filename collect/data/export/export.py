"""Run folders in, a dataset folder out: Parquet shards with explicit features, written row by row."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.collect.data.export.card import Statistics, render_card
from gumshoe.collect.data.export.rows import (
    COLUMNS,
    DECISION_COLUMNS,
    SPLITS,
    Dropped,
    SeekerView,
    agent_decision_rows,
    agent_row,
    decision_rows,
    held_out_projects,
    is_held_out_bug,
    split_of,
)
from gumshoe.collect.data.export.trees import PREFERENCE_COLUMNS, SCORED_COLUMNS, TREE_VIEWS, TreeRows
from gumshoe.collect.data.store import Copies, read_trajectories
from gumshoe.errors import DatasetError
from gumshoe.records import Trajectory
from gumshoe.storage import new_folder

if TYPE_CHECKING:
    from datasets import Features
    from datasets.arrow_writer import ParquetWriter

VIEWS = ("agent", "seeker", "agent_decisions", "seeker_decisions", *TREE_VIEWS)
DEFAULT_VIEWS = ("agent", "seeker")
ROWS_A_GROUP, ROWS_A_SHARD = 32, 5000
FINGERPRINT_DIGITS = 12


@dataclass(frozen=True)
class ExportResult:
    """Rows by view and split, and what each view left out, by reason."""

    rows: dict[str, dict[str, int]]
    dropped: dict[str, dict[str, int]]


@dataclass(frozen=True)
class _View:
    """One kind of rows: its columns with their kinds, and how the rows of an episode are made, which raises Dropped."""

    columns: Mapping[str, str]
    rows: Callable[[Trajectory], Iterable[dict[str, Any]]]


def export_runs(
    runs: Sequence[Path],
    out: Path,
    *,
    views: Sequence[str] = DEFAULT_VIEWS,
    test_share: float = 0.1,
    unresolved: bool = False,
    held_out_bugs: bool = False,
    license: str = "mit",
) -> ExportResult:
    """Writes the dataset of `runs` to `out`. An earlier export there is replaced in one step.

    Reads each run twice, and twice more for the views of trees, one trajectory at a time: memory does not grow with
    the runs, except for a few bytes for each episode, and for what is kept of each decision that was tried along with
    others. An episode that is there twice, such as in two runs, is exported once.

    Args:
        runs: run folders.
        out: the dataset folder.
        views: of `VIEWS`; those of decisions have a row for each turn.
        test_share: share of the projects whose rows make the test split.
        unresolved: also export episodes that did not resolve their task. Without it, the agent views hold episodes
            that did, or that were not judged; the seeker views hold only ones that did, plus a seeker's own. The views
            of trees always hold failed episodes, too.
        held_out_bugs: keep episodes on bugs that their source holds out for evaluation.
        license: identifier for the card.

    Raises:
        DatasetError: a run is missing or broken, no row is left, `out` is something other than an export, or different
            episodes of a tree have one id.
    """
    _check_target(out)
    projects = _survey(runs, unique=not TREE_VIEWS.isdisjoint(views))
    held_out = held_out_projects(projects, test_share)
    names = _names(runs)
    identities: dict[str, str] = {}
    sandboxes: Counter[str] = Counter()
    with new_folder(out) as fresh:
        made = _make_views(views, runs, unresolved)
        with ExitStack() as files:
            writers = {name: _ViewWriter(view, fresh / name, files) for name, view in made.items()}
            copies = Copies()
            for run, trajectory in _episodes(runs, copies):
                identities[names[run]] = trajectory.provenance.config_hash
                sandboxes[trajectory.provenance.sandbox] += 1
                split = split_of(trajectory, held_out)
                left_out = is_held_out_bug(trajectory) and not held_out_bugs
                for writer in writers.values():
                    if left_out:
                        writer.counts.dropped["held-out bug"] += 1
                    else:
                        writer.add(trajectory, split)
        counts = {name: writer.counts for name, writer in writers.items()}
        if copies.count:
            for of_view in counts.values():
                of_view.dropped["given more than once"] = copies.count
        if not any(of_view.rows.total() for of_view in counts.values()):
            raise DatasetError(f"no rows are left from {', '.join(map(str, runs))}: {_reasons(counts)}")
        fingerprint = _add_fingerprint(fresh)
        card = render_card(
            counts,
            columns={name: view.columns for name, view in made.items()},
            fingerprint=fingerprint,
            license=license,
            runs=identities,
            sandboxes=sandboxes,
        )
        (fresh / "README.md").write_text(card, encoding="utf-8")
    return ExportResult(
        rows={name: {split: of_view.rows[split] for split in SPLITS} for name, of_view in counts.items()},
        dropped={name: dict(of_view.dropped) for name, of_view in counts.items()},
    )


def _make_views(names: Sequence[str], runs: Sequence[Path], unresolved: bool) -> dict[str, _View]:
    """The views of these names."""
    seeker = SeekerView(unresolved=unresolved)
    wanted = (lambda trajectory: trajectory) if unresolved else _not_lost
    needs_trees = not TREE_VIEWS.isdisjoint(names)
    trees = TreeRows(lambda: (trajectory for _, trajectory in _episodes(runs, Copies())) if needs_trees else ())
    views = {
        "agent": _View(COLUMNS, lambda trajectory: [agent_row(_whole(wanted(trajectory)))]),
        "seeker": _View(COLUMNS, lambda trajectory: [seeker.row(_whole(trajectory))]),
        "agent_decisions": _View(DECISION_COLUMNS, lambda trajectory: agent_decision_rows(wanted(trajectory))),
        "seeker_decisions": _View(DECISION_COLUMNS, lambda trajectory: decision_rows(seeker.row(_whole(trajectory)))),
        "preferences": _View(PREFERENCE_COLUMNS, trees.preferences),
        "steps_scored": _View(SCORED_COLUMNS, lambda trajectory: [trees.scored(trajectory)]),
    }
    return {name: views[name] for name in names}


def _not_lost(trajectory: Trajectory) -> Trajectory:
    """The trajectory, unless its patch failed the tests. Raises Dropped."""
    if trajectory.resolved is False:
        raise Dropped("not resolved")
    return trajectory


def _whole(trajectory: Trajectory) -> Trajectory:
    """The trajectory, if the agent saw all of it: one row cannot tell what was left out when. Raises Dropped."""
    if any(step.elided for step in trajectory.steps):
        raise Dropped("old observations were left out: see agent_decisions")
    return trajectory


def _survey(runs: Sequence[Path], unique: bool) -> set[str]:
    """The projects of all episodes. With `unique`, raises DatasetError where two of them have one id."""
    projects: set[str] = set()
    places: dict[str, Path] = {}
    for run, trajectory in _episodes(runs, Copies()):
        projects.add(trajectory.task.project)
        if unique and trajectory.id in places:
            raise DatasetError(
                f"different episodes in {places[trajectory.id]} and {run} have the id {trajectory.id}: "
                f"export {' and '.join(sorted(TREE_VIEWS))} from one of them at a time"
            )
        places[trajectory.id] = run
    return projects


def _episodes(runs: Sequence[Path], copies: Copies) -> Iterator[tuple[Path, Trajectory]]:
    """All episodes, each once, with the run that they are in."""
    for run in runs:
        for trajectory in copies.leave_out(read_trajectories(run)):
            yield run, trajectory


def _names(runs: Sequence[Path]) -> dict[Path, str]:
    """What the card calls the runs: their paths below the innermost folder around all of them, which differ even where
    the names of folders do not, and show no more of the machine's folders than that takes.
    """
    paths = {run: run.resolve() for run in runs}
    around = os.path.commonpath([path.parent for path in paths.values()]) if paths else ""
    return {run: path.relative_to(around).as_posix() for run, path in paths.items()}


def _reasons(counts: Mapping[str, Statistics]) -> str:
    dropped: Counter[str] = sum((of_view.dropped for of_view in counts.values()), Counter())
    return ", ".join(f"{count} {reason}" for reason, count in dropped.most_common()) or "the runs hold no trajectory"


def _check_target(out: Path) -> None:
    if not out.exists():
        return
    earlier = out / "README.md"
    if out.is_dir() and (not any(out.iterdir()) or (earlier.is_file() and "- gumshoe\n" in earlier.read_text("utf-8"))):
        return
    raise DatasetError(f"{out} exists and is not a Gumshoe export: choose another --out")


def _add_fingerprint(folder: Path) -> str:
    """Renames every `SPLIT-NNNNN.parquet` below `folder` to `SPLIT-FINGERPRINT-NNNNN.parquet`.

    `datasets.load_dataset` keeps what it has read in a cache, under a key made from the last part of the folder's path
    and the card's header, not from the data: of two exports called `dataset`, the older one's rows would be returned
    for both. The names of the shards are in the header, so with a fingerprint in them each has a key of its own.

    Returns:
        The fingerprint: the first digits of the SHA-256 of all shards, in the order of their paths.
    """
    digest = hashlib.sha256()
    shards = sorted(folder.rglob("*.parquet"))
    for shard in shards:
        digest.update(shard.relative_to(folder).as_posix().encode())
        with shard.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    fingerprint = digest.hexdigest()[:FINGERPRINT_DIGITS]
    for shard in shards:
        split, _, number = shard.name.rpartition("-")
        shard.rename(shard.with_name(f"{split}-{fingerprint}-{number}"))
    return fingerprint


def features(columns: Mapping[str, str]) -> Features:
    """The columns' types. `Json` keeps each tool's own arguments: plain Arrow would add null keys to all of them."""
    from datasets import Features, Json, List, Value

    types = {
        "string": Value("string"),
        "bool": Value("bool"),
        "int": Value("int64"),
        "json": Json(),
        "float": Value("float64"),
        "list of json": List(Json()),
        "list of string": List(Value("string")),
        "list of bool": List(Value("bool")),
        "list of int": List(Value("int64")),
        "list of float": List(Value("float64")),
    }
    return Features({name: types[kind] for name, kind in columns.items()})


class _ViewWriter:
    """Writes the rows of one view, and counts them."""

    def __init__(self, view: _View, folder: Path, files: ExitStack) -> None:
        self.counts = Statistics()
        self._rows = view.rows
        self._shards = {
            split: files.enter_context(_ShardWriter(folder, split, columns=view.columns)) for split in SPLITS
        }

    def add(self, trajectory: Trajectory, split: str) -> None:
        """Writes the rows of an episode, if the view has any of it."""
        try:
            rows = list(self._rows(trajectory))
        except Dropped as dropped:
            self.counts.dropped[dropped.reason] += 1
            return
        for row in rows:
            self._shards[split].write(row)
            self.counts.add(split, row, trajectory)


class _ShardWriter:
    """Writes the rows of one split of one view to `SPLIT-00000.parquet`, ... Memory stays at one row group."""

    def __init__(self, folder: Path, split: str, *, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._folder = folder
        self._split = split
        self._in_shard = 0
        self._shards = 0
        self._writer: ParquetWriter | None = None

    def __enter__(self) -> _ShardWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._writer is not None and kind is not None:
            self._writer.close()  # What is pending would be written to a folder that is thrown away.
        else:
            self._finish()

    def write(self, row: dict[str, Any]) -> None:
        """Adds a row."""
        if self._writer is None:
            self._writer = self._begin()
        self._writer.write(row)
        self._in_shard += 1
        if self._in_shard >= ROWS_A_SHARD:
            self._finish()

    def _begin(self) -> ParquetWriter:
        from datasets.arrow_writer import ParquetWriter

        self._folder.mkdir(parents=True, exist_ok=True)
        path = os.fspath(self._folder / f"{self._split}-{self._shards:05d}.parquet")
        self._shards += 1
        self._in_shard = 0
        return ParquetWriter(features=features(self._columns), path=path, writer_batch_size=ROWS_A_GROUP)

    def _finish(self) -> None:
        """Ends the shard at hand, if there is one."""
        if self._writer is not None:
            self._writer.finalize()
            self._writer = None
