"""A tree in the player: what else was tried at a step, what it was worth, and how it ended."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from gumshoe.collect.data.export.export import export_runs
from gumshoe.eval.view.trees import tree_ids
from gumshoe.records import BranchPoint, Trajectory
from support.eval.view_samples import REPAIR, SEEK, make_trajectory, write_run
from support.eval.viewer import all_rows, open_library, quiet_page, serving

TURNS = (*SEEK, *REPAIR)


def branch(root: Trajectory, step: int, number: int, *, resolved: bool) -> Trajectory:
    """An episode that looks at other lines at a step of the root."""
    tool, decision, why, arguments, observed, data = TURNS[step]
    other = (tool, decision, why, {**arguments, "start": number}, observed, data)
    made = make_trajectory(2, (*TURNS[:step], other, *TURNS[step + 1 :]), resolved=resolved)
    point = BranchPoint(parent=root.id, step=step)
    return made.model_copy(update={"id": f"{root.id}/{step}.{number}", "branch": point})


def test_a_step_shows_what_else_was_tried_and_how_it_ended(browser: Browser, tmp_path: Path) -> None:
    root = make_trajectory(2, TURNS, resolved=False)
    members = [root, branch(root, 1, 1, resolved=True), branch(root, 1, 2, resolved=False)]
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


def test_rows_of_trees_can_be_looked_at(tmp_path: Path) -> None:
    root = make_trajectory(2, TURNS, resolved=False)
    run = write_run(tmp_path / "tree", [root, branch(root, 1, 1, resolved=True)])
    export_runs([run], tmp_path / "out", views=["preferences", "steps_scored"], test_share=0)
    with open_library(tmp_path / "out") as library:
        rows = {row["facts"]["view"]: row["key"] for row in all_rows(library)}
        pair = library.episode(rows["preferences"])
        assert [message["role"] for message in pair["messages"]][-1] == "assistant"
        assert pair["messages"][-1]["calls"][0]["arguments"]["start"] == 1, "the better one is shown"
        assert library.episode(rows["steps_scored"])["steps"] == []


def test_the_members_of_a_tree_are_found_from_any_of_them() -> None:
    parents = {"a/1.1": "a", "a/1.2": "a", "a/1.1/2.1": "a/1.1", "b/1.1": "b"}
    for name in ("a", "a/1.2", "a/1.1/2.1"):
        assert sorted(tree_ids(name, parents)) == ["a", "a/1.1", "a/1.1/2.1", "a/1.2"]
    assert tree_ids("c", parents) == ["c"]
    assert set(tree_ids("x", {"x": "y", "y": "x"})) == {"x", "y"}
