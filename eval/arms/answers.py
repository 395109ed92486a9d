"""Other explorers' answers as packs: lists of places, and what CodeScout and FastContext write, as such lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gumshoe import __version__
from gumshoe.collect.episode.spec import task_ref
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import Checks, CollectedPacks, EvalRun, Hooks, PackSource, Pair, open_repositories
from gumshoe.eval.config import AnswersConfig, EvalConfig
from gumshoe.eval.score.buggy_code import BuggyCode, check_buggy_code
from gumshoe.records import ContextPack, Location, Message, PolicyInfo, Provenance, StopReason, Task, Trajectory
from gumshoe.storage import describe, parse_json, read_jsonl

CITATION = re.compile(r"^\s*(?:[-*]\s*)?`?(?P<path>[^\s:`]+):(?P<start>\d+)(?:-(?P<end>\d+))?`?", re.MULTILINE)
FINAL = re.compile(r"<final_answer>(.*?)(?:</final_answer>|\Z)", re.DOTALL)
PLACE = re.compile(r"(?P<path>[^:]+)(?::(?:(?P<start>\d+)(?:-(?P<end>\d+))?|(?P<name>[^\d:].*)))?")


def _codescout_places(answer: Any) -> list[str]:
    """From the arguments of `localization_finish`, or its `locations`: file, class_name and function_name of each."""
    given = parse_json(answer) if isinstance(answer, str) else answer
    items = given.get("locations") if isinstance(given, Mapping) else given
    places: list[str] = []
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("file"), str):
            names = [name for key in ("class_name", "function_name") if isinstance(name := item.get(key), str) and name]
            places.append(f"{item['file']}:{'.'.join(names)}" if names else item["file"])
    return places


def _fastcontext_places(answer: Any) -> list[str]:
    """From the last `<final_answer>`: one `path:start-end` per line. Other lines are left out."""
    answers = FINAL.findall(answer) if isinstance(answer, str) else []
    found = CITATION.finditer(answers[-1]) if answers else ()
    spans = [(match["path"], int(match["start"]), int(match["end"] or match["start"])) for match in found]
    return [f"{path}:{start}-{end}" for path, start, end in spans if 1 <= start <= end]


CONVERTERS: Mapping[str, Callable[[Any], list[str]]] = {
    "codescout": _codescout_places,
    "fastcontext": _fastcontext_places,
}
"""By format, what makes `locations` of the column `answer`. Raises ValueError."""


class AnswerPacks(PackSource):
    """Another explorer's answers, read from a file: an episode without turns for each task."""

    def __init__(self, answers: AnswersConfig, config: EvalConfig) -> None:
        self._path = Path(answers.path).expanduser()
        self._convert = CONVERTERS.get(answers.format)
        self._config = config
        self._format = answers.format

    @property
    def policy(self) -> PolicyInfo:
        """Who answered."""
        return PolicyInfo(kind=self._format, agent="seeker")

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Nothing is left to run. It is a fault if a line is not an answer in the format, if none answers one of the
        tasks, or if a task has neither its image here nor a repository with its base commit.
        """
        with checks.collect():
            if not any(task.id in self._rows for task, _ in tasks) and tasks:
                named = f"; it has {next(iter(self._rows))}, for example" if self._rows else ""
                raise DatasetError(f"{self._path} answers none of the tasks, such as {tasks[0][0].id}{named}")
            for task, _ in tasks:
                self._rough_episode(task)
        if attempts:  # What was run before has its files in the run folder.
            with checks.collect():
                check_buggy_code((task for task, _ in tasks), self._config.sandbox, open_repositories(self._config))
        return 0

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """A pack for each task; without an answer in the file, an empty pack and an episode that handed over nothing.

        Raises SandboxError or TaskError if the files of a task in an image, needed to look up names, cannot be read.
        """
        # Only its answer says which files of a task in an image are needed.
        code = run.buggy_code([self._rough_episode(task) for task, _ in run.tasks], "answers.jsonl")
        episodes = {(task.id, 0): self._episode(task, code) for task, _ in run.tasks}
        return CollectedPacks({key: one.context_pack or ContextPack() for key, one in episodes.items()}, episodes)

    def _rough_episode(self, task: Task) -> Trajectory:
        """The answer before names are looked up, which stand for the first line of their file until then."""
        return self._episode(task, BuggyCode([]))

    def _episode(self, task: Task, code: BuggyCode) -> Trajectory:
        pack = self._pack(task, code)
        return Trajectory(
            id=f"{task.id}#answer",
            task=task_ref(task),
            policy=self.policy,
            tools=(),
            messages=(Message(role="user", content=task.problem_statement),),
            steps=(),
            stop=StopReason.UNKNOWN if pack is None else StopReason.REPORTED,
            context_pack=pack,
            provenance=Provenance(gumshoe=__version__, python="", sandbox="none"),
        )

    def _pack(self, task: Task, code: BuggyCode) -> ContextPack | None:
        """The answer to a task; without a converter, the other fields of a pack may stand beside its `locations`."""
        row = self._rows.get(task.id)
        if row is None:
            return None
        try:
            given = row["locations"] if self._convert is None else self._convert(row["answer"])
            if not isinstance(given, list):
                raise ValueError("locations is not a list")
            places = [_place(item, task, code) if isinstance(item, str) else item for item in given]
            fields = ContextPack.model_fields if self._convert is None else ()
            facts = {name: row[name] for name in fields if name in row}
            return ContextPack.model_validate({**facts, "locations": places})
        except ValidationError as error:
            raise DatasetError(f"{self._path}: the pack of {task.id} is invalid: {describe(error)}") from None
        except ValueError as error:
            raise DatasetError(f"{self._path}: the answer to {task.id} cannot be read: {error}") from None

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        """The lines by task id. Raises DatasetError."""
        column = "locations" if self._convert is None else "answer"
        rows: dict[str, dict[str, Any]] = {}
        for number, row in read_jsonl(self._path):
            name = row.get("task_id") or row.get("instance_id")
            if not name or column not in row:
                raise DatasetError(
                    f"{self._path} line {number} is not an answer: it needs task_id and {column} "
                    f"(format {self._format})"
                )
            rows[str(name)] = row
        return rows


def _place(text: str, task: Task, code: BuggyCode) -> Location:
    """`path`, `path:12`, `path:12-20`, or `path:Class.method`, which is looked up in the file before the repair.

    A path alone, and a name that is not there, stand for the file's first line. Raises ValueError.
    """
    match = PLACE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not path, path:line, path:start-end or path:name")
    path, name = match["path"], match["name"]
    if match["start"] is not None:
        return Location(path=path, start=int(match["start"]), end=int(match["end"] or match["start"]))
    span = next((span for span in code.spans(task.id, path) or () if span.name == name), None)
    start, end = (1, 1) if span is None else (span.start, span.end)
    return Location(path=path, start=start, end=end, symbol=name)
