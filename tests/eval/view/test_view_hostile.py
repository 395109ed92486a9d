"""Hostile text, folders and requests: nothing runs, nothing breaks, nothing outside is served, and who may ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from gumshoe.eval.view.library import Library
from gumshoe.eval.view.static import write_static
from support.eval.view_samples import HOSTILE, SEEK, make_trajectory, write_run
from support.eval.viewer import all_rows, get, open_library, quiet_page, serving


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One episode with hostile text in every field that a model or a program writes, one with a line of 5 MB."""
    made = make_trajectory(1, SEEK)
    text = made.model_dump_json()
    for harmless in ("shop/tax-1", "I read total.", "models/tiny", "cart.py 1-3 of 3 lines", "The total of", "prices"):
        text = text.replace(harmless, json.dumps(HOSTILE)[1:-1])
    run = write_run(tmp_path_factory.mktemp("hostile") / "run", [make_trajectory(2, SEEK, text="x" * 5_000_000)])
    with (run / "trajectories.jsonl").open("a", encoding="utf-8") as file:
        file.write('no JSON\n{"id": 7, "steps": "none", "task": [], "usage": null}\n[1]\n{"id": ' + "[" * 5000 + "\n")
        file.write(f"{text}\n")
    return run


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, hostile_run: Path, tmp_path: Path) -> None:
    with open_library(hostile_run) as library, serving(library) as site:
        (source,) = library.overview()["sources"]
        assert source["problem"] == "4 broken lines are left out"
        key = next(row["key"] for row in all_rows(library) if "script" in row["task"])
        with quiet_page(browser) as page:
            page.goto(f"{site}/#/list")
            expect(page.get_by_role("status")).to_have_text("2 episodes")
            for tab in ("code", "diff", "pack", "messages", "facts"):
                page.goto(f"{site}/#/episode/{key}?step=3&tab={tab}")
                expect(page.get_by_role("tabpanel")).to_have_attribute("aria-label", tab)
                expect(page.get_by_role("article", name="Step 3")).to_be_visible()
            marked = ("⟨ESC⟩[31mred⟨ESC⟩]0;title⟨BEL⟩⟨ESC⟩[2J", "safe⟨U+202E⟩gnp.exe⟨U+2066⟩⟨U+200B⟩")
            for shown in ("<script>window.ran = 1</script>", *marked):
                expect(page.get_by_role("heading", level=1)).to_contain_text(shown)
            assert page.evaluate("window.ran") is None
            assert page.locator("script").count() == 1
            assert page.locator("a[href^=javascript]").count() == 0
            assert "\u202e" not in page.content()
            write_static(library, tmp_path / "copy")
            page.goto(f"{(tmp_path / 'copy' / 'index.html').as_uri()}#/episode/{key}?step=1")
            expect(page.get_by_role("heading", level=1)).to_contain_text("<script>window.ran = 1</script>")
            assert page.evaluate("window.ran") is None


def test_a_line_of_five_megabytes_is_cut_for_the_browser_alone(browser: Browser, hostile_run: Path) -> None:
    with open_library(hostile_run) as library, serving(library) as site:
        rows = all_rows(library)
        key = next(row["key"] for row in rows if row["task"] == "shop/tax-2")
        assert len(get(f"{site}/api/raw/{key}").content) > 5_000_000
        assert len(get(f"{site}/api/episode/{key}").content) < 3_000_000
        with quiet_page(browser) as page:
            page.goto(f"{site}/#/episode/{key}")
            expect(page.get_by_text("long texts are truncated here")).to_be_visible()
            page.get_by_role("button", name="Show all").first.click()
            expect(page.get_by_text("characters are not shown").first).to_be_visible()


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/api/raw/..%2f..%2fetc%2fpasswd",
        "/api/episode/..%2f..%2fetc%2fpasswd",
        "/api/evaluation/..%2f..",
        "/api/episode/none",
        "/sources.sha256",
        "/server.py",
    ],
)
def test_paths_that_climb_out_lead_nowhere(site: str, path: str) -> None:
    answer = get(f"{site}{path}")
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = write_run(tmp_path / "outside", [make_trajectory(0, SEEK)])
    inside = tmp_path / "given"
    (inside / "one").mkdir(parents=True)
    (inside / "one" / "trajectories.jsonl").symlink_to(outside / "trajectories.jsonl")
    (inside / "two").symlink_to(outside)
    with open_library(inside) as library:
        (source,) = library.overview()["sources"]
        assert source["slug"] == "one"
        assert source["episodes"] == 0
        assert "leads out of the folder" in source["problem"]


def test_a_search_is_data_and_never_sql(site: str) -> None:
    for value in ("' OR 1=1 --", '"; DROP TABLE episodes; --', "\x00", "NEAR(", "a* OR *", "-"):
        answer = get(f"{site}/api/search", params={"q": f'{value}" zzzz'})
        assert (answer.status_code, answer.json()) == (200, {"keys": []})
    assert get(f"{site}/api/rows", params={"last": "x"}).status_code == 400
    assert get(f"{site}/api/rows", params={"last": "9" * 30, "era": "' OR 1=1"}).json()["rows"]


def test_a_strict_content_policy(site: str) -> None:
    policy = get(site).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    for path in ("/app.js", "/api/overview", "/nothing", "/api/episode/none"):
        headers = get(f"{site}{path}").headers
        assert headers["content-security-policy"] == policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.fixture(scope="module")
def guarded(library: Library) -> Iterator[str]:
    with serving(library, token="s3cret") as address:
        yield address


def test_without_the_token_there_is_nothing(guarded: str) -> None:
    for path in ("/", "/app.js", "/api/overview", "/api/overview?token=wrong"):
        assert get(f"{guarded}{path}").status_code == 401
    wrong = {"authorization": "Bearer wrong", "cookie": "gumshoe_token=wrong"}
    assert get(f"{guarded}/api/overview", headers=wrong).status_code == 401


def test_the_token_opens_once_and_becomes_a_cookie(guarded: str) -> None:
    with httpx2.Client(timeout=180) as client:
        first = client.get(f"{guarded}//evil.example/?token=s3cret&x=1")
        assert first.status_code == 303
        assert first.headers["location"] == "/evil.example/?x=1"
        assert "HttpOnly" in first.headers["set-cookie"]
        assert "SameSite=strict" in first.headers["set-cookie"]
        assert client.get(f"{guarded}/api/overview").status_code == 200
    bearer = {"authorization": "Bearer s3cret"}
    assert get(f"{guarded}/api/overview", headers={**bearer, "host": "10.1.2.3"}).status_code == 200
    assert get(f"{guarded}/", headers={**bearer, "host": "evil.example"}).status_code == 421
