"""What a harvest reads before any code runs: sources, archives, requirements, complaints, locks, splits."""

import io
import json
import sys
import tarfile
from dataclasses import asdict
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.config import load_config
from gumshoe.env.bugs.config import BuildConfig, HarvestConfig
from gumshoe.env.bugs.packages.environment import quiet_arguments
from gumshoe.env.bugs.packages.harvest import reports_in
from gumshoe.env.bugs.packages.machine import choose_python, interpreters
from gumshoe.env.bugs.packages.requirements import PackageFiles, missing_packages, plugins_used
from gumshoe.env.bugs.packages.sources import get_source, parse_sources, unpack
from gumshoe.env.bugs.projects import copy_tree, reason_of
from gumshoe.env.tasks.projects import is_doctest
from gumshoe.env.virtualenvs import Lock, environment_folder
from gumshoe.errors import ConfigError, TaskError
from support.folder_tasks import git, write_files


def test_each_kind_of_source_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "thing-1.2.tar.gz").write_bytes(b"")
    listed = tmp_path / "list.txt"
    listed.write_text("# a comment\nplain\ntoolz==1.2  # pinned\n\nrepo\nthing-1.2.tar.gz\n")
    found = parse_sources([str(listed), "https://example.invalid/a/Some.Name.git", "toolz==1.2"])
    assert [(source.kind, source.name) for source in found] == [
        ("folder", "plain"),
        ("requirement", "toolz"),
        ("git", "repo"),
        ("sdist", "thing"),
        ("git", "some-name"),
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["no/such/folder"], "no source"),
        (["toolz @ https://example.invalid/x"], "no source"),
        (["-e ."], "no source"),
        ([""], "no source"),
        (["a b c"], "no source"),
        (["toolz==1.2", "toolz==1.1"], "two sources are called toolz"),
    ],
)
def test_what_is_no_source_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_sources(texts)


@pytest.mark.parametrize("kind", ["folder", "git", "sdist"])
def test_the_code_of_a_source_is_fetched_and_not_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    attack = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    place = write_files(tmp_path / "thing-1.2", {"setup.py": attack, "thing.py": "x = 1\n"})
    if kind == "git":
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
            git(place, *words)
        hook = place / ".git" / "hooks" / "post-checkout"
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        hook.chmod(0o755)
    elif kind == "sdist":
        with tarfile.open(tmp_path / "thing-1.2.tar.gz", "w:gz") as packed:
            packed.add(place, "thing-1.2")
        place = tmp_path / "thing-1.2.tar.gz"
    (source,) = parse_sources([str(place)])
    assert source.kind == kind
    got = get_source(source, BuildConfig())
    assert sorted(path.name for path in got.folder.iterdir()) == ["setup.py", "thing.py"]
    assert (got.repository is not None) == (kind == "git")
    assert get_source(source, BuildConfig()).digest == got.digest
    assert not (tmp_path / "ran").exists()


def test_an_archive_writes_nothing_outside(tmp_path: Path) -> None:
    archive = tmp_path / "bad.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name in ("../evil.py", "/tmp/gumshoe-evil.py", "pkg/ok.py", "pkg/link/through.py"):
            info = tarfile.TarInfo(name)
            info.size, info.mode = 2, 0o4755
            packed.addfile(info, io.BytesIO(b"1\n"))
        for name, kind, target in (("pkg/away", tarfile.SYMTYPE, "/etc/passwd"), ("pkg/pipe", tarfile.FIFOTYPE, "")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            packed.addfile(info)
    folder = tmp_path / "out"
    assert unpack(archive, folder) == folder / "pkg"
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if not path.is_dir()}
    assert written == {"bad.tar.gz", "out/pkg/link/through.py", "out/pkg/ok.py"}
    assert (folder / "pkg/ok.py").stat().st_mode & 0o7777 == 0o755
    archive.write_bytes(b"not an archive")
    with pytest.raises(TaskError, match=r"bad\.tar\.gz cannot be unpacked"):
        unpack(archive, tmp_path / "none")


def test_links_that_lead_out_of_a_folder_are_left_behind(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "pkg", {"__pycache__/a.pyc": "", "a.py": ""})
    (folder / "inside.py").symlink_to("a.py")
    (folder / "outside").symlink_to("/etc")
    copy_tree(folder, tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["a.py", "inside.py"]


def test_requirements_are_found_wherever_projects_keep_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n'
        '[project.optional-dependencies]\ntests = ["freezegun", "pytest-cov", "mypy"]\ndocs = ["sphinx"]\n'
        '[dependency-groups]\ntest = [{include-group = "more"}, "hypothesis>=6"]\nmore = ["zstandard"]\n'
    )
    (tmp_path / "tox.ini").write_text("[testenv]\ndeps =\n    pretend\n    py38: old-one\n    -r reqs.txt\n    .\n")
    (tmp_path / "noxfile.py").write_text("def tests(session):\n    session.install('nose-like', '-r', 'x.txt')\n")
    (tmp_path / "requirements-test.txt").write_text("a\n")
    found = PackageFiles(tmp_path).test_requirements()
    assert {"freezegun", "pytest-cov", "zstandard", "hypothesis>=6", "pretend", "old-one", "nose-like"} <= set(
        found.packages
    )
    assert not {"mypy", "sphinx", "."} & set(found.packages)
    assert found.files == ("requirements-test.txt",)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.9, <4"\n'),
        ("setup.py", "open('ran', 'w')\nsetup(name='x',\n    python_requires='>=3.9, <4')\n"),
        ("setup.cfg", "[options]\npython_requires = >=3.9, <4\n"),
        ("PKG-INFO", "Metadata-Version: 2.1\nName: x\nRequires-Python: >=3.9, <4\n"),
    ],
)
def test_the_pythons_that_a_package_runs_on_are_read_and_nothing_is_run(file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    assert PackageFiles(tmp_path).requires_python == ">=3.9, <4"
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_where_nothing_is_named_for_tests_what_is_for_development_counts(tmp_path: Path) -> None:
    poetry = '[tool.poetry.group.dev.dependencies]\nmock = "^5"\n'
    write_files(tmp_path, {"requirements/dev.txt": "freezegun\n", "pyproject.toml": poetry})
    found = PackageFiles(tmp_path).test_requirements()
    assert (found.packages, found.files) == (("mock>=5",), ("requirements/dev.txt",))
    (tmp_path / "requirements" / "test.txt").write_text("pretend\n")
    assert PackageFiles(tmp_path).test_requirements().files == ("requirements/test.txt",)


def test_complaints_name_what_to_install() -> None:
    output = "E   ModuleNotFoundError: No module named 'yaml'\nE  ModuleNotFoundError: No module named 'shop.cart'\n"
    assert missing_packages(output, ["shop"]) == ["pyyaml"]
    platforms = "No module named 'winreg'\nNo module named 'distutils.util'\nNo module named 'attr'"
    assert missing_packages(platforms) == ["setuptools", "attrs"]
    assert missing_packages(platforms, ["attr"]) == ["setuptools"]
    assert missing_packages("pytest: error: unrecognized arguments: --cov=x --benchmark-disable") == [
        "pytest-cov",
        "pytest-benchmark",
    ]
    assert reason_of("collected 0 items\n" + output + "1 error in 0.1s") == (
        "ModuleNotFoundError: No module named 'yaml'"
    )


def test_a_plugin_is_wanted_whose_fixture_is_used_and_not_defined(tmp_path: Path) -> None:
    own = "import pytest\n\n@pytest.fixture\ndef benchmark(request):\n    return print\n"
    tests = "def test_speed(benchmark, mocker, tmp_path):\n    benchmark(len, [])\n"
    assert plugins_used(write_files(tmp_path, {"conftest.py": own, "test_speed.py": tests})) == ["pytest-mock"]


def test_an_error_inside_pytest_is_the_reason() -> None:
    output = "INTERNALERROR> Traceback:\nINTERNALERROR> TypeError: no such hook\n\x1b[32m3 passed\x1b[0m"
    assert reason_of(output) == "TypeError: no such hook"
    assert reason_of("\x1b[32m3 passed\x1b[0m\n") == "3 passed"
    unknown = "python -m pytest: error: unrecognized arguments: --cov"
    assert reason_of(f"ERROR: usage: python -m pytest [options]\n{unknown}\n  rootdir: /workspace\n") == unknown


def test_a_version_may_be_written_without_quotes(tmp_path: Path) -> None:
    config = tmp_path / "harvest.yaml"
    for written in ("3.9", "3.10", "3.14"):
        config.write_text(f"sources: [toolz]\nbuild: {{python: {written}}}\n")
        assert load_config(HarvestConfig, config).build.python == written
        assert load_config(HarvestConfig, config, [f"build.python={written}.2"]).build.python == f"{written}.2"
    assert load_config(HarvestConfig, config, ["build.python=3"]).build.python == "3"
    with pytest.raises(ConfigError, match=r"build\.python: .*string"):
        load_config(HarvestConfig, config, ["build.python=true"])


def test_of_the_pythons_that_are_there_the_own_one_is_taken_else_the_newest_that_is_allowed() -> None:
    own, *others = interpreters()
    assert own.version[:2] == sys.version_info[:2]
    assert [other.version for other in others] == sorted((other.version for other in others), reverse=True)
    assert choose_python("") == own
    for other in others:
        newer = f">={own.text}, !={own.text}, " if other.version > own.version else ""
        assert choose_python(f"{newer}<={other.text}") == other
        assert choose_python("", ".".join(map(str, other.version[:2]))) == other
    with pytest.raises(TaskError, match=r"no Python for requires-python >=4\.0: there are 3\."):
        choose_python(">=4.0")


def test_a_lock_is_named_by_all_that_it_holds() -> None:
    lock = Lock("3.11", "linux-x86_64", ("a==1",))
    assert environment_folder(lock.name).name == lock.name
    assert lock.name != Lock("3.12", "linux-x86_64", ("a==1",)).name
    assert lock.name != Lock("3.11", "linux-x86_64", ("a==1",), {"x.pth": "/workspace"}).name
    assert Lock.from_json(json.loads(json.dumps(asdict(lock)))) == lock


@pytest.mark.parametrize("name", ["../../etc", "", "0123456789ABCDEF", "0123456789abcdef/..", "/etc"])
def test_no_task_can_have_another_folder_mounted(name: str) -> None:
    with pytest.raises(TaskError, match="is not the name of an environment"):
        environment_folder(name)


def test_plugins_that_disturb_single_runs_are_turned_off() -> None:
    assert quiet_arguments(("pytest==9", "pytest-xdist==3", "pytest-cov==6")) == ("--no-cov", "-n0")


@pytest.mark.parametrize(
    "test", ["shop/cart.py::shop.cart.Cart.add", "src/shop/__init__.py::shop", "calc.py::calc.add"]
)
def test_doctests_are_told_from_other_tests(test: str) -> None:
    assert is_doctest(test)
    others = ("test_cart.py::test_add", "test_cart.py::TestCart::test_add", "README.rst::README.rst", "test_cart.py")
    assert not any(map(is_doctest, others))


def test_what_pytest_runs_on_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    assert main(["harvest", "pluggy>=1", "--out", str(tmp_path / "set")]) == 1
    (report,) = reports_in(tmp_path / "set")
    assert not report.done
    assert report.reason == "pytest itself depends on it: with a bug in it, no test outcome could be trusted"
