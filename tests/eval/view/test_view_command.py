"""`gumshoe view` as a program of its own, and the tokens that train."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from gumshoe.errors import DatasetError
from gumshoe.eval.view.masks import Masks
from support.eval.viewer import all_rows, get, open_library, quiet_page, serving

VIEW = (sys.executable, "-m", "gumshoe", "view")


@contextmanager
def started(*arguments: str) -> Generator[str]:
    """The address that the command prints."""
    process = subprocess.Popen([*VIEW, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=180)


def refused(*arguments: str) -> str:
    done = subprocess.run([*VIEW, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_it_serves_this_machine_alone_unless_told_otherwise(everything: Path, tmp_path: Path) -> None:
    with started(str(everything), "--port", "0") as address:
        assert address.startswith("http://127.0.0.1:")
        assert get(address).status_code == 200


def test_elsewhere_it_asks_for_a_token(everything: Path, tmp_path: Path) -> None:
    given = (str(everything), "--port", "0", "--host", "0.0.0.0")
    with started(*given) as address, httpx2.Client(timeout=180, follow_redirects=True) as client:
        plain, _, token = address.partition("?token=")
        assert len(token) >= 30
        assert client.get(plain).status_code == 401
        assert client.get(address).status_code == 200
        assert client.get(f"{plain}api/overview").json()["sources"]


def test_it_writes_files(everything: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    argv = [*VIEW, str(everything / "eval"), "--static", str(out)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == f"12 episodes: open {out / 'index.html'}\n"
    assert (out / "data" / "overview.js").is_file()
    subprocess.run(argv, capture_output=True, check=True)


def test_mistakes_are_answered_in_one_line(everything: Path, tmp_path: Path) -> None:
    assert "there is no folder" in refused(str(tmp_path / "none"))
    given = (str(everything),)
    assert "there is no model folder" in refused(*given, "--model", str(tmp_path / "none"))
    assert "cannot listen on 192.0.2.1" in refused(*given, "--host", "192.0.2.1", "--port", "0")
    assert "port 99999" in refused(*given, "--port", "99999")
    assert refused(*given, "--tasks", str(tmp_path / "none"))


@pytest.fixture(scope="module")
def tokenizer(everything: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer with a chat template, as training would make it."""
    pytest.importorskip("transformers", reason="making a tokenizer needs the extra `train`")
    folder = tmp_path_factory.mktemp("tokenizer") / "model"
    code = (
        "import sys; from pathlib import Path\n"
        "from gumshoe.train.rows.dataset import conversations, load_rows\n"
        "sys.path.insert(0, sys.argv[3])\n"
        "from support.train.tiny_model import make_tiny_tokenizer\n"
        "rows = list(conversations(load_rows(Path(sys.argv[1]), 'agent', 'train')))\n"
        "make_tiny_tokenizer(rows).save_pretrained(sys.argv[2])\n"
    )
    helpers = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", code, str(everything / "dataset"), str(folder), helpers], check=True)
    return folder


def test_the_tokens_that_train_are_colored(browser: Browser, everything: Path, tokenizer: Path, tmp_path: Path) -> None:
    with open_library(everything / "dataset", model=tokenizer) as library:
        key = all_rows(library)[0]["key"]
        with serving(library) as site, quiet_page(browser) as page:
            page.goto(f"{site}/#/episode/{key}?tab=mask")
            mask = page.locator(".mask-pane pre.mask")
            mask.wait_for()
            trained = mask.locator("mark.trained")
            expect(trained.first).to_contain_text("[verify 0.3] I run the tests.")
            expect(page.get_by_text(re.compile(r"[\d,]+ of [\d,]+ tokens train"))).to_be_visible()
            shown = "".join(trained.all_inner_texts())
            assert "The total of" not in shown
            assert "The total of" in mask.inner_text()
            assert "1 failed" not in shown
            here = mask.locator("mark[aria-current]")
            expect(here).to_contain_text("[verify 0.3] I run the tests.")
            page.keyboard.press("ArrowRight")
            expect(here).to_contain_text("I read total.")
            expect(here).to_be_in_viewport()


def test_a_folder_that_is_no_model_says_so(everything: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with open_library(everything / "dataset", model=tmp_path / "empty") as library:
        key = all_rows(library)[0]["key"]
        with serving(library) as site:
            answer = get(f"{site}/api/mask/{key}")
    assert answer.status_code == 422
    assert "cannot be loaded" in answer.json()["error"]


def test_masks_end_with_their_program(tmp_path: Path) -> None:
    """A program that cannot even start is an error of that question, and the next one starts it again."""
    masks = Masks(tmp_path / "none")
    for _ in range(2):
        with pytest.raises(DatasetError, match="cannot be loaded"):
            masks.of({"id": "x", "messages": []})
    program = masks.process_id
    assert program is not None
    os.kill(program, signal.SIGKILL)
    with pytest.raises(DatasetError, match="its program ended"):
        masks.of({"id": "x", "messages": []})
    assert masks.process_id is None
    masks.close()
    masks.close()
