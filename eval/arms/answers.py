"""Other explorers' answers as packs and rankings: a list of places, and the answers of CodeScout and FastContext."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gumshoe import __version__
from gumshoe.collect.episode.spec import task_ref
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import CollectedPacks, EvalRun, Hooks, Pair
from gumshoe.eval.checks import Checks
from gumshoe.eval.config import AnswersConfig
from gumshoe.eval.score.ranking import Ranked
from gumshoe.eval.score.sources import Sources, check_sources, fetch_sources
from gumshoe.records import ContextPack, Location, Message, PolicyInfo, Provenance, StopReason, Task, Trajectory
from gumshoe.storage import describe, parse_json, read_jsonl

__all__ = ["AnswerPacks"]

CITATION = re.compile(r"^\s*(?:[-*]\s*)?`?(?P<path>[^\s:`]+):(?P<start>\d+)(?:-(?P<end>\d+))?`?", re.MULTILINE)
FINAL = re.compile(r"<final_answer>(.*?)(?:</final_answer>|\Z)", re.DOTALL)
PLACE = re.compile(r"(?P<path>[^:]+)(?::(?:(?P<start>\d+)(?:-(?P<end>\d+))?|(?P<name>[^\d\W][\w.]*)))?")


@dataclass(frozen=True)
class ExplorerAnswer:
    """What an explorer named; `ranked` if it ranks by names alone."""

    pack: ContextPack
    ranked: Ranked | None = None


class NameLookup:
    """Finds classes and functions in the files of a task before the repair."""

    def __init__(self, sources: Sources, task_id: str) -> None:
        self._sources = sources
        self._task_id = task_id

    def place(self, path: str, name: str = "") -> Location:
        """Where the class or function is; the file's first line where there is none, or `name` is empty."""
        span = next((span for span in self._spans(path) if span.name == name), None)
        start, end = (1, 1) if span is None else (span.start, span.end)
        return Location(path=path, start=start, end=end, symbol=name or None)

    def _spans(self, path: str) -> Sequence[Any]:
        return self._sources.spans(self._task_id, path) or ()


def _codescout(given: Any, lookup: NameLookup) -> ExplorerAnswer:
    """The arguments of `localization_finish`, or its `locations`: file, class_name and function_name of each."""
    given = parse_json(given) if isinstance(given, str) else given
    items = given.get("locations") if isinstance(given, Mapping) else given
    files: list[str] = []
    functions: list[str] = []
    places: list[Location] = []
    for item in items if isinstance(items, list) else ():
        if not (isinstance(item, Mapping) and isinstance(item.get("file"), str)):
            continue
        path = item["file"]
        outer, function = ([name] if isinstance(name, str) and name else [] for name in _pair(item))
        files.append(path)
        functions += [f"{path}:{'.'.join((*outer, name))}" for name in function]
        places.append(lookup.place(path, ".".join((*outer, *function))))
    ranked = Ranked(tuple(dict.fromkeys(files)), tuple(dict.fromkeys(functions)))
    return ExplorerAnswer(ContextPack(locations=tuple(places)), ranked)


def _pair(item: Mapping[str, Any]) -> tuple[Any, Any]:
    return item.get("class_name"), item.get("function_name")


def _fastcontext(given: Any, lookup: NameLookup) -> ExplorerAnswer:
    """The last `<final_answer>`: one `path:start-end` per line. Other lines are left out."""
    answers = FINAL.findall(given) if isinstance(given, str) else []
    found = CITATION.finditer(answers[-1]) if answers else ()
    spans = [(match["path"], int(match["start"]), int(match["end"] or match["start"])) for match in found]
    places = (Location(path=path, start=start, end=end) for path, start, end in spans if 1 <= start <= end)
    return ExplorerAnswer(ContextPack(locations=tuple(places)))


def _places(row: Mapping[str, Any], lookup: NameLookup) -> ExplorerAnswer:
    """`locations`, best first: `path`, `path:12`, `path:12-20` or `path:Class.method`, or objects as in a pack.

    Whatever else a pack holds, such as `findings`, may stand beside them.
    """
    given = row["locations"]
    if not isinstance(given, list):
        raise ValueError("locations is not a list")
    places = [_place(item, lookup) if isinstance(item, str) else item for item in given]
    facts = {name: value for name, value in row.items() if name in ContextPack.model_fields}
    return ExplorerAnswer(ContextPack.model_validate({**facts, "locations": places}))


def _place(text: str, lookup: NameLookup) -> Location:
    match = PLACE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not path, path:line, path:start-end or path:name")
    if match["start"] is None:
        return lookup.place(match["path"], match["name"] or "")
    return Location(path=match["path"], start=int(match["start"]), end=int(match["end"] or match["start"]))


@dataclass(frozen=True)
class AnswerFormat:
    """How one kind of answer is read.

    Args:
        column: what a line must have, besides the task's name.
        read: makes an answer from a line, or from its column `answer` if that is the column. Raises ValueError.
    """

    column: str
    read: Callable[[Any, NameLookup], ExplorerAnswer]


FORMATS: Mapping[str, AnswerFormat] = {
    "codescout": AnswerFormat("answer", _codescout),
    "fastcontext": AnswerFormat("answer", _fastcontext),
    "places": AnswerFormat("locations", _places),
}


class AnswerPacks:
    """Another explorer's answers, read from a file: an episode without turns for each task.

    Args:
        config: the file and its format.
    """

    def __init__(self, config: AnswersConfig) -> None:
        self._config = config
        self._path = Path(config.path).expanduser()
        self.policy = PolicyInfo(kind=config.format, agent="seeker")

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Nothing is left to run. It is a fault if a line is not an answer, or if none answers one of the tasks."""
        with checks.collect():
            if not any(task.id in self._given for task, _ in tasks) and tasks:
                named = f"; it has {next(iter(self._given))}, for example" if self._given else ""
                raise DatasetError(f"{self._path} answers none of the tasks, such as {tasks[0][0].id}{named}")
        return 0

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """A pack for each task; without an answer in the file, an empty pack and an episode that handed over nothing.

        Raises:
            DatasetError: an answer is not in its format.
            TaskError: a task has neither its image here nor a repository with its base commit.
            SandboxError: the files of a task in an image, needed to look up function names, cannot be read.
        """
        check_sources((task for task, _ in run.tasks), run.config.sandbox, run.repositories)
        rough = [self._episode(task, self._answer(task, Sources([]))) for task, _ in run.tasks]
        path, config = run.out / "answers.jsonl", run.config
        fetched = fetch_sources(run.tasks, rough, config.sandbox, path, run.control, config.workers, run.repositories)
        sources = Sources((task for task, _ in run.tasks), fetched)
        answers = {task.id: self._answer(task, sources) for task, _ in run.tasks}
        episodes = {(task.id, 0): self._episode(task, answers[task.id]) for task, _ in run.tasks}
        return CollectedPacks(
            {key: one.context_pack or ContextPack() for key, one in episodes.items()},
            episodes,
            ranked={
                name: answer.ranked
                for name, answer in answers.items()
                if answer is not None and answer.ranked is not None
            },
        )

    def _episode(self, task: Task, answer: ExplorerAnswer | None) -> Trajectory:
        return Trajectory(
            id=f"{task.id}#answer",
            task=task_ref(task),
            policy=self.policy,
            tools=(),
            messages=(Message(role="user", content=task.problem_statement),),
            steps=(),
            stop=StopReason.UNKNOWN if answer is None else StopReason.REPORTED,
            context_pack=None if answer is None else answer.pack,
            provenance=Provenance(gumshoe=__version__, python="", sandbox="none"),
        )

    def _answer(self, task: Task, sources: Sources) -> ExplorerAnswer | None:
        given = self._given.get(task.id)
        if given is None:
            return None
        try:
            return FORMATS[self._config.format].read(given, NameLookup(sources, task.id))
        except ValidationError as error:
            raise DatasetError(f"{self._path}: the pack of {task.id} is invalid: {describe(error)}") from None
        except json.JSONDecodeError:
            raise DatasetError(f"{self._path}: the answer to {task.id} is not JSON") from None
        except ValueError as error:
            raise DatasetError(f"{self._path}: the answer to {task.id} cannot be read: {error}") from None

    @cached_property
    def _given(self) -> dict[str, Any]:
        """What each line gives, by task id. Raises DatasetError."""
        column = FORMATS[self._config.format].column
        given: dict[str, Any] = {}
        for number, row in read_jsonl(self._path):
            name = row.get("task_id") or row.get("instance_id")
            if not name or column not in row:
                raise DatasetError(
                    f"{self._path} line {number} is not an answer: it needs task_id and {column} "
                    f"(format {self._config.format})"
                )
            given[str(name)] = row["answer"] if column == "answer" else row
        return given
