"""The first page, as a user sees it in a browser."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from support.eval.view_samples import SEEK, make_trajectory, write_run
from support.eval.viewer import open_library, quiet_page, serving


def test_the_first_page_shows_what_there_is(page: Page, site: str) -> None:
    """Evaluations with their figures, runs with their outcomes, datasets with their parts; nothing counted twice."""
    page.goto(f"{site}/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
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
    page.get_by_role("link", name="seeker", exact=True).first.click()
    expect(page.get_by_role("status")).to_have_text("19 dataset rows")
    page.go_back()
    page.get_by_label("Runs").get_by_role("link", name="traces").click()
    expect(page.get_by_role("status")).to_have_text("31 episodes")
    page.goto(f"{site}/#/nowhere")
    expect(page.get_by_text("There is no such page.")).to_be_visible()


def test_a_running_evaluation_lists_its_arms_by_their_labels(browser: Browser, tmp_path: Path) -> None:
    write_run(tmp_path / "eval" / "arms" / "start", [make_trajectory(0, SEEK)])
    (tmp_path / "eval" / "config.yaml").write_text("arms: [{name: start, label: before training}]\n")
    with open_library(tmp_path) as library, serving(library) as site:
        with quiet_page(browser) as page:
            page.goto(f"{site}/")
            card = page.get_by_role("article", name="eval")
            expect(card).to_contain_text("Figures appear when every arm is done.")
            card.get_by_role("link", name="before training").click()
            expect(page.locator("a.line .c-policy")).to_have_text("before training")
