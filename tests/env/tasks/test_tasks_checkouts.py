"""Benchmarks as their authors lay them out: QuixBugs, BugsInPy, PyTER, and Exercism's exercises."""

import json
from pathlib import Path

import pytest

from gumshoe.env.diff import apply_patch, gold_lines
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.checkouts import command_of
from gumshoe.env.verifier.check import check_task
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from support.folder_tasks import git, write_files
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

HALF = "def half(n):\n    return n // 3\n"
FIXED = "def half(n):\n    return n // 2\n"
HALF_TESTS = "from shop import half\n\n\ndef test_half():\n    assert half(8) == 4\n"


def staged(task: Task) -> set[str]:
    """The files that the agent finds."""
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        return {entry.path for entry in sandbox.walk() if entry.kind == "file"}


@pytest.fixture
def quixbugs(tmp_path: Path) -> Path:
    statement = '\n"""\nHalves n.\n'
    return write_files(
        tmp_path / "QuixBugs",
        {
            "README.md": "half: // 3 should be // 2\n",
            "conftest.py": "import pytest\n\n\ndef pytest_configure(config):\n    pytest.use_correct = False\n",
            "java_programs/HALF.java": "",
            ".git/HEAD": "ref: refs/heads/main\n",
            "python_programs/node.py": "",
            "python_programs/half.py": f'\n{HALF}\n{statement}Examples: many\n"""\n',
            "correct_python_programs/half.py": f'{FIXED}{statement}"""\nreturn n >> 1\n',
            "python_programs/twice.py": "def twice(n):\n    return n\n",
            "json_testcases/half.json": "[[8], 4]\n",
            "python_testcases/load_testdata.py": "import json\nHALF = json.load(open('json_testcases/half.json'))\n",
            "python_testcases/test_half.py": (
                "import pytest\nfrom load_testdata import HALF\n\n"
                "if pytest.use_correct:\n    from correct_python_programs.half import half\n"
                "else:\n    from python_programs.half import half\n\n\n"
                "def test_half():\n    assert half(*HALF[0]) == HALF[1]\n"
            ),
            "python_testcases/test_twice.py": "",
        },
    )


def test_a_program_of_quixbugs_comes_without_its_repair(quixbugs: Path) -> None:
    broken: list[str] = []
    ((task, oracle),) = load_tasks(f"quixbugs:{quixbugs}", on_error=lambda error: broken.append(str(error)))
    assert task.id == "quixbugs/half"
    assert gold_lines(oracle.gold_patch) == {"python_programs/half.py": {3}}, "the text below the code differs, too"
    files = {path.relative_to(quixbugs).as_posix() for path in quixbugs.rglob("*.*") if path.is_file()}
    assert staged(task) == files - {"README.md", "java_programs/HALF.java", "correct_python_programs/half.py"}
    assert "// 2" not in task.model_dump_json()
    assert check_task(task, Oracle(task_id=task.id, gold_patch=""), CHEAPEST).problems == ()
    assert oracle.fail_to_pass == ("python_testcases/test_half.py",)
    assert check_task(task, oracle, CHEAPEST).problems == ()
    assert len(broken) == 1
    assert "task quixbugs/twice: " in broken[0]


@pytest.fixture
def bugsinpy(tmp_path: Path) -> Path:
    """The framework, and a bug as `bugsinpy-checkout` leaves it in its own folder."""
    facts = 'python_version="3.8.3"\nbuggy_commit_id="aa11"\nfixed_commit_id="bb22"\ntest_file="tests/test_shop.py"\n'
    patch = "diff --git a/shop.py b/shop.py\n--- a/shop.py\n+++ b/shop.py\n@@ -1,2 +1,2 @@\n def half(n):\n"
    bug = {
        "bug.info": facts,
        "bug_patch.txt": f"{patch}-    return n // 3\n+    return n // 2\n",
        "run_test.sh": "pytest tests/test_shop.py::test_half\n\n",
        "requirements.txt": "",
    }
    root = write_files(tmp_path / "BugsInPy", {f"projects/shop/bugs/4/{name}": text for name, text in bug.items()})
    write_files(root, {"projects/shop/bugs/5/bug.info": facts.replace("aa11", "cc33")})
    notes = {f"bugsinpy_{name}": bug[name] for name in ("bug.info", "run_test.sh", "requirements.txt")}
    files = {"shop.py": HALF, "tests/test_shop.py": HALF_TESTS, "conftest.py": "", **notes}
    write_files(root / "framework" / "bin" / "temp" / "shop", files)
    return root


def test_a_bug_of_bugsinpy_is_found_by_its_commit(bugsinpy: Path) -> None:
    ((task, oracle),) = load_tasks(f"bugsinpy:{bugsinpy}")
    assert task.id == "bugsinpy/shop-4"
    assert task.entrypoint == ("python", "-m", "pytest", "-q", "tests/test_shop.py::test_half")
    assert task.readonly == ("/tests/test_shop.py",)
    assert staged(task) == {"conftest.py", "shop.py", "tests/test_shop.py"}
    assert apply_patch({"shop.py": HALF}, oracle.gold_patch) == {"shop.py": FIXED}
    assert check_task(task, oracle, CHEAPEST).problems == ()


def test_bugs_may_be_checked_out_elsewhere(bugsinpy: Path, tmp_path: Path) -> None:
    temp = bugsinpy / "framework" / "bin" / "temp"
    temp.rename(tmp_path / "work")
    with pytest.raises(TaskError, match="holds no bugs: check them out"):
        load_tasks(f"bugsinpy:{bugsinpy}")
    ((task, _),) = load_tasks(f"bugsinpy:{bugsinpy}", work=str(tmp_path / "work"))
    assert task.workspace.path == str(tmp_path / "work" / "shop")
    note = tmp_path / "work" / "shop" / "bugsinpy_bug.info"
    note.write_text(note.read_text().replace("aa11", "ff99"))
    with pytest.raises(TaskError, match=r"task bugsinpy/shop: .* names no bug"):
        load_tasks(f"bugsinpy:{bugsinpy}", work=str(tmp_path / "work"))


@pytest.fixture
def pyter(tmp_path: Path) -> Path:
    """A repository as setup.sh leaves it: the fixed commit, and the code file of the one before."""
    info = '{"repo": "shop", "git": "", "code_files": ["shop.py", "new.py"], "test_files": ["test_shop.py"]}'
    bug = {"bug_info.json": info, "test.sh": "poetry run pytest test_shop.py::test_half # negative\n"}
    root = write_files(tmp_path / "PyTER", {f"benchmark_info/shop/shop-12/{name}": text for name, text in bug.items()})
    write_files(root, {f"benchmark_info/shop/shop-13/{name}": text for name, text in bug.items()})
    repository = write_files(
        root / "benchmark" / "shop-12", {"shop.py": FIXED, "new.py": "x = 1\n", "test_shop.py": HALF_TESTS}
    )
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Fixed")
    (repository / "new.py").unlink()
    write_files(repository, {"shop.py": HALF, "dependency_setup.sh": "", "pyter_requirements.txt": ""})
    return root


def test_a_bug_of_pyter_comes_without_the_commit_that_repairs_it(pyter: Path) -> None:
    ((task, oracle),) = load_tasks(f"pyter:{pyter}")
    assert task.id == "pyter/shop-12"
    assert staged(task) == {"shop.py", "test_shop.py"}
    assert apply_patch({"shop.py": HALF}, oracle.gold_patch) == {"shop.py": FIXED, "new.py": "x = 1\n"}
    assert check_task(task, oracle, CHEAPEST).problems == ()


def test_a_bug_of_pyter_that_is_repaired_already_or_has_a_damaged_note_is_named(pyter: Path) -> None:
    git(pyter / "benchmark" / "shop-12", "checkout", "-q", "HEAD", "--", ".")
    with pytest.raises(TaskError, match=r"task pyter/shop-12: the code files are those of the fixed commit"):
        load_tasks(f"pyter:{pyter}")
    (info,) = pyter.glob("benchmark_info/*/shop-12/bug_info.json")
    info.write_text('{"repo": "shop"}')
    with pytest.raises(TaskError, match=r"^task pyter/shop-12: .*bug_info.json: code_files"):
        load_tasks(f"pyter:{pyter}")


@pytest.mark.parametrize("source", ["quixbugs", "bugsinpy", "pyter", "aider"])
def test_another_folder_is_no_checkout(source: str, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        with pytest.raises(TaskError, match=f"{folder} (is not a checkout of|holds no Python exercises)|no folder"):
            load_tasks(f"{source}:{folder}")


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("pytest a.py::b # negative\npytest -q a.py::c\n", "python -m pytest -q a.py::b a.py::c"),
        ("python3 -m pytest tqdm/tests.py::t\n", "python -m pytest -q tqdm/tests.py::t"),
        ("py.test spacy/tests\r\n", "python -m pytest -q spacy/tests"),
        ("python -m unittest -q a.B.c\n\npython -m unittest -q a.B.d", "python -m unittest -v a.B.c a.B.d"),
        ("tox -e py36\n", "sh -ec tox -e py36"),
        ("pytest a.py\npython -m unittest b\n", "sh -ec pytest a.py\npython -m unittest b"),
        ("\n# nothing\n", ""),
    ],
)
def test_a_script_of_tests_is_one_command(script: str, command: str) -> None:
    assert " ".join(command_of(script)) == command


def test_a_bug_that_never_ends_is_proven_by_its_repair(quixbugs: Path) -> None:
    file = quixbugs / "python_programs" / "half.py"
    file.write_text(file.read_text().replace("return n // 3", "while n: __import__('time').sleep(1)"))
    ((task, oracle),) = load_tasks(f"quixbugs:{quixbugs}", on_error=lambda error: None)
    task = task.model_copy(update={"limits": task.limits.model_copy(update={"command_timeout_s": 3.0})})
    assert check_task(task, oracle, CHEAPEST).problems == ()
    gold = oracle.gold_patch.replace("+    return n // 2", "+    while n: __import__('time').sleep(1)")
    useless = oracle.model_copy(update={"gold_patch": gold})
    assert "with the gold patch the tests run for more than 3 s" in check_task(task, useless, CHEAPEST).problems


# --- aider's: Exercism's exercises

TWO_FER_TESTS = """\
import unittest

from two_fer import two_fer


class TwoFerTest(unittest.TestCase):
    def test_name(self):
        self.assertEqual(two_fer("Bob"), "One for Bob, one for me.")
"""


def exercise(root: Path, name: str = "two-fer", **files: list[str]) -> Path:
    """The config of one of Exercism's exercises, whose files have other roles where they are given."""
    roles = {"solution": ["two_fer.py"], "test": ["two_fer_test.py"], "example": [".meta/example.py"], **files}
    contents = {
        "two_fer.py": "def two_fer(name):\n    pass\n",
        "two_fer_test.py": TWO_FER_TESTS,
        ".meta/example.py": 'def two_fer(name="you"):\n    return f"One for {name}, one for me."\n',
        ".meta/config.json": json.dumps({"authors": [], "files": roles}),
        ".docs/instructions.md": "# Instructions\n\nOne for you.\n",
        ".docs/introduction.md": "# Introduction\n",
    }
    return write_files(root / "exercises" / "practice" / name, contents) / ".meta" / "config.json"


def test_an_exercise_is_proven_and_its_example_stays_out(tmp_path: Path) -> None:
    exercise(tmp_path)
    (tmp_path / "exercises" / "practice" / "notes").mkdir()
    ((task, oracle),) = load_tasks(f"aider:{tmp_path}")
    assert (task.id, task.source) == ("aider/two-fer", "aider")
    assert task.problem_statement.startswith("# Introduction\n\n# Instructions\n\nOne for you.\n\nWrite the solution")
    assert check_task(task, oracle, CHEAPEST).problems == ()
    assert staged(task) == {"two_fer.py", "two_fer_test.py", ".docs/instructions.md", ".docs/introduction.md"}


def test_a_broken_exercise_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    exercise(tmp_path, example=[])
    exercise(tmp_path, "gone", solution=["gone.py"])
    exercise(tmp_path, "unnamed", test=[])
    exercise(tmp_path, "no-example", example=[".meta/other.py"])
    exercise(tmp_path, "torn").write_text("{")
    told: list[str] = []
    tasks = load_tasks("aider", path=tmp_path, on_error=lambda error: told.append(str(error)))
    # An example that does not correspond is no answer.
    assert [(task.id, oracle.gold_patch) for task, oracle in tasks] == [("aider/two-fer", "")]
    named = [f"task aider/{name}" for name in ("gone", "no-example", "torn", "unnamed")]
    assert [text.partition(": ")[0] for text in told] == named
    with pytest.raises(TaskError, match=r"task aider/gone: its file gone.py is missing"):
        load_tasks("aider", path=tmp_path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[]", "cannot be read: "),
        ('{"files": {"solution": "a.py"}}', r"cannot be read: files\.solution: Input should be a valid array"),
        ("[" * 100_000, "cannot be read: Invalid JSON"),
        ('{"files": {"solution": ["two_fer.py"], "test": ["two_fer_test.py"], "example": ["\\u0000"]}}', "its example"),
    ],
    ids=["list", "text", "deep", "null character"],
)
def test_a_config_of_another_form_is_one_line(config: str, message: str, tmp_path: Path) -> None:
    exercise(tmp_path).write_text(config)
    with pytest.raises(TaskError, match=f"task aider/two-fer: .*{message}") as caught:
        load_tasks("aider", path=tmp_path)
    assert "\n" not in str(caught.value)
