"""What the solver did with a pack, as a user looks it up in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.eval.view.library import Library
from support.eval.evaluation_samples import write_evaluation
from support.eval.view_samples import HOSTILE, make_task
from support.eval.viewer import all_rows, open_library, serving


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Library]]:
    folder = tmp_path_factory.mktemp("repaired")
    write_evaluation(folder / "eval", solver=True)
    write_taskset(folder / "tasks", [make_task(number) for number in range(6)])
    with open_library(folder) as library, serving(library) as address:
        yield address, library


def opened(page: Page, repaired: tuple[str, Library], source: str, task: str) -> Locator:
    """The pack's pane of an episode."""
    address, library = repaired
    rows = all_rows(library)
    key = next(row["key"] for row in rows if (row["source"], row["task"]) == (source, task))
    page.goto(f"{address}/#/episode/{key}?tab=pack")
    return page.get_by_role("tabpanel")


def test_its_patch_stands_beside_the_gold_patch(page: Page, repaired: tuple[str, Library]) -> None:
    pane = opened(page, repaired, "eval.seeker", "shop/tax-1")
    solver = pane.get_by_role("region", name="What the solver did")
    expect(solver).to_contain_text("models/big, agent")
    mine = solver.get_by_role("article", name="With this pack")
    expect(mine).to_contain_text(re.compile("✓ resolved.*the seeker.*3 steps, 1,120 tokens, \\$0.0200, 2.5 s"))
    expect(mine).to_contain_text("Tests: 4 tests pass.")
    expect(mine).to_contain_text("It changed 1 of the 2 locations that the pack names, and nothing else.")
    expect(mine).to_contain_text("✓ same change as gold")
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


def test_its_steps_are_a_link_away_and_lead_back_to_the_pack(page: Page, repaired: tuple[str, Library]) -> None:
    pane = opened(page, repaired, "eval.seeker", "shop/tax-1")
    pane.get_by_role("article", name="With this pack").get_by_role("link", name="Its steps").click()
    expect(page.get_by_role("article", name="Step 1")).to_contain_text("The tax is wrong.")
    page.keyboard.press("3")
    pane = page.get_by_role("tabpanel")
    expect(pane).to_contain_text("This is a solver episode.")
    expect(pane.get_by_role("article", name="With this pack")).to_contain_text("✓ resolved")
    pane.get_by_role("link", name="this report").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("The tax is 1 and should be 2.")


def test_the_other_attempts_are_listed_and_the_evaluation_leads_to_steps(
    page: Page, repaired: tuple[str, Library]
) -> None:
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
