"""The page of an evaluation, as a user goes through it in a browser; and the looks of everything."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from support.eval.viewer import quiet_page


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
    expect(seeker).to_contain_text("67%")
    expect(seeker).to_contain_text("+67%")
    expect(seeker).to_contain_text("4 better, 0 worse, p 0.125")
    expect(page.get_by_role("img", name="Calibration: first location is right by stated confidence")).to_be_visible()
    expect(page.get_by_text("the seeker, expected error 0.15")).to_be_visible()
    expect(page.get_by_role("img", name="Training: loss by step")).to_be_visible()
    expect(page.get_by_text("training loss, last 1.00")).to_be_visible()
    expect(page.get_by_text("shop/luck (2 of 3 runs)")).to_be_visible()
    expect(page.get_by_role("row", name="the seeker 0.5 1.5")).to_be_visible()
    page.get_by_label("Measure").select_option("solved")
    bar, curve = page.get_by_role("button", name=re.compile("^the seeker: ")), page.locator(".curve circle")
    colors = [bar.locator("rect[class^=a]").get_attribute("class"), curve.first.get_attribute("class")]
    assert colors == ["a1", "a1"]
    why = page.locator(".plots .why-p")
    why.get_by_text("Why is p not small where the interval excludes zero?").click()
    expect(why).to_contain_text("With 4 changed tasks, p cannot be below 0.125")
    page.get_by_role("row", name=re.compile("^Steps")).get_by_role("button").first.press("Enter")
    behind = page.get_by_label("Tasks behind the bar")
    expect(behind).to_contain_text("Steps: idle model")
    page.locator("body").press("Escape")
    expect(behind).to_have_count(0)
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
