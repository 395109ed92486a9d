"""Who says whether a patch fixes the bug: Gumshoe's own grader, which grades each patch once, and the harness of
SWE-bench. And the tasks that their gold patch does not always fix.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.run.control import Control, run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.tasks.harness_rows import harness_rows
from gumshoe.env.tasks.rows import read_rows
from gumshoe.env.verifier import Verdict, Verifier, verify
from gumshoe.errors import ConfigError, GumshoeError, PatchError, TaskError
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.records import FlakyTask, Result
from gumshoe.eval.swebench import HarnessReport, Prediction, check_tools, run_harness, write_predictions
from gumshoe.records import Oracle, Task, TestRun

__all__ = [
    "Grader",
    "OfficialGrades",
    "Submission",
    "check_installed",
    "check_rows",
    "describe_run",
    "describe_verdict",
    "find_flaky",
    "grade_officially",
    "with_official",
    "write_all_predictions",
]


MOST_NAMED = 3
"""How many failing tests are named."""


@dataclass(frozen=True)
class Submission:
    """A patch for a task."""

    task: Task
    oracle: Oracle
    patch: str

    @property
    def key(self) -> str:
        """Identical for the same patch to the same task."""
        return digest(self.task.hash, self.patch)


class Grader:
    """Grades patches, each once; grades are kept in a file.

    Args:
        path: the file; read if it exists.
        sandbox: where the tests run.
    """

    def __init__(self, path: Path, sandbox: SandboxConfig) -> None:
        self._cache = JsonlCache(path)
        self._sandbox = sandbox

    def grade(self, answers: Iterable[Submission], control: Control, workers: int) -> None:
        """Grades the patches that have no grade yet. Raises SandboxError."""
        todo = {answer.key: answer for answer in answers if answer.patch and self.resolved(answer) is None}
        run_parallel(todo.values(), self._grade, workers=workers, control=control)

    def resolved(self, answer: Submission) -> float | None:
        """1.0 if the patch resolves the task, 0.0 if it does not or is empty; None if that is not known."""
        if not answer.patch:
            return 0.0
        resolved = (self._cache.get(answer.key) or {}).get("resolved")
        return None if resolved is None else float(resolved)

    def describe(self, answer: Submission) -> str:
        """How the tests ended with the patch, in one line; empty where it is not known."""
        if not answer.patch:
            return "no patch"
        return str((self._cache.get(answer.key) or {}).get("tests", ""))

    def _grade(self, answer: Submission) -> None:
        resolved, tests = self._judged(answer)
        self._cache.keep(answer.key, {"task_id": answer.task.id, "resolved": resolved, "tests": tests})

    def _judged(self, answer: Submission) -> tuple[bool | None, str]:
        try:
            verdict = verify(answer.task, answer.oracle, answer.patch, self._sandbox, trusted=False)
        except PatchError:
            return False, "the patch does not apply"
        except TaskError as error:
            return None, str(error)
        return None if verdict.unusable else verdict.resolved, describe_verdict(verdict)


def find_flaky(
    tasks: Sequence[tuple[Task, Oracle]],
    runs: int,
    sandbox: SandboxConfig,
    path: Path,
    control: Control,
    workers: int,
) -> tuple[FlakyTask, ...]:
    """The tasks that their gold patch does not resolve in every one of `runs` runs of the tests.

    Results are kept in the file `path`. Raises SandboxError, or TaskError if a gold patch does not apply.
    """
    cache = JsonlCache(path)

    def key(task: Task, oracle: Oracle) -> str:
        return digest(task.hash, oracle.gold_patch, runs)

    def work(pair: tuple[Task, Oracle]) -> None:
        passed, why = _gold_runs(*pair, runs, sandbox)
        cache.keep(key(*pair), {"task_id": pair[0].id, "passed": passed, "runs": runs, "why": why})

    run_parallel([pair for pair in tasks if cache.get(key(*pair)) is None], work, workers=workers, control=control)
    known = [cache.get(key(task, oracle)) for task, oracle in tasks]
    return tuple(FlakyTask.model_validate(facts) for facts in known if facts is not None and facts["passed"] < runs)


def _gold_runs(task: Task, oracle: Oracle, runs: int, config: SandboxConfig) -> tuple[int, str]:
    """How many of `runs` runs of the gold patch, each from the same files, resolve the task; and why the first of the
    others does not.
    """
    with Verifier(task, oracle, config, trusted=True) as verifier:
        explanations = [verifier.verify(oracle.gold_patch).explanation for _ in range(runs)]
    return explanations.count(""), next(filter(None, explanations), "")


def describe_run(run: TestRun) -> str:
    """How one run of the tests ended, whichever of them count."""
    failing = _failing_tests(run)
    if failing:
        return _named(failing, f"of {len(run.outcomes)} tests fail")
    if run.result.timed_out:
        return f"the tests run for more than {run.result.duration_s:.0f} s"
    if not run.passed:
        return f"the tests end with exit code {run.result.exit_code}"
    return _describe_passing(run)


def _failing_tests(run: TestRun) -> list[str]:
    return [one.id for one in run.outcomes if one.failed]


def _describe_passing(run: TestRun) -> str:
    count = sum(one.passed for one in run.outcomes)
    return "the tests pass" if count == 0 else "1 test passes" if count == 1 else f"{count} tests pass"


def describe_verdict(verdict: Verdict) -> str:
    """How the tests that count ended, with those to be fixed first."""
    if verdict.resolved:
        # The exit code is that of a variant, in which tests that count may have had to fail.
        return "the tests that count pass" if _failing_tests(verdict.run) else _describe_passing(verdict.run)
    parts = [
        _named(tests, what)
        for tests, what in (
            (verdict.failing_fail_to_pass, "still fail"),
            (verdict.failing_pass_to_pass, "that passed before fail"),
        )
        if tests
    ]
    return "; ".join([*verdict.problems, *parts])


def _named(tests: Sequence[str], what: str) -> str:
    more = f" and {len(tests) - MOST_NAMED} more" if len(tests) > MOST_NAMED else ""
    return f"{len(tests)} {what}: {', '.join(tests[:MOST_NAMED])}{more}"


RESOLVED = {"resolved": 1.0, "unresolved": 0.0, "empty": 0.0, "error": 0.0}
"""What does not apply, or takes too long, is not resolved, as on the leaderboard; what failed for a reason outside the
patch has no score."""


@dataclass(frozen=True)
class OfficialGrades:
    """The harness's reports by arm; `failure` says in one line why there are no more."""

    reports: Mapping[str, HarnessReport]
    failure: str | None = None


def write_all_predictions(
    by_arm: Mapping[str, Sequence[Result]], main: str | None, out: Path
) -> dict[str, list[Prediction]]:
    """Writes preds/ARM.jsonl for each arm that has changed code, and preds.jsonl for the one that counts most.

    The first sample of each task is predicted, even if it changed nothing.
    """
    made = {
        arm: [_predict(arm, result) for result in results if result.sample == 0 and "solved" in result.scores]
        for arm, results in by_arm.items()
    }
    made = {arm: predictions for arm, predictions in made.items() if predictions}
    for arm, predictions in made.items():
        write_predictions(out / "preds" / f"{arm}.jsonl", predictions)
    if main in made:
        write_predictions(out / "preds.jsonl", made[main])
    return made


def _predict(arm: str, result: Result) -> Prediction:
    return Prediction(instance_id=result.task_id, model_name_or_path=f"gumshoe-{arm}", model_patch=result.patch)


def check_installed() -> None:
    """Raises ConfigError where the harness is not installed, SandboxError where no Docker daemon answers."""
    try:
        check_tools()
    except ModuleNotFoundError:
        raise ConfigError("the official harness is not installed: pip install 'gumshoe-debug[swebench]'") from None


def check_rows(config: EvalConfig, ids: Collection[str]) -> list[dict[str, Any]]:
    """The rows of these tasks as the harness wants them.

    Raises:
        ConfigError: the tasks are not from SWE-bench.
        TaskError: the rows cannot be read, or, a line for each, some are missing or cannot be completed.
    """
    assert config.harness is not None
    name, _, path = config.tasks.source.partition(":")
    if name != "swebench":
        raise ConfigError(f"harness grades SWE-bench only, and the tasks come from {name}: leave it out")
    options = config.tasks.options
    source = config.harness.rows or path or options.get("path", "SWE-bench/SWE-bench_Lite")
    found = read_rows(str(source), str(options.get("split", "test")))
    rows = {name: row for row in found if isinstance(name := row.get("instance_id"), str)}
    missing = sorted(set(ids) - rows.keys())
    if missing:
        raise TaskError(
            "\n".join(f"task {name}: {source} has no row for it, which the harness needs" for name in missing)
        )
    return harness_rows(row for name, row in rows.items() if name in ids)


def grade_officially(
    config: EvalConfig,
    rows: Sequence[Mapping[str, Any]],
    predictions: Mapping[str, Sequence[Prediction]],
    say: Callable[[str], None],
) -> OfficialGrades:
    """The harness's report on each arm's predictions, up to the first arm on which it fails."""
    assert config.harness is not None
    reports: dict[str, HarnessReport] = {}
    for arm, of_arm in predictions.items():
        wanted = {prediction.instance_id for prediction in of_arm}
        say(f"official harness: {arm}, {sum(bool(one.model_patch) for one in of_arm)} patches")
        try:
            report = run_harness(
                [row for row in rows if row["instance_id"] in wanted],
                of_arm,
                Path(config.out) / "harness" / arm,
                workers=config.harness.workers,
                timeout_s=config.harness.timeout_s,
            )
        except (GumshoeError, OSError) as error:
            return OfficialGrades(reports, f"the official harness failed on arm {arm}: {' '.join(str(error).split())}")
        reports[arm] = report
        say(f"official harness: {arm}, {len(report.resolved)} of {len(of_arm)} resolved, {report.path}")
    return OfficialGrades(reports)


def with_official(
    by_arm: Mapping[str, Sequence[Result]], reports: Mapping[str, HarnessReport]
) -> dict[str, list[Result]]:
    """The results with the harness's verdict, on the first sample of each task."""
    return {
        arm: [
            result.model_copy(
                update={"scores": {**result.scores, "official": _official_score(reports[arm], result.task_id)}}
            )
            if result.sample == 0 and arm in reports and result.task_id in reports[arm].outcomes
            else result
            for result in results
        ]
        for arm, results in by_arm.items()
    }


def _official_score(report: HarnessReport, task_id: str) -> float | None:
    return None if task_id in report.outside else RESOLVED[report.outcomes[task_id]]
