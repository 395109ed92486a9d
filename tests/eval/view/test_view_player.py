"""The player, the pack, trees and two episodes side by side, as a user goes through them in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from gumshoe.collect.data.export.export import export_runs
from gumshoe.eval.view.library import Library
from gumshoe.records import BranchPoint, Decision, Trajectory
from support.eval.view_samples import REPAIR, SEEK, make_trajectory, write_run
from support.eval.viewer import all_rows, open_library, quiet_page, serving, viewing


def key_of(library: Library, source: str, task: str = "shop/tax-1", policy: str = "openai tiny") -> str:
    wanted = (source, task, policy)
    return next(row["key"] for row in all_rows(library) if (row["source"], row["task"], row["policy"]) == wanted)


@pytest.fixture
def played(page: Page, site: str, library: Library) -> Page:
    page.goto(f"{site}/#/episode/{key_of(library, 'traces')}")
    expect(page.get_by_role("heading", level=1)).to_have_text("shop/tax-1")
    return page


def tab(page: Page, name: str) -> Locator:
    page.get_by_role("tab", name=re.compile(f"^{name}")).click()
    return page.get_by_role("tabpanel")


def test_a_step_shows_what_it_saw_decided_called_and_got(played: Page) -> None:
    expect(played.get_by_text("Prompt")).to_be_visible()
    played.keyboard.press("ArrowRight")
    played.keyboard.press("l")
    step = played.get_by_role("article", name="Step 3")
    for shown in ("Which tax is there?", "confidence 0.50", "300 in, 20 out, 50 cached", re.compile("500 ms|0.5 s")):
        expect(step).to_contain_text(shown)
    expect(step.locator(".call")).to_contain_text("b cart.py:2, prices")
    expect(step.locator(".came")).to_contain_text("prices = [3, 4]")
    step.get_by_text("Seen before this step: step 2").click()
    expect(step.locator(".saw")).to_contain_text("cart.py 1-3 of 3 lines")
    assert played.url.endswith("step=3")
    played.reload()
    expect(played.get_by_role("article", name="Step 3")).to_be_visible()
    played.keyboard.press("End")
    expect(played.get_by_role("article", name="Step 6")).to_contain_text("bad arguments")
    played.get_by_role("button", name=re.compile("^Step 4: edit")).click()
    expect(played.get_by_role("article", name="Step 4")).to_be_visible()


def test_the_debugger_stands_beside_the_code(played: Page) -> None:
    for _ in range(2):
        played.keyboard.press("ArrowRight")
    pane = tab(played, "Code")
    line = pane.locator(".code-line.now")
    expect(line).to_contain_text("tax = 1")
    expect(line.locator(".no")).to_have_text("2")
    expect(line.get_by_label("breakpoint")).to_be_visible()
    expect(pane.locator(".tok-keyword").first).to_have_text("def")
    expect(pane.locator(".debugger")).to_contain_text("cart.py:2 if prices hit 1×")
    expect(pane.locator(".frames li.here")).to_contain_text("total cart.py:2")
    expect(pane.locator(".frames li.here .locals")).to_contain_text("[3, 4]")


def test_the_diff_grows_and_the_code_follows_it(played: Page) -> None:
    pane = tab(played, "Diff")
    expect(pane).to_contain_text("No changes up to this step")
    for _ in range(3):
        played.keyboard.press("ArrowRight")
    expect(pane.locator(".plus")).to_have_text("+    tax = 2")
    expect(tab(played, "Code").locator(".code-line.fresh")).to_contain_text("tax = 2")
    played.keyboard.press("End")
    played.keyboard.press("2")
    expect(pane).to_contain_text("Final patch")


def test_the_messages_are_those_that_the_model_got_and_can_be_downloaded(played: Page) -> None:
    for _ in range(3):
        played.keyboard.press("ArrowRight")
    played.keyboard.press("4")
    pane = played.get_by_role("tabpanel")
    expect(pane).to_contain_text("8 messages, 6 tools")
    expect(pane).to_contain_text("The model counts from 0: its [step 0] is step 1 here.")
    expect(pane.locator(".message.tool").first).to_contain_text("[step 0] [left out: 40 characters]")
    expect(pane.locator(".message.tool").nth(1)).to_contain_text("cart.py 1-3 of 3 lines")
    pane.get_by_text("Tools", exact=True).click()
    expect(pane).to_contain_text("The tool rewrite.")
    facts = tab(played, "Facts")
    expect(facts).to_contain_text("tests run")
    with played.expect_download() as download:
        facts.get_by_role("link", name="The stored JSON").click()
    assert download.value.suggested_filename == "trajectory.json"
    before = played.url
    played.keyboard.press("[")
    expect(played).not_to_have_url(before)
    expect(played.get_by_role("article", name="Step 1")).to_be_visible()
    played.keyboard.press("Escape")
    expect(played.get_by_role("status")).to_be_visible()


def test_the_pack_beside_the_gold_patch(page: Page, site: str, library: Library) -> None:
    page.goto(f"{site}/#/episode/{key_of(library, 'eval.seeker', policy='the seeker')}?tab=pack")
    pane = page.get_by_role("tabpanel")
    expect(pane.locator(".locations li.good")).to_have_text(re.compile("✓ hit cart.py:2 total"))
    expect(pane.locator(".locations li.bad")).to_have_text(re.compile("✗ miss test_cart.py:1–3"))
    expect(pane.locator("pre.python")).to_have_text(re.compile(r"def test_tax.*== 6", re.DOTALL))
    expect(pane.locator(".gold .plus")).to_have_text("+    tax = 2")
    confirmed = pane.locator(".findings li.good")
    expect(confirmed).to_contain_text("✓ confirmed the prices are known")
    expect(confirmed).to_contain_text("Probe: cart.py:2, time 1 in test_cart.py::test_total prices = [3, 4]")
    expect(pane.locator(".findings li.bad")).to_contain_text("✗ not quoted the tax was seen")
    for kind, color in (("good", "rgb(0, 105, 76)"), ("bad", "rgb(178, 58, 0)")):
        assert pane.locator(f".findings li.{kind}").evaluate("one => getComputedStyle(one).borderLeftColor") == color
    confirmed.get_by_role("button", name="Step 3").click()
    expect(page.locator("mark.quoted")).to_have_text("prices = [3, 4]")
    expect(pane.get_by_role("article", name="With this pack")).to_contain_text(re.compile("✓ resolved *the seeker"))
    expect(pane.locator(".answers")).to_contain_text(re.compile("✗ not resolved *solver alone"))


def test_two_episodes_of_a_task_side_by_side(played: Page) -> None:
    played.keyboard.press("ArrowRight")
    played.keyboard.press("c")
    expect(played.locator(".others").get_by_role("link", name="side by side").first).to_be_focused()
    played.locator(".others li").filter(has_text="eval.seeker").get_by_role("link", name="side by side").click()
    first, second = played.get_by_label("First episode"), played.get_by_label("Second episode")
    expect(first.get_by_role("article", name="Step 2")).to_be_visible()
    expect(second.get_by_role("article", name="Step 2")).to_be_visible()
    for _ in range(3):
        played.keyboard.press("ArrowRight")
    expect(first.get_by_role("article", name="Step 5")).to_be_visible()
    expect(second).to_contain_text("It ended after step 4: reported.")
    assert "step=5" in played.url
    played.keyboard.press("Escape")
    expect(played.get_by_role("article", name="Step 5")).to_be_visible()


def test_a_program_that_ended_is_not_stopped_at_a_line(browser: Browser, tmp_path: Path) -> None:
    """The last word of the debugger counts."""
    over = ("pdb", Decision.SEEK, "On.", {"command": "c"}, "program ended with exit code 1", {"state": "exited"})
    run = write_run(tmp_path / "run", [make_trajectory(0, (*SEEK, over, *REPAIR))])
    with viewing(browser, run) as (page, site, library):
        page.goto(f"{site}/#/episode/{all_rows(library)[0]['key']}?step=3")
        pane = page.get_by_role("tabpanel")
        expect(pane.locator(".source")).to_contain_text("stopped at line 2")
        expect(pane).not_to_contain_text("has ended")
        page.keyboard.press("ArrowRight")
        expect(pane).to_contain_text("The program has ended.")
        expect(pane).not_to_contain_text("stopped at line")


def test_a_dataset_row_shows_whose_messages_train(page: Page, site: str, library: Library) -> None:
    key = key_of(library, "dataset", "shop/tax-2")
    page.goto(f"{site}/#/episode/{key}?tab=mask")
    pane = page.get_by_role("tabpanel")
    expect(pane.locator("mark.trained").first).to_contain_text("[verify 0.3] I run the tests.")
    expect(pane).to_contain_text("--model FOLDER")
    expect(page.get_by_role("article", name="Step 1")).to_contain_text("I run the tests.")
    page.goto(f"{site}/#/episode/{key}?tab=mask&step=3")
    page.reload()
    here = pane.locator("mark[aria-current]")
    expect(here).to_contain_text("Which tax is there?")
    expect(here).to_be_in_viewport()
    page.keyboard.press("ArrowRight")
    expect(here).not_to_contain_text("Which tax is there?")


def test_what_a_step_says_without_having_seen_it_is_marked(browser: Browser, tmp_path: Path) -> None:
    made = make_trajectory(0, SEEK)
    steps = list(made.steps)
    steps[1] = steps[1].model_copy(update={"rationale": "compute_vat in shop/vat.py:77 must be wrong"})
    write_run(tmp_path / "run", [made.model_copy(update={"steps": tuple(steps)})])
    with viewing(browser, tmp_path / "run") as (page, site, library):
        page.goto(f"{site}/#/episode/{all_rows(library)[0]['key']}?step=2")
        said = page.get_by_role("article", name="Step 2").locator(".unseen.bad")
        expect(said).to_contain_text("shop/vat.py:77 (place in the rationale)")
        expect(said).to_contain_text("compute_vat (name in the rationale)")
        page.keyboard.press("Home")
        expect(page.get_by_role("article", name="Step 1").locator(".unseen.bad")).to_have_count(0)


TURNS = (*SEEK, *REPAIR)


def branch(root: Trajectory, number: int, *, resolved: bool) -> Trajectory:
    """An episode that looks at other lines at the second step of the root."""
    tool, decision, why, arguments, observed, data = TURNS[1]
    other = (tool, decision, why, {**arguments, "start": number}, observed, data)
    made = make_trajectory(2, (TURNS[0], other, *TURNS[2:]), resolved=resolved)
    return made.model_copy(update={"id": f"{root.id}/1.{number}", "branch": BranchPoint(parent=root.id, step=1)})


def test_a_step_shows_what_else_was_tried_and_how_it_ended(browser: Browser, tmp_path: Path) -> None:
    root = make_trajectory(2, TURNS, resolved=False)
    members = [root, branch(root, 1, resolved=True), branch(root, 2, resolved=False)]
    run = write_run(tmp_path / "tree", [*members, make_trajectory(3, TURNS)])
    with open_library(run) as library:
        keys = {row["id"]: row["key"] for row in all_rows(library)}
        (place,) = library.episode(keys[f"{root.id}/1.1"])["tree"]
        found = [(one["value"], one["count"], one["advantage"], one["mine"]) for one in place["tried"]]
        assert place["step"] == 1
        assert found == [(1.0, 1, 1.0, True), (0.0, 1, -0.5, False), (0.0, 1, -0.5, False)]
        assert library.episode(keys[make_trajectory(3, TURNS).id])["tree"] == []
        with serving(library) as site, quiet_page(browser) as page:
            page.goto(f"{site}/#/episode/{keys[root.id]}?step=2")
            table = page.get_by_label("Tried at this step")
            expect(table.locator("tbody tr")).to_have_count(3)
            expect(table.locator("tr.mine")).to_contain_text("this one")
            expect(table.locator("tbody tr").first).to_contain_text("resolved")
            expect(page.get_by_label("Steps").get_by_role("button", name="2 others tried")).to_have_count(1)
            page.set_viewport_size({"width": 400, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= 400
            table.get_by_role("link", name="open").first.click()
            expect(table.locator("tr.mine")).to_contain_text("1.00")
    export_runs([run], tmp_path / "out", views=["preferences", "steps_scored"], test_share=0)
    with open_library(tmp_path / "out") as library:
        rows = {row["facts"]["view"]: row["key"] for row in all_rows(library)}
        last = library.episode(rows["preferences"])["messages"][-1]
        assert (last["role"], last["calls"][0]["arguments"]["start"]) == ("assistant", 1), "the better one is shown"
        assert library.episode(rows["steps_scored"])["steps"] == []
