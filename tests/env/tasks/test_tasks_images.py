"""Tasks whose repository is in a container image, laid out as the official ones are: what holds in their sandboxes."""

import json
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.diff import make_patch
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier import grade
from gumshoe.env.verifier.check import check_task, check_tasks
from gumshoe.env.workspace import Workspace
from gumshoe.records import Limits, Oracle, Task, ToolCall
from support.sandboxes.testbed_images import CLEAN, GOLD, REPO, a_row, built_image

pytestmark = pytest.mark.needs("docker")

DOCKER = SandboxConfig(kind="docker", pull="never")
SHOP = REPO["shop.py"]
LATER = """\
RUN cd /testbed && git checkout -q -b later && echo 'x = 2' > old.py && git add -A && \\
    git -c user.name=t -c user.email=t@t commit -qm 'The answer' && git tag answer && git checkout -q main
"""


@pytest.fixture(scope="module")
def image() -> Generator[str]:
    with built_image(more=LATER) as name:
        yield name


def loaded(folder: Path, row: dict[str, Any], source: str = "swebench", **options: Any) -> tuple[Task, Oracle]:
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n")
    ((task, oracle),) = load_tasks(source, path=rows, **options)
    return task, oracle


def test_what_is_wrong_with_one_task_is_said_and_the_others_go_on(image: str, tmp_path: Path) -> None:
    """An answer that repairs nothing, one that does not fit, an image that is not there, tests that hang."""
    wrong = make_patch({"shop.py": (SHOP, SHOP.replace(b"return n", b"return 5 * n", 2))})
    hanging = b"import time\n\n\ndef test_double():\n    time.sleep(600)\n"
    rows = [
        a_row(image, instance_id="wrong", patch=wrong),
        a_row(image, instance_id="drifted", patch=make_patch({"shop.py": (b"other\n", b"text\n")})),
        a_row("gumshoe-test-no-such-image:latest", instance_id="absent"),
        a_row(image, instance_id="drifted-tests", test_patch=make_patch({"tests/test_shop.py": (b"a\n", b"b\n")})),
        a_row(image, instance_id="hanging", test_patch=make_patch({"tests/test_hang.py": (None, hanging)})),
        a_row(image, instance_id="good"),
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    short = {"limits": Limits(command_timeout_s=5.0)}
    tasks = [
        (task.model_copy(update=short) if task.id == "hanging" else task, oracle)
        for task, oracle in load_tasks("swebench", path=path)
    ]
    found = {result.task_id: "; ".join(result.problems) for result in check_tasks(tasks, DOCKER, workers=2)}
    said = {
        "good": "",
        "wrong": "with the gold patch these tests should pass and do not",
        "drifted": "task drifted: the patch does not apply: shop.py:1 should be",
        "absent": "task absent: its image gumshoe-test-no-such-image:latest is not here",
        "drifted-tests": "task drifted-tests: its test patch: the patch does not apply",
        "hanging": "the tests run for more than ",
    }
    assert [task for task, text in said.items() if text not in found[task] or (not text and found[task])] == []
    late = grade(*tasks[4], GOLD, DOCKER)
    assert (late.outcome, late.explanation) == ("error", "task hanging: the tests run for more than 5 s")


def test_an_instance_is_proven_and_its_environment_is_active_in_every_session(image: str, tmp_path: Path) -> None:
    task, oracle = loaded(tmp_path, a_row(image), regime="debug")
    assert check_task(task, oracle, DOCKER).problems == ()
    python = "/opt/miniconda3/envs/testbed/bin/python"
    with closing(DebugEnv(task, tools=["pdb"], sandbox=DOCKER, trusted=True)) as env:
        env.reset(seed=0)
        script = ["sh", "-c", "command -v python; echo $CONDA_DEFAULT_ENV $MORE"]
        assert env.sandbox.run(script, env={"MORE": "more"}).output.split() == [python, "testbed", "more"]
        session = env.sandbox.open_session(["python", "-c", "import sys; print(sys.executable)"])
        assert session.wait_message(30).output.strip() == python
        commands = "b shop.py:7\nc\np __import__('sys').executable, n"
        observation, *_ = env.step(ToolCall(id="1", name="pdb", arguments={"command": commands}))
        assert python in observation["text"]


@pytest.mark.parametrize("conda", [True, False])
def test_an_image_without_the_environment_is_taken_as_it_is(conda: bool, tmp_path: Path) -> None:
    with built_image(conda=conda, environment="/opt/another") as name:
        task, oracle = loaded(tmp_path, a_row(name), regime="debug")
        with open_sandbox(task, DOCKER, trusted=True) as sandbox:
            assert sandbox.run(["sh", "-c", "command -v python"]).output.strip() == "/usr/bin/python"
        assert check_task(task, oracle, DOCKER).passed


def test_the_future_is_not_in_the_history_and_hidden_tests_are_nowhere(image: str, tmp_path: Path) -> None:
    task, oracle = loaded(tmp_path, a_row(image))
    assert check_task(task, oracle, DOCKER).problems == ()
    with open_sandbox(task, DOCKER, trusted=True) as sandbox:
        log = sandbox.run(["git", "log", "--all", "--format=%s"]).output
        assert log.split() == ["base"]
        assert sandbox.run(["grep", "-rl", "test_triple", "/testbed", "/tmp", "/gumshoe"]).output == ""
        assert sandbox.run(["git", "status", "--porcelain"]).output == ""


def test_a_repository_with_a_submodule(tmp_path: Path) -> None:
    submodule = """\
RUN mkdir /sub && cd /sub && git init -q && echo 'z = 1' > z.py && git add -A && \\
    git -c user.name=t -c user.email=t@t commit -qm sub && cd /testbed && \\
    git -c protocol.file.allow=always submodule --quiet add /sub 'a sub' && \\
    git -c user.name=t -c user.email=t@t commit -qm module && rm -rf /sub
"""
    with built_image(more=submodule) as name:
        task, oracle = loaded(tmp_path, a_row(name))
        assert check_task(task, oracle, DOCKER).problems == ()
        with open_sandbox(task, DOCKER, trusted=True) as sandbox:
            status = sandbox.run(["git", "status", "--porcelain"])
            assert (status.exit_code, status.output) == (0, "")
            workspace = Workspace(task, sandbox)
            sandbox.write_file("a sub/z.py", b"z = 2\n")
            sandbox.write_file("shop.py", CLEAN)
            assert "a sub/z.py" in workspace.patch()
            assert sandbox.run(["git", "log", "-1", "--format=%s"]).output.strip() == "module"


def test_a_row_of_swe_smith(tmp_path: Path) -> None:
    buggy = SHOP.replace(b"def same(n):\n    return n", b"def same(n):\n    return 7")
    row = {
        "instance_id": "owner__shop.1234abcd.func__x1",
        "repo": "swesmith/owner__shop.1234abcd",
        "patch": make_patch({"shop.py": (SHOP, buggy)}),
        "FAIL_TO_PASS": ["tests/test_shop.py::test_same"],
        "PASS_TO_PASS": ["tests/test_other.py::test_other"],
    }
    other = {"tests/test_other.py": b"import shop\n\n\ndef test_other():\n    assert shop.double(0) == 0\n"}
    with built_image({**REPO, **other}) as image:
        for regime in ("issue", "debug"):
            task, oracle = loaded(tmp_path, {**row, "image_name": image}, "swesmith", regime=regime)
            assert (task.source, task.regime) == ("swesmith", regime)
            assert check_task(task, oracle, DOCKER).problems == ()
            assert grade(task, oracle, make_patch({"x.py": (None, b"\n")}), DOCKER).outcome == "unresolved"
            with open_sandbox(task, DOCKER, trusted=True) as sandbox:
                assert b"return 7" in sandbox.read_file("shop.py")
                told = sandbox.run(["git", "log", "--all", "-p", "--format="]).output
                assert "+    return 7" in told
                assert told.count("def same") == 1
                assert ("test_same" in told) is (regime == "debug")
                assert (sandbox.run(["ls", "tests/test_shop.py"]).exit_code == 0) is (regime == "debug")


def r2e_row(image: str) -> dict[str, Any]:
    def diff(path: str, before: bytes | None, after: bytes) -> dict[str, Any]:
        return {
            "header": {"file": {"path": path}},
            "minus_file": {"path": "/dev/null" if before is None else f"a/{path}"},
            "plus_file": {"path": f"b/{path}"},
            "old_file_content": (before or b"").decode(),
            "new_file_content": after.decode(),
        }

    diffs = [diff("shop.py", SHOP, CLEAN), diff("tests/test_new.py", None, b"\n"), diff("extra.py", None, b"e = 1\n")]
    log = "=== short test summary info ===\n\x1b[32mPASSED\x1b[0m r2e_tests/test_1.py::TestShop::test_zero\n"
    log += "FAILED r2e_tests/test_1.py::test_double - assert 2 == 4\n=== 2 ==="
    outcomes = {"TestShop.test_zero": "PASSED", "test_double": "PASSED", "test_no": "FAILED"}
    return {
        "repo_name": "shop",
        "docker_image": image,
        "commit_hash": "0123456789abcdef0123",
        "parsed_commit_content": json.dumps({"file_diffs": diffs}),
        "execution_result_content": json.dumps({"old_commit_res_stdout": log}),
        "expected_output_json": json.dumps(outcomes),
        "problem_statement": "\n[ISSUE]\n**double** does not\n[/ISSUE]\n",
    }


def test_a_row_of_r2e_gym(tmp_path: Path) -> None:
    tests = (
        b"from shop import double\n\n\nclass TestShop:\n    def test_zero(self):\n        assert double(0) == 0\n\n\n"
        b"def test_double():\n    assert double(2) == 4\n\n\ndef test_no():\n    assert 0\n"
    )
    run = b".venv/bin/python -W ignore -m pytest -rA r2e_tests\n"
    files = {**REPO, "run_tests.sh": run, "r2e_tests/test_1.py": tests}
    more = """\
RUN mv /testbed/r2e_tests /r2e_tests && cd /testbed && git rm -rq --cached r2e_tests run_tests.sh && \\
    git -c user.name=t -c user.email=t@t commit -q --amend -m base
"""
    with built_image(files, more, conda=False, environment="/testbed/.venv") as image:
        for regime in ("issue", "debug"):
            task, oracle = loaded(tmp_path, r2e_row(image), "r2egym", regime=regime)
            assert (task.id, task.regime) == ("r2egym/shop/0123456789ab", regime)
            assert task.problem_statement == "**double** does not\n"
            assert (oracle.fail_to_pass, oracle.pass_to_pass) == (("test_double",), ("TestShop.test_zero",))
            assert "test_new" not in oracle.gold_patch
            assert "extra.py" in oracle.gold_patch
            assert check_task(task, oracle, DOCKER).problems == ()
            with open_sandbox(task, DOCKER, trusted=True) as sandbox:
                assert sandbox.python == "/testbed/.venv/bin/python"
                seen = sandbox.run(["sh", "-c", "ls -d /r2e_tests r2e_tests run_tests.sh 2>/dev/null"]).output.split()
                assert seen == (["r2e_tests", "run_tests.sh"] if regime == "debug" else [])
