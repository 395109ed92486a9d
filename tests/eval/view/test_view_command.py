"""`gumshoe view` as a program of its own, and the tokens that train."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from gumshoe.eval.masks import Masks
from gumshoe.eval.view.library import Library
from gumshoe.eval.view.sources import GoldPatches
from support.eval.viewer import all_rows, get, open_library, quiet_page, serving
from support.sandboxes.processes import descendants

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_elsewhere_it_asks_for_a_token(everything: Path) -> None:
    """On this machine it does not: see hostile/test_web_pages.py."""
    argv = [sys.executable, "-m", "gumshoe", "view", str(everything), "--port", "0", "--host", "0.0.0.0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        plain, _, token = found[0].partition("?token=")
        with httpx2.Client(timeout=180, follow_redirects=True) as client:
            assert len(token) >= 30
            assert client.get(plain).status_code == 401
            assert client.get(found[0]).status_code == 200
            assert client.get(f"{plain}api/overview").json()["sources"]
        process.terminate()


def test_it_writes_files(everything: Path, tmp_path: Path, run_here: Run) -> None:
    out = tmp_path / "site"
    for _ in range(2):
        done = run_here("view", str(everything / "eval"), "--static", str(out))
        assert (done.returncode, done.stdout) == (0, f"12 episodes: open {out / 'index.html'}\n")
        assert (out / "data" / "overview.js").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{none}"], "there is no folder"),
        (["{given}", "--model", "{none}"], "there is no model folder"),
        (["{given}", "--host", "192.0.2.1", "--port", "0"], "cannot listen on 192.0.2.1"),
        (["{given}", "--port", "99999"], "port 99999"),
        (["{given}", "--tasks", "{none}"], "none"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    arguments: list[str], said: str, everything: Path, tmp_path: Path, run_here: Run
) -> None:
    filled = [word.format(given=everything, none=tmp_path / "none") for word in arguments]
    done = run_here("view", *filled)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


@pytest.fixture(scope="module")
def tokenizer(everything: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer with a chat template, as training would make it."""
    pytest.importorskip("transformers", reason="making a tokenizer needs the extra `train`")
    folder = tmp_path_factory.mktemp("tokenizer") / "model"
    from gumshoe.train.rows.dataset import conversations, load_rows
    from support.train.tiny_model import make_tiny_tokenizer

    rows = conversations(load_rows(everything / "dataset", "agent", "train"))
    make_tiny_tokenizer(list(rows)).save_pretrained(folder)
    return folder


def programs() -> list[int]:
    """The processes that make masks."""
    below = descendants(os.getpid())
    return [pid for pid in below if b"gumshoe.train.masks" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_the_tokens_that_train_are_colored_and_masks_end_with_their_program(
    browser: Browser, everything: Path, tokenizer: Path
) -> None:
    masks = Masks(tokenizer)
    with open_library(everything / "dataset") as given:
        library = Library(given.catalog, GoldPatches(), masks)
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
            (program,) = programs()
            os.kill(program, signal.SIGKILL)
            answer = get(f"{site}/api/mask/{key}")
            assert answer.status_code == 422
            assert "its program ended" in answer.json()["error"]
    assert programs() == []
    masks.close()
    masks.close()
