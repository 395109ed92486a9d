"""The page of an evaluation, and what the solver did with a pack, as a user goes through them in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.eval.view.library import Library
from support.eval.view_samples import HOSTILE, make_task, write_evaluation
from support.eval.viewer import all_rows, open_library, quiet_page, serving

Repaired = tuple[str, Library]


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repaired]:
    folder = tmp_path_factory.mktemp("repaired")
    write_evaluation(folder / "eval", solver=True)
    write_taskset(folder / "tasks", [make_task(number) for number in range(6)])
    with open_library(folder) as library, serving(library) as address:
        yield address, library


def opened(page: Page, repaired: Repaired, source: str, task: str) -> Locator:
    """The pack's pane of an episode."""
    address, library = repaired
    rows = all_rows(library)
    key = next(row["key"] for row in rows if (row["source"], row["task"]) == (source, task))
    page.goto(f"{address}/#/episode/{key}?tab=pack")
    return page.get_by_role("tabpanel")


def test_its_patch_stands_beside_the_gold_patch(page: Page, repaired: Repaired) -> None:
    pane = opened(page, repaired, "eval.seeker", "shop/tax-1")
    solver = pane.get_by_role("region", name="What the solver did")
    expect(solver).to_contain_text("models/big, agent")
    mine = solver.get_by_role("article", name="With this pack")
    for shown in (
        re.compile("✓ resolved.*the seeker.*3 steps, 1,120 tokens, \\$0.0200, 2.5 s"),
        "Tests: 4 tests pass.",
        "It changed 1 of the 2 locations that the pack names, and nothing else.",
        "✓ same change as gold",
    ):
        expect(mine).to_contain_text(shown)
    expect(mine.locator(".patch")).to_have_count(2)
    expect(mine.locator(".plus")).to_have_text(["+    tax = 2", "+    tax = 2"])
    expect(pane.locator(".locations li").first).to_contain_text("✎ changed by the solver")
    expect(pane.locator(".locations li").last).not_to_contain_text("changed by the solver")
    wrong = opened(page, repaired, "eval.seeker", "shop/tax-4").get_by_role("article", name="With this pack")
    expect(wrong).to_contain_text("✗ not resolved")
    expect(wrong).to_contain_text("Tests: 1 still fail: test_cart.py::test_total.")
    expect(wrong).to_contain_text("It changed 0 of the 2 locations that the pack names, but cart.py:3.")
    expect(wrong).not_to_contain_text("same change")
    none = opened(page, repaired, "eval.seeker", "shop/tax-5").get_by_role("article", name="With this pack")
    expect(none).to_contain_text("No patch was made.")
    expect(none).not_to_contain_text("Tests:")


def test_a_patch_that_is_none_and_one_without_end_break_nothing(tmp_path: Path) -> None:
    write_evaluation(tmp_path / "eval", solver=True)
    results = tmp_path / "eval" / "results.jsonl"
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    for line in lines:
        line["patch"] = HOSTILE if line["task_id"] == "shop/tax-1" else "+" * 2_000_000
    results.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with open_library(tmp_path) as library:
        rows = [row for row in all_rows(library) if row["source"] == "eval.seeker"]
        found = {row["task"]: library.episode(row["key"]) for row in rows}
    mine = found["shop/tax-1"]["evaluated"]["answers"][0]
    assert (mine["patch"], mine["edited"], mine["elsewhere"]) == (HOSTILE, [False, False], [])
    assert found["shop/tax-2"]["cut"] == 3
    results.write_text("no JSON\n")
    with open_library(tmp_path) as library:
        assert library.episode(rows[0]["key"])["evaluated"] is None


def test_its_steps_are_a_link_away_and_lead_back_to_the_pack(page: Page, repaired: Repaired) -> None:
    pane = opened(page, repaired, "eval.seeker", "shop/tax-1")
    pane.get_by_role("article", name="With this pack").get_by_role("link", name="Its steps").click()
    expect(page.get_by_role("article", name="Step 1")).to_contain_text("The tax is wrong.")
    page.keyboard.press("3")
    pane = page.get_by_role("tabpanel")
    expect(pane).to_contain_text("This is a solver episode.")
    expect(pane.get_by_role("article", name="With this pack")).to_contain_text("✓ resolved")
    pane.get_by_role("link", name="this report").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("The tax is 1 and should be 2.")


def test_the_other_attempts_are_listed_and_the_evaluation_leads_to_steps(page: Page, repaired: Repaired) -> None:
    pane = opened(page, repaired, "eval.idle", "shop/tax-1")
    others = pane.locator(".answers li")
    expect(others).to_have_count(2)
    expect(others.first).to_contain_text(re.compile("✓ resolved *the seeker"))
    others.first.get_by_text("Patch").click()
    expect(others.first.locator(".plus")).to_have_text("+    tax = 2")
    pane.get_by_role("link", name="The evaluation").click()
    page.get_by_label("Measure").select_option("solved")
    page.get_by_role("button", name=re.compile("^the seeker: ")).click()
    behind = page.get_by_label("Tasks behind the bar")
    behind.get_by_role("row", name="shop/tax-1").get_by_role("link", name="solver").click()
    expect(page.get_by_role("article", name="Step 1")).to_contain_text("The tax is wrong.")


def test_a_bar_gives_the_tasks_behind_it(page: Page, site: str) -> None:
    page.goto(f"{site}/")
    page.get_by_role("navigation").get_by_role("link", name="eval", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How much does it see?")
    page.get_by_label("Measure").select_option("solved")
    bar = page.get_by_role("button", name=re.compile(r"^the seeker: 67%, from \d+% to \d+%, 6 tasks"))
    bar.click()
    behind = page.get_by_label("Tasks behind the bar")
    expect(behind.locator("tbody tr")).to_have_count(6)
    page.get_by_role("combobox", name=re.compile("^Tasks")).select_option("heldout")
    expect(behind.locator("tbody tr")).to_have_count(3)
    assert "group=heldout" in page.url
    page.reload()
    expect(behind.locator("tbody tr")).to_have_count(3)
    behind.get_by_role("link", name="shop/tax-1").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("The tax is 1 and should be 2.")


def test_uplift_calibration_training_and_flaky_tasks_are_shown(page: Page, site: str) -> None:
    page.goto(f"{site}/#/evaluation/eval")
    worth = page.locator("section", has=page.get_by_role("heading", name="What the reports are worth"))
    seeker = worth.get_by_role("row", name=re.compile("^the seeker"))
    for text in ("67%", "+67%", "4 better, 0 worse, p 0.125"):
        expect(seeker).to_contain_text(text)
    for picture in ("Calibration: first location is right by stated confidence", "Training: loss by step"):
        expect(page.get_by_role("img", name=picture)).to_be_visible()
    for text in ("the seeker, expected error 0.15", "training loss, last 1.00", "shop/luck (2 of 3 runs)"):
        expect(page.get_by_text(text)).to_be_visible()
    expect(page.get_by_role("row", name="the seeker 0.5 1.5")).to_be_visible()
    page.get_by_label("Measure").select_option("solved")
    bar, curve = page.get_by_role("button", name=re.compile("^the seeker: ")), page.locator(".curve circle")
    colors = [bar.locator("rect[class^=a]").get_attribute("class"), curve.first.get_attribute("class")]
    assert colors == ["a1", "a1"]
    why = page.locator(".plots .why-p")
    why.get_by_text("Why is p not small where the interval excludes zero?").click()
    expect(why).to_contain_text("With 4 changed tasks, p cannot be below 0.125")
    behind = page.get_by_label("Tasks behind the bar")
    page.get_by_role("combobox", name=re.compile("^Measure")).select_option("line_recall")
    expect(why).to_have_count(0)
    page.get_by_role("button", name=re.compile(r"^the seeker against idle model: \+100%")).click()
    expect(behind.locator("tr.better")).to_have_count(6)
    expect(page.locator(".differences")).to_contain_text("6 better, 0 worse")
    behind.get_by_role("link", name="side by side").first.click()
    expect(page.get_by_label("Second episode").get_by_role("article", name="Step 1")).to_be_visible()


def test_a_task_opens_with_its_patches_and_verdicts(page: Page, site: str) -> None:
    page.goto(f"{site}/#/evaluation/eval")
    tasks = page.get_by_label("Tasks", exact=True)
    tasks.get_by_role("button", name="shop/tax-0").click()
    assert "task=shop%2Ftax-0" in page.url
    opened = tasks.locator(".one-task")
    expect(opened).to_contain_text("+    tax = 2")
    expect(opened.locator("details.attempt")).to_have_count(3)
    seeker = opened.locator("details.attempt", has_text="the seeker")
    expect(seeker).to_contain_text("✓ solved")
    seeker.locator("summary").click()
    seeker.get_by_role("link", name="Episode").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("The tax is 1 and should be 2.")


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1280, False)], ids=["narrow-dark", "wide-light"])
def test_nothing_is_wider_than_the_screen_and_text_is_readable(
    browser: Browser, site: str, width: int, dark: bool
) -> None:
    """Every view, in both schemes: no sideways scrolling, and ink that stands out from its ground."""
    with quiet_page(browser, width=width, dark=dark) as page:
        page.goto(f"{site}/#/list")
        page.locator("a.line").first.wait_for()
        key = page.locator("a.line").first.get_attribute("href")
        for address in ("#/", "#/list?c=task&c=tag.split", f"{key}?step=2", f"{key}?tab=pack", "#/evaluation/eval"):
            page.goto(f"{site}/{address}")
            page.locator(".outcomes, a.line, .step, .plots").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("button", name=re.compile("^the seeker: ")).click()
        expect(page.get_by_label("Tasks behind the bar")).to_be_in_viewport()
        ink, ground = page.evaluate(
            "['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number))"
        )
        assert abs(sum(ink) - sum(ground)) > 500
        assert (sum(ground) < 100) == dark
        page.keyboard.press("t")
        expect(page.locator("html")).to_have_attribute("data-theme", "light" if dark else "dark")
