"""The built front end, the copy as files, which gives the same answers as the server, and the command."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from gumshoe.errors import ConfigError
from gumshoe.eval.view.library import Library
from gumshoe.eval.view.static import PAGE, PAGE_FILES, write_beside, write_static
from support.eval.view_samples import write_evaluation
from support.eval.viewer import all_rows, get, open_library, quiet_page, serving
from support.sandboxes.processes import descendants

VIEWER = Path(__file__).parents[3] / "viewer"
SOURCES = ("index.html", "package-lock.json", "package.json", "public/icon.svg", "tsconfig.json", "vite.config.ts")


def test_the_built_files_are_those_of_the_sources() -> None:
    """Run `make viewer` after a change of the front end."""
    inner = [path.relative_to(VIEWER).as_posix() for path in (VIEWER / "src").rglob("*") if path.is_file()]
    names = sorted([*SOURCES, *inner])
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\0".encode() + (VIEWER / name).read_bytes() + b"\0")
    assert (PAGE / "sources.sha256").read_text().strip() == digest.hexdigest()


def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    texts = {name: (PAGE / name).read_text(encoding="utf-8") for name in PAGE_FILES}
    for text in texts.values():
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", text))
        assert {address for address in addresses if not address.startswith("http://www.w3.org/")} == set()
        assert "@import" not in text
    assert sum(map(len, texts.values())) < 250_000
    page = texts["index.html"]
    assert re.findall(r"<script(.*?)>(.*?)</script>", page) == [(' defer src="./app.js"', "")]
    assert "style=" not in page
    assert "<style" not in page
    lockfile = (VIEWER / "package-lock.json").read_text(encoding="utf-8")
    assert ('"resolved"' in lockfile, '"integrity"' in lockfile) == (False, True)


def test_no_text_becomes_html() -> None:
    """Preact escapes what it shows, as long as nothing goes around it."""
    sources = [path for path in (VIEWER / "src").rglob("*.ts*") if path.is_file()]
    assert len(sources) > 20
    assert [path.name for path in sources if "innerhtml" in path.read_text(encoding="utf-8").lower()] == []


@pytest.fixture(scope="module")
def copy(library: Library, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("copies") / "copy"
    assert write_static(library, out) == 92
    return (out / "index.html").as_uri()


ADDRESSES = (
    "#/list?f=outcome|is|not resolved&f=view|unknown|&sort=cost",
    "#/list?f=steps|>=|4&f=tag.split|not|train&f=score.resolved|is|1&f=seconds|<|5.4&f=task|has|TAX-1&q=total prices",
    "#/list?of=rows&f=view|is|seeker&sort=-tokens&f=tokens|>|1130",
)


def shown(page: Page, address: str) -> list[object]:
    page.goto("about:blank")
    page.goto(address)
    expect(page.get_by_role("status")).not_to_have_text("Counting …")
    page.locator(".distributions figure").first.wait_for()
    rows = page.locator("a.line").evaluate_all("all => all.slice(0, 8).map(one => one.getAttribute('href'))")
    bars = page.locator(".values").evaluate_all("all => all.map(one => one.innerText)")
    histograms = page.locator(".numbers").evaluate_all(
        "all => all.map(one => [...one.querySelectorAll('.some')].map(bar => bar.getAttribute('height')))"
    )
    return [page.get_by_role("status").inner_text(), rows, bars, histograms]


def test_the_list_of_the_copy_is_the_list_of_the_server(browser: Browser, copy: str, site: str) -> None:
    with quiet_page(browser) as page:
        for address in ADDRESSES:
            assert shown(page, f"{copy}{address}") == shown(page, f"{site}/{address}"), address


def test_the_copy_plays_and_evaluates(browser: Browser, copy: str) -> None:
    with quiet_page(browser) as page:
        page.goto(f"{copy}#/list?f=source|is|eval.seeker&sort=task")
        page.locator("a.line").first.click()
        expect(page.get_by_role("article", name="Step 1")).to_be_visible()
        page.keyboard.press("3")
        expect(page.get_by_role("tabpanel")).to_contain_text("✓ confirmed")
        page.goto(f"{copy}#/evaluation/eval")
        page.get_by_role("button", name=re.compile("^the seeker: ")).click()
        expect(page.get_by_label("Tasks behind the bar")).to_be_visible()
        page.goto(f"{copy}#/episode/nothing")
        expect(page.get_by_role("alert")).to_contain_text("There is no episode nothing in this copy.")


def test_a_folder_with_other_things_is_left_alone(library: Library, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty"):
        write_static(library, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    with pytest.raises(ConfigError, match="cannot be written"):
        write_static(library, tmp_path / "mine.txt" / "below")


def test_a_copy_beside_an_evaluation_that_is_named_by_a_relative_path(tmp_path: Path) -> None:
    with chdir(tmp_path):
        write_evaluation(Path("evaluation"))
        page = write_beside(Path("evaluation"), {})
        assert page == Path("evaluation/view/index.html")
        assert page.is_file()


Run = Callable[..., subprocess.CompletedProcess[str]]


def test_elsewhere_it_asks_for_a_token(everything: Path) -> None:
    """On this machine it does not: see hostile/test_web_pages.py."""
    argv = [sys.executable, "-m", "gumshoe", "view", str(everything), "--port", "0", "--host", "0.0.0.0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            plain, _, token = found[0].partition("?token=")
            with httpx2.Client(timeout=180, follow_redirects=True) as client:
                assert len(token) >= 30
                assert client.get(plain).status_code == 401
                assert client.get(found[0]).status_code == 200
                assert client.get(f"{plain}api/overview").json()["sources"]
        finally:
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
    with open_library(everything / "dataset", model=tokenizer) as library, serving(library) as site:
        key = all_rows(library)[0]["key"]
        with quiet_page(browser) as page:
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
