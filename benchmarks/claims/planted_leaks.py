"""Leaks put into the traces of a run, and how many of them the leak check finds.

    python -m benchmarks.claims.planted_leaks runs/eval/investigator/arms/teacher --count 100

Several run folders count as one.

Each trace, drawn by the seed, states at one step something that no earlier message has shown, but a later one does: the
reported place or function, a name, a number or a string. In every second trace the leak is in the report instead, which
then comes at that step. Exits with 1 if fewer than 95% are found.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.data.unseen import unseen
from gumshoe.records import Trajectory

KINDS = {
    "name": re.compile(r"\b[a-z]+(?:_[a-z]+)+\b"),
    "number": re.compile(r"\b[1-9]\d{2,4}\b"),
    "string": re.compile(r"'[A-Za-z]{3,}[ -][A-Za-z]{3,}'"),
}
WORD = re.compile(r"\w+")
GOAL = 0.95


def main() -> int:
    """Plants, checks, counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="run folders with reports")
    parser.add_argument("--count", type=int, default=100, help="traces with a leak (100)")
    parser.add_argument("--seed", type=int, default=0, help="which traces are drawn (0)")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    traces = chain.from_iterable(map(read_trajectories, options.runs))
    episodes = [one for one in traces if len(one.steps) > 1 and one.context_pack is not None]
    draw.shuffle(episodes)
    found: Counter[str] = Counter()
    planted: Counter[str] = Counter()
    for number, episode in enumerate(episodes):
        if planted.total() == options.count:
            break
        steps = draw.sample(range(1, len(episode.steps)), len(episode.steps) - 1)
        at, leaks = next(((at, leaks) for at in steps if (leaks := list(later(episode, at, draw)))), (0, []))
        if leaks:
            what, leak = draw.choice(leaks)
            place, plant = ("report", in_report) if number % 2 else ("rationale", in_rationale)
            new = set(unseen(plant(episode, at, f"It has to do with {leak}, I think.")))
            new -= set(unseen(plant(episode, at, "")))
            planted[f"{place}, {what}"] += 1
            found[f"{place}, {what}"] += any(one.where == place and one.text == leak.strip("'") for one in new)
    for what, count in sorted(planted.items()):
        print(f"{what}: found {found[what]} of {count}")
    print(f"found: {found.total()} of {planted.total()} planted leaks")
    return int(found.total() < GOAL * planted.total() or not planted)


def in_rationale(episode: Trajectory, at: int, sentence: str) -> Trajectory:
    """The trajectory with one more sentence in the rationale of a step."""
    index = episode.steps[at].message_index
    said = f"{episode.steps[at].completion.text} {sentence}"
    completion = episode.steps[at].completion.model_copy(update={"text": said})
    steps, messages = list(episode.steps), list(episode.messages)
    steps[at] = steps[at].model_copy(update={"completion": completion, "rationale": said})
    messages[index] = messages[index].model_copy(update={"content": said})
    return episode.model_copy(update={"steps": tuple(steps), "messages": tuple(messages)})


def in_report(episode: Trajectory, at: int, sentence: str) -> Trajectory:
    """The trajectory cut off before a step, with a report that says nothing but a sentence."""
    assert episode.context_pack is not None
    told = {"hypothesis": sentence, "locations": (), "findings": (), "ruled_out": (), "failing_frame": None}
    pack = episode.context_pack.model_copy(update=told)
    changed = {"steps": episode.steps[:at], "messages": episode.messages[: episode.steps[at].message_index]}
    return episode.model_copy(update={**changed, "context_pack": pack})


def later(episode: Trajectory, at: int, draw: random.Random) -> Iterator[tuple[str, str]]:
    """What a step cannot know, one of each kind."""
    index = episode.steps[at].message_index
    before = "\n".join(message.content for message in episode.messages[:index])
    before += "\n".join(tool.model_dump_json() for tool in episode.tools)
    after = "\n".join(message.content for message in episode.messages[index + 1 :])
    for what, leak in (*places(episode), *texts(after, draw)):
        if is_new(leak, before):
            yield what, leak


def is_new(leak: str, known: str) -> bool:
    """Whether the last word of a leak, such as a place's line number, does not occur in the known text."""
    return re.search(rf"\b{re.escape(WORD.findall(leak)[-1])}\b", known) is None


def places(episode: Trajectory) -> Iterator[tuple[str, str]]:
    """Where the report says the cause is."""
    assert episode.context_pack is not None
    for place in episode.context_pack.locations[:1]:
        yield "place", f"{place.path}:{place.start}"
        if place.symbol:
            yield "function", place.symbol


def texts(text: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    """One text of each kind."""
    for what, pattern in KINDS.items():
        matches = pattern.findall(text)
        if matches:
            yield what, draw.choice(matches)


if __name__ == "__main__":
    raise SystemExit(main())
