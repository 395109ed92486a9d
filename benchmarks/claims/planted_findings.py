"""Wrong values in the findings of a run's reports, and how many of them `gumshoe probe` contradicts.

    python -m benchmarks.claims.planted_findings runs/eval/investigator/arms/teacher --count 100

In reports of the run, drawn by the seed, each finding with a probe gets a different value: a number goes up by one,
True becomes False, a word ends in a different letter; for a change, a different number of tests passes. Each report is
then checked again in a fresh sandbox. Exits with 1 if a planted value is not contradicted.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from gumshoe.collect.data.store import read_trajectories
from gumshoe.records import ContextPack, Finding, StopProbe
from gumshoe.tools.evidence.facts import EXCEPTION

OTHER = {"True": "False", "False": "True", "None": "0"}


def main() -> int:
    """Plants, runs, counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder with reports")
    parser.add_argument("--count", type=int, default=100, help="findings with a wrong value (100)")
    parser.add_argument("--seed", type=int, default=0, help="which reports are drawn (0)")
    parser.add_argument("--sandbox", default="bubblewrap", help="where the tests run (bubblewrap)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        planted = plant(options.run, Path(folder), options.count, options.seed)
        argv = [sys.executable, "-m", "gumshoe", "probe", folder, "--sandbox", options.sandbox, "--json"]
        said = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False).stdout
    checks = Counter(
        f"{kind_of(finding)}: {finding.check.status if finding.check else 'not run'}"
        for report in map(json.loads, said.splitlines())
        for number, finding in enumerate(ContextPack.model_validate(report["pack"]).findings)
        if number in planted.get(report["id"], ())
    )
    for what, count in sorted(checks.items()):
        print(f"{what}: {count}")
    contradicted = sum(count for what, count in checks.items() if what.endswith(": contradicted"))
    wanted = sum(map(len, planted.values()))
    print(f"contradicted: {contradicted} of {wanted} planted values, in {len(planted)} reports")
    return int(contradicted != wanted)


def plant(run: Path, folder: Path, count: int, seed: int) -> dict[str, list[int]]:
    """Writes a run with wrong values. Returns the numbers of the findings that have one, by episode."""
    shutil.copy(run / "config.yaml", folder)
    planted: dict[str, list[int]] = {}
    left = count
    episodes = [one for one in read_trajectories(run) if one.context_pack is not None]
    random.Random(seed).shuffle(episodes)
    with (folder / "trajectories.jsonl").open("w") as file:
        for episode in episodes:
            assert episode.context_pack is not None
            findings = list(episode.context_pack.findings)
            chosen = [(number, new) for number, one in enumerate(findings) if (new := changed(one)) is not None][:left]
            if not chosen:
                continue
            for number, new in chosen:
                findings[number] = new
            pack = episode.context_pack.model_copy(update={"findings": tuple(findings)})
            file.write(episode.model_copy(update={"context_pack": pack}).model_dump_json() + "\n")
            planted[episode.id] = [number for number, _ in chosen]
            left -= len(chosen)
    return planted


def changed(finding: Finding) -> Finding | None:
    """The finding with a different value; None if it claims no value."""
    probe = finding.probe
    if probe is None:
        return None
    field = "value" if isinstance(probe, StopProbe) else "effect"
    old = str(getattr(probe, field))
    new = another(old) if field == "value" else re.sub(r"\d+", lambda match: str(int(match[0]) + 1), old, count=1)
    return None if new == old else finding.model_copy(update={"probe": probe.model_copy(update={field: new})})


def another(value: str) -> str:
    """A value that differs in one number or word, the last one."""
    last = next(iter(re.findall(r"\d+|[A-Za-z]+", value)[::-1]), "")
    if not last:
        return value
    other = OTHER.get(last) or (str(int(last) + 1) if last.isdigit() else last[:-1] + ("s" if last[-1] != "s" else "t"))
    before, _, after = value.rpartition(last)
    return before + other + after


def kind_of(finding: Finding) -> str:
    """What the finding is about."""
    probe = finding.probe
    if not isinstance(probe, StopProbe):
        return "effect of a change"
    return "exception" if probe.expression == EXCEPTION else "value"


if __name__ == "__main__":
    raise SystemExit(main())
