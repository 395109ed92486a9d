"""The parts that images of rows are made of: recipes, the index of a day, checkouts."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from gumshoe.env.harvest.pythons import Interpreter
from gumshoe.env.images.build import packages_date
from gumshoe.env.images.checkout import checkout_archive, commit_date, first_file
from gumshoe.env.images.dated_index import Upstream, dated_index
from gumshoe.env.images.python_layer import ENVIRONMENT, python_archive
from gumshoe.env.images.recipes import pinned_names, recipe_of
from gumshoe.errors import TaskError

FILES = [
    {"filename": "toy-1.0.tar.gz", "url": "../../f/toy-1.0.tar.gz", "upload-time": "2020-01-01T00:00:00Z"},
    {
        "filename": "toy-2.0-py3-none-any.whl",
        "url": "/f/toy-2.0-py3-none-any.whl",
        "upload-time": "2021-06-01T12:00:00.5Z",
        "requires-python": ">=3.6",
        "hashes": {"sha256": "ab"},
        "yanked": "broken",
    },
]


def day(year: int) -> datetime:
    return datetime(year, 1, 2, tzinfo=UTC)


class Index(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        pages = {"/simple/toy/": FILES, "/simple/undated/": [{"filename": "a", "url": "a"}]}
        if self.path in pages:
            data = json.dumps({"files": pages[self.path]}).encode()
        elif self.path == "/f/toy-1.0.tar.gz" and self.headers["Authorization"] == "Basic bWU6c2VjcmV0":
            data = b"the archive"
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Upstream(f"http://127.0.0.1:{server.server_port}/simple", login="me:secret")
        server.shutdown()


def read(url: str) -> str:
    with urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def test_an_index_of_a_day_shows_what_had_been_uploaded(upstream: Upstream) -> None:
    with dated_index(day(2021), upstream) as index:
        page = read(f"{index}/toy/")
        assert "toy-1.0" in page
        assert "toy-2.0" not in page
        assert read(index.removesuffix("/simple") + "/files/toy-1.0.tar.gz") == "the archive"
    with dated_index(day(2022), upstream) as index:
        page = read(f"{index}/toy/")
        assert 'toy-2.0-py3-none-any.whl#sha256=ab" data-requires-python="&gt;=3.6" data-yanked=""' in page
        assert "secret" not in page


def test_packages_with_a_given_version_are_of_any_day(upstream: Upstream) -> None:
    with dated_index(day(2019), upstream, ["toy"]) as index:
        assert "toy-2.0" in read(f"{index}/toy/")


def test_an_index_without_dates_is_no_index_of_a_day(upstream: Upstream) -> None:
    with dated_index(day(2021), upstream) as index:
        with pytest.raises(HTTPError, match="502"):
            read(f"{index}/undated/")
        with pytest.raises(HTTPError, match="404"):
            read(f"{index}/unknown/")


def test_a_recipe_is_the_official_one() -> None:
    recipe = recipe_of("pydicom/pydicom", "2.1")
    assert (recipe.python, recipe.packages) == ("3.9", ("numpy", "pytest"))
    assert recipe.install == "python -m pip install -e ."
    assert recipe_of("sqlfluff/sqlfluff", "0.6").requirements == ("requirements_dev.txt",)


@pytest.mark.parametrize(
    ("repo", "version", "why"),
    [
        ("nobody/nothing", "1.0", "no recipe for nobody/nothing"),
        ("pydicom/pydicom", "99", "no recipe for pydicom/pydicom in version 99"),
        ("pydata/xarray", "0.12", "needs an environment of conda"),
    ],
)
def test_what_cannot_be_made_is_said(repo: str, version: str, why: str) -> None:
    with pytest.raises(TaskError, match=why):
        recipe_of(repo, version)


def test_given_versions_are_told_apart() -> None:
    assert pinned_names(("PyYAML==6.0.1", "numpy", "pandas<2", "my_package==1.*")) == {"pyyaml", "my-package"}


def test_packages_are_never_older_than_wheels_for_their_python() -> None:
    assert packages_date("3.9", day(2019)) == datetime(2021, 10, 5, tzinfo=UTC)
    assert packages_date("3.9", day(2023), None) == day(2023)
    with pytest.raises(TaskError, match="from which date"):
        packages_date("3.99", None)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits; a tag on each."""
    work = tmp_path / "work"
    work.mkdir()
    for text in ("one", "two"):
        (work / "a.txt").write_text(text)
        git(work, "init", "-q", "-b", "main")
        git(work, "add", "-A")
        git(work, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", text)
        git(work, "tag", f"v-{text}")
    git(tmp_path, "clone", "-q", "--bare", "work", "bare.git")
    return tmp_path / "bare.git"


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_has_its_past_and_no_future(repository: Path, tmp_path: Path) -> None:
    first = git(repository, "rev-parse", "v-one")
    with tarfile.open(fileobj=checkout_archive(repository, first, "/testbed")) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    place = tmp_path / "out" / "testbed"
    assert (place / "a.txt").read_text() == "one"
    assert git(place, "rev-parse", "HEAD") == first
    assert git(place, "tag") == "v-one"
    assert git(place, "status", "--porcelain") == ""
    assert git(place, "rev-list", "--all", "--count") == "1"
    assert git(repository, "rev-parse", "v-two") not in git(place, "cat-file", "--batch-check", "--batch-all-objects")
    assert commit_date(repository, first) is not None
    assert commit_date(repository, "0" * 40) is None
    assert first_file(repository, first, ("b.txt", "a.txt")) == "a.txt"
    assert first_file(repository, first, ("b.txt",)) is None


def test_history_with_holes_is_left_out(repository: Path, tmp_path: Path) -> None:
    second = git(repository, "rev-parse", "v-two")
    hole = git(repository, "rev-parse", "v-one:a.txt")
    (repository / "objects" / hole[:2] / hole[2:]).unlink()
    with tarfile.open(fileobj=checkout_archive(repository, second, "/testbed")) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    assert git(tmp_path / "out" / "testbed", "rev-list", "--count", "HEAD") == "1"
    with pytest.raises(TaskError, match="lacks some files of"):
        checkout_archive(repository, git(repository, "rev-parse", "v-one"), "/testbed")


def test_an_interpreter_comes_without_what_is_installed_in_it() -> None:
    own = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    buffer = python_archive(Interpreter(own, sys.version_info[:3]))
    assert isinstance(buffer, io.BytesIO)
    with tarfile.open(fileobj=buffer) as archive:
        names = set(archive.getnames())
    library = f"{ENVIRONMENT.lstrip('/')}/lib/python3.{sys.version_info.minor}"
    assert f"{library}/os.py" in names
    assert all("python" in name for name in names if name.startswith(f"{ENVIRONMENT.lstrip('/')}/lib/"))
    assert not any(name.startswith(f"{library}/site-packages/") for name in names)
    assert not any(name.startswith(f"{library}/test/test_") for name in names)
    assert "opt/miniconda3/bin/activate" in names
