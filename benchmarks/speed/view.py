"""How soon `gumshoe view` shows something useful, and how much memory it uses, for runs of several sizes.

The command itself is started on a run folder generated for the purpose, and headless Chromium opens its page. Printed
for each size:

- first: seconds from the start of the command to the first rows on the screen;
- page: seconds from the opening of the page to the first rows, by the browser's clock, once all words can be searched;
- all rows, all words: seconds until every episode is in the list, and until every word can be searched;
- search, sort, end: milliseconds until a search, a new sort order and a jump to the last row are on the screen;
- memory of the server, and of the page's JavaScript.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
CODE = "".join(
    f"{number:4}     value_{number % 7} = compute(item, {number}) if item else None\n" for number in range(12)
)
TOOLS = ("eval", "grep", "view", "pdb", "view", "pdb", "rewrite", "eval")
FOUND = re.compile(r"^(1|11|111) episodes?$")
"""The last word of a search finds what begins with it: item_77, and in larger runs item_770 and item_7700, too."""
COLUMNS = ("first_s", "page_s", "all_rows_s", "all_words_s", "search_ms", "sort_ms", "end_ms", "server_mb", "page_mb")
DECISIONS = ("verify", "seek", "seek", "seek", "seek", "seek", "edit", "verify")


def main() -> None:
    """Measures every size and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("the viewer's benchmark needs Chromium: apt-get install chromium")
    print("| episodes | run, MB | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (len(COLUMNS) + 2))
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, "--enable-precise-memory-info"])
        for episodes in arguments.episodes:
            run = Path(scratch) / f"run-{episodes}"
            make_run(run, episodes, arguments.steps)
            size = (run / "trajectories.jsonl").stat().st_size / 1e6
            found = measure(browser, run, episodes)
            cells = " | ".join(
                f"{found[name]:.2f}" if name.endswith("_s") else f"{found[name]:.0f}" for name in COLUMNS
            )
            print(f"| {episodes:,} | {size:.0f} | {cells} |", flush=True)
        browser.close()


def make_run(folder: Path, episodes: int, steps: int) -> None:
    """A run of that many episodes; each differs in its numbers and words."""
    folder.mkdir(parents=True)
    with (folder / "trajectories.jsonl").open("w", encoding="utf-8") as file:
        for number in range(episodes):
            file.write(f"{json.dumps(episode(number, steps))}\n")


def episode(number: int, steps: int) -> dict[str, Any]:
    """A trajectory with `steps` steps, as a record of `trajectories.jsonl`."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You repair a Python repository whose tests fail."},
        {"role": "user", "content": f"test_{number} fails with a wrong total in module_{number % 97}."},
    ]
    turns: list[dict[str, Any]] = []
    for index in range(steps):
        kind = index % len(TOOLS)
        call = {"id": f"c{index}", "name": TOOLS[kind], "arguments": {"path": f"module_{number % 97}.py"}}
        text = f"[{DECISIONS[kind]} 0.6] I look at value_{index} of item_{number}."
        seen = f"module_{number % 97}.py {index}-{index + 12} of 400 lines\n{CODE}value_{index} = {number * index}"
        usage = {"prompt_tokens": 400 + 90 * index, "completion_tokens": 40, "cost_usd": 0.0004 * index}
        turns.append(
            {
                "index": index,
                "message_index": len(messages),
                "decision": DECISIONS[kind],
                "stated": DECISIONS[kind],
                "rationale": f"I look at value_{index} of item_{number}.",
                "confidence": 0.6,
                "completion": {"text": text, "tool_calls": [call], "usage": usage},
                "observations": [{"tool": TOOLS[kind], "text": seen, "duration_s": 0.02}],
                "started_at": 0.5 * index,
                "duration_s": 0.4 + 0.01 * (number % 9),
            }
        )
        messages += [
            {"role": "assistant", "content": text, "tool_calls": [call]},
            {"role": "tool", "content": f"[step {index}] {seen}", "tool_call_id": call["id"], "name": TOOLS[kind]},
        ]
    return {
        "schema_version": 1,
        "id": f"bench/{number}#0",
        "task": {"id": f"bench/{number % 2500}", "hash": "h", "source": "bench", "regime": "debug"}
        | {"tags": {"project": f"module_{number % 97}", "split": "train"}},
        "policy": {"kind": "openai", "model": f"model-{number % 4}", "agent": "debug"},
        "tools": [],
        "messages": messages,
        "steps": turns,
        "stop": ("submitted", "step_limit")[number % 5 == 0],
        "scores": [{"name": "resolved", "value": float(number % 3 > 0)}],
        "usage": {"prompt_tokens": 2000 + number, "completion_tokens": 40 * steps, "cost_usd": 0.01},
        "provenance": {
            "gumshoe": "0",
            "python": "3",
            "sandbox": "local",
            "created_at": f"2026-01-01T00:00:{number:05}",
        },
    }


@contextmanager
def viewer(run: Path) -> Generator[tuple[str, int]]:
    """The running command: its address and process id."""
    argv = [sys.executable, "-m", "gumshoe", "view", str(run), "--port", "0"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, "the viewer did not start"
        yield found[0], process.pid
    finally:
        process.terminate()
        process.wait()


def measure(browser: Browser, run: Path, episodes: int) -> dict[str, float]:
    """One start of the viewer, and one visit."""
    figures: dict[str, float] = {}
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    began = time.perf_counter()
    with viewer(run) as (address, process):
        page.goto(f"{address}#/list")
        page.locator("a.line").first.wait_for()
        figures["first_s"] = time.perf_counter() - began
        figures["all_rows_s"] = _until(address, began, lambda told: told["sources"][0]["episodes"] == episodes)
        figures["all_words_s"] = _until(address, began, lambda told: told["searchable"])
        page.reload()
        page.locator("a.line").first.wait_for()
        figures["page_s"] = page.evaluate("performance.now()") / 1000
        figures["search_ms"] = _interact(page, "searchbox")
        figures["sort_ms"] = _interact(page, "sort")
        figures["end_ms"] = _interact(page, "end")
        figures["server_mb"] = _memory(process)
        figures["page_mb"] = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
    page.close()
    return figures


def _interact(page: Page, what: str) -> float:
    """Milliseconds until a gesture's result is on the screen."""
    before = page.locator("a.line").first.get_attribute("href")
    began = time.perf_counter()
    if what == "searchbox":
        page.get_by_role("searchbox").fill("item_77 test_77")
        page.get_by_role("searchbox").press("Enter")
        expect(page.get_by_role("status")).to_have_text(FOUND, timeout=60_000)
    elif what == "sort":
        page.goto(page.url.partition("#")[0] + "#/list?sort=tokens")
        expect(page.locator("a.line").first).not_to_have_attribute("href", before or "", timeout=60_000)
    else:
        page.locator(".scroller").evaluate("box => { box.scrollTop = box.scrollHeight }")
        expect(page.locator("li.pending")).to_have_count(0, timeout=60_000)
    return (time.perf_counter() - began) * 1000


def _until(address: str, began: float, done: Any) -> float:
    while True:
        with urllib.request.urlopen(f"{address}api/overview", timeout=60) as answer:
            if done(json.load(answer)):
                return time.perf_counter() - began
        time.sleep(0.1)


def _memory(process: int) -> float:
    """How much memory the process uses, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1000


if __name__ == "__main__":
    main()
