"""The list and the first page, as a user goes through them in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.eval.view_samples import SEEK, make_trajectory, write_journal, write_run
from support.eval.viewer import viewing

ALL = "43 episodes"


def rows(page: Page) -> Locator:
    return page.locator("a.line")


def total(page: Page, text: str) -> None:
    expect(page.get_by_role("status")).to_have_text(text)


@pytest.fixture
def listed(page: Page, site: str) -> Page:
    page.goto(f"{site}/#/list")
    total(page, ALL)
    return page


def test_a_row_says_what_there_is_to_know(page: Page, site: str) -> None:
    page.goto(f"{site}/#/list?f=policy|is|openai tiny&f=source|is|traces&sort=steps")
    row = rows(page).first
    for text in ("not resolved", "shop/tax-0", "openai tiny"):
        expect(row).to_contain_text(text)
    cells = {"steps": "6", "tokens": "1,120", "cost": "$0.0100", "seconds": "5.5 s", "created": "2026-01-01 10:00"}
    for name, text in cells.items():
        expect(row.locator(f".c-{name}")).to_have_text(text)
    strip = row.get_by_role("img")
    expect(strip).to_have_accessible_name("verify ×1, seek ×2, edit ×1, verify ×1, submit ×1")
    assert strip.locator("rect.d-edit").evaluate("one => getComputedStyle(one).fill") == "rgb(230, 159, 0)"


def test_sorting_goes_both_ways_and_search_finds_what_was_said(listed: Page) -> None:
    for name, first in (("Sort by cost", "$0.3000"), ("Sort by cost, descending", "$0.0100")):
        listed.get_by_role("button", name=name).click()
        expect(rows(listed).first.locator(".c-cost")).to_have_text(first)
    assert listed.url.endswith("sort=cost")
    listed.keyboard.press("/")
    listed.keyboard.type("needle haystack")
    total(listed, "1 episode")
    rows(listed).first.click()
    expect(listed.get_by_role("heading", level=1)).to_have_text("shop/tax-0")


def test_any_field_filters(listed: Page) -> None:
    listed.get_by_label("Field").select_option("tag.split")
    listed.get_by_label("Value").fill("heldout")
    listed.get_by_role("button", name="Filter", exact=True).click()
    expect(listed.get_by_role("button", name="tag.split is heldout")).to_be_visible()
    total(listed, "21 episodes")
    listed.get_by_role("searchbox").fill('steps<=4 policy:"idle model"')
    listed.get_by_role("searchbox").press("Enter")
    total(listed, "3 episodes")
    listed.get_by_role("button", name=re.compile("^policy is")).click()
    total(listed, "6 episodes")
    listed.reload()
    total(listed, "6 episodes")
    listed.get_by_role("button", name="Clear all").click()
    total(listed, ALL)
    listed.get_by_label("tokens at least").fill("1140")
    listed.get_by_label("tokens at least").press("Enter")
    expect(listed.get_by_role("button", name="tokens ≥ 1140")).to_be_visible()
    total(listed, "10 episodes")


def test_bars_and_brushes_filter_and_follow_the_other_filters(listed: Page) -> None:
    listed.locator("figure[data-field=outcome]").get_by_role("button", name=re.compile("^not resolved")).click()
    total(listed, "17 episodes")
    kept = listed.locator("figure[data-field=outcome]").get_by_role("button", name=re.compile("^resolved"))
    expect(kept.locator(".number")).to_have_text("20")
    other = listed.locator("figure[data-field=policy]").get_by_role("button", name=re.compile("^idle"))
    expect(other.locator(".number")).to_have_text("6")
    box = listed.locator("figure[data-field=steps] svg").bounding_box()
    assert box is not None
    listed.mouse.move(box["x"] + 2, box["y"] + 20)
    listed.mouse.down()
    listed.mouse.move(box["x"] + box["width"] / 8, box["y"] + 20)
    listed.mouse.up()
    expect(listed.get_by_role("button", name=re.compile("^steps < 4"))).to_be_visible()
    total(listed, "7 episodes")


def test_the_keyboard_alone_opens_an_episode_and_comes_back(listed: Page) -> None:
    listed.keyboard.press("j")
    listed.keyboard.press("ArrowDown")
    expect(listed.locator("li.chosen a")).to_be_focused()
    chosen = listed.locator("li.chosen a").get_attribute("href")
    listed.keyboard.press("Enter")
    expect(listed.get_by_role("heading", level=2)).to_contain_text("Step 1")
    assert chosen is not None
    assert listed.url.endswith(chosen)
    listed.keyboard.press("Escape")
    total(listed, ALL)
    expect(listed.locator("li.chosen a")).to_have_attribute("href", chosen)
    listed.keyboard.press("End")
    expect(listed.locator("li.chosen a")).to_have_attribute("data-index", "42")
    listed.keyboard.press("?")
    expect(listed.get_by_role("dialog", name="Keys")).to_be_visible()


def test_a_long_list_is_paged_and_scrolls(browser: Browser, tmp_path: Path) -> None:
    write_run(tmp_path / "long", [make_trajectory(number, SEEK, policy=f"p{number}") for number in range(700)])
    with viewing(browser, tmp_path / "long") as (page, site, _):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{site}/#/list?sort=cost")
        total(page, "700 episodes")
        assert rows(page).count() < 80
        assert sum("api/rows" in url for url in asked) == 1
        page.locator(".scroller").evaluate("box => { box.scrollTop = box.scrollHeight }")
        expect(page.locator("[data-index='699']")).to_contain_text("shop/tax-699")
        assert rows(page).count() < 80


def test_a_run_in_progress_updates_by_itself(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(0)])
    write_journal(run, "tax-7", SEEK[:1])
    (run / "state.json").write_text('{"planned": 5}', encoding="utf-8")
    with viewing(browser, run) as (page, site, _):
        page.goto(f"{site}/#/list")
        total(page, "2 episodes")
        expect(rows(page).first).to_contain_text("running")
        rows(page).first.click()
        expect(page.get_by_role("listitem").filter(has=page.get_by_role("button", name="Step 1"))).to_have_count(1)
        write_journal(run, "tax-7", SEEK)
        expect(page.get_by_role("button", name=re.compile("Step 3: seek"))).to_be_visible()
        page.goto(f"{site}/#/list")
        (run / "journal" / "tax-7.jsonl").unlink()
        with (run / "trajectories.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{make_trajectory(7, created='2026-02-01T00:00:00Z').model_dump_json()}\n")
        expect(rows(page).first).to_contain_text("shop/tax-7")
        expect(rows(page).first).to_contain_text("resolved")
        total(page, "2 episodes")


def test_dataset_rows_are_no_further_episodes(listed: Page) -> None:
    """They are counted, plotted and listed apart."""
    expect(listed.locator("figure[data-field=view]")).to_have_count(0)
    listed.get_by_role("button", name="Show 49 dataset rows").click()
    total(listed, "49 dataset rows")
    listed.locator("figure[data-field=view]").get_by_role("button", name=re.compile("^seeker")).click()
    total(listed, "19 dataset rows")
    expect(rows(listed).first).to_contain_text("✓ hit")
    listed.get_by_role("link", name=re.compile("^dataset")).click()
    total(listed, "49 dataset rows")
    listed.get_by_role("link", name="Episodes").click()
    total(listed, ALL)


def test_columns_can_be_chosen_and_views_saved(listed: Page) -> None:
    listed.get_by_text("Columns", exact=True).click()
    listed.get_by_label("Cost", exact=True).uncheck()
    listed.get_by_label("Tag.split", exact=True).check()
    expect(listed.get_by_role("button", name="Sort by cost")).to_have_count(0)
    listed.keyboard.press("Escape")
    listed.get_by_role("button", name="Sort by tag.split").click()
    expect(rows(listed).first.locator(".c-field")).to_have_text("train")
    views = listed.get_by_text("Views", exact=True)
    views.click()
    listed.get_by_label("Name of the view").fill("by split")
    listed.get_by_role("button", name="Save this view").click()
    listed.get_by_role("link", name="Episodes").click()
    expect(listed.get_by_role("button", name="Sort by cost")).to_be_visible()
    listed.reload()
    views.click()
    listed.get_by_role("button", name="by split", exact=True).click()
    expect(listed.get_by_role("button", name="Sort by tag.split, descending")).to_be_visible()
    views.click()
    listed.get_by_role("button", name="Delete by split").click()
    expect(listed.get_by_label("Saved views").get_by_role("listitem")).to_have_count(0)


def test_tampering_is_marked_filtered_and_listed(browser: Browser, tmp_path: Path) -> None:
    tampered = make_trajectory(1, SEEK).model_copy(update={"tampering": ("process left running: sleep 99",)})
    write_run(tmp_path / "run", [make_trajectory(0, SEEK), tampered])
    with viewing(browser, tmp_path / "run") as (page, site, _):
        page.goto(f"{site}/#/list")
        total(page, "2 episodes")
        assert page.locator(".line .tampered").count() == 1
        page.get_by_role("searchbox").fill("tampered:yes")
        page.get_by_role("searchbox").press("Enter")
        total(page, "1 episode")
        rows(page).click()
        expect(page.locator("header .tampered")).to_have_attribute("title", "process left running: sleep 99")
        page.get_by_role("tab", name="Facts").click()
        expect(page.locator(".facts-pane")).to_contain_text("process left running: sleep 99")


def test_the_first_page_shows_what_there_is(page: Page, site: str) -> None:
    """Evaluations with their figures, runs with their outcomes, datasets with their parts; nothing counted twice."""
    page.goto(f"{site}/")
    expect(page.get_by_text("43 episodes, 49 dataset rows, 1 evaluation")).to_be_visible()
    run = page.get_by_label("Runs").get_by_role("row", name=re.compile("^traces"))
    expect(run).to_contain_text("20 resolved, 11 not resolved")
    expect(run).to_contain_text("$4.66")
    seekers = page.get_by_label("Datasets").get_by_role("row", name=re.compile("seeker train"))
    expect(seekers).to_contain_text(re.compile(r"(\d+) *\1 episodes"))
    card = page.get_by_label("Evaluations").get_by_role("article")
    expect(card).to_contain_text("6 tasks, 3 arms")
    card.get_by_role("button", name=re.compile("^the seeker: 67%")).click()
    expect(page.get_by_label("Tasks behind the bar")).to_contain_text("Solved: the seeker")
    page.get_by_role("link", name="Gumshoe").click()
    page.get_by_label("Runs").get_by_role("link", name="traces").click()
    expect(page.get_by_role("status")).to_have_text("31 episodes")
    page.goto(f"{site}/#/nowhere")
    expect(page.get_by_text("There is no such page.")).to_be_visible()
