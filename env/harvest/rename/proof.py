"""The proof of a renaming: the tests of the renamed project pass as before, or names are put back until they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gumshoe.env.harvest.rename.names import Names
from gumshoe.tools.text import plural

__all__ = ["DOCUMENTS", "Proof", "RenamedRun", "prove"]

# Stands for the documents that are left out, among the names that can be put back.
DOCUMENTS = "documents of the project"
QUOTED = re.compile(r"""['"`]([A-Za-z_][\w.]*)(?:['"`]|\()""")
# The messages in which Python and pytest give the name that is missing.
TELLING = re.compile(
    r"(?:has no attribute|cannot import name|No module named|[Nn]ame|unexpected keyword argument|KeyError:|fixture"
    r"|arguments?:) '([A-Za-z_][\w.]*)'|'([A-Za-z_]\w*)' is an invalid keyword"
)
DOCUMENT = re.compile(r"FileNotFoundError|No such file")
MAX_RUNS, MESSAGE_ROUNDS = 60, 12


@dataclass(frozen=True)
class RenamedRun:
    """What a run of the renamed project has shown: for each test that should pass and does not, what it said."""

    failed: Mapping[str, str]
    output: str = ""


@dataclass(frozen=True)
class Proof:
    """Names with which the tests pass, except those in `lost`; `put_back` tells why a name was kept."""

    names: Names
    lost: tuple[str, ...]
    put_back: Mapping[str, str]
    runs: int


class _Search:
    """Looks for the names that have to be put back."""

    def __init__(
        self,
        names: Names,
        run: Callable[[Names, frozenset[str], Sequence[str]], RenamedRun],
        note: Callable[[str], None],
    ) -> None:
        self._all = names
        self._run = run
        self._note = note
        self.back: dict[str, str] = {}
        self.runs = 0

    @property
    def names(self) -> Names:
        return self._all.without(self.back)

    def try_(self, more: Iterable[str] = (), tests: Sequence[str] = ()) -> RenamedRun:
        self.runs += 1
        back = frozenset({*self.back, *more})
        return self._run(self._all.without(back), back, tests)

    def by_messages(self, trial: RenamedRun) -> RenamedRun:
        """Puts back what the failures name, as long as that helps."""
        for pattern in (TELLING, QUOTED):
            for _ in range(MESSAGE_ROUNDS):
                told = self._told(trial, pattern)
                if not trial.failed or not told or self.runs >= MAX_RUNS:
                    break
                self._note(f"failing: {plural(len(trial.failed), 'test')}; without {plural(len(told), 'name')}")
                after = self.try_(told)
                # Where nothing can be imported, the next obstacle comes up only when the first is gone.
                other = len(after.failed) == len(trial.failed) and not {*told} & {*self._told(after, pattern)}
                if len(after.failed) >= len(trial.failed) and not (other and pattern is TELLING):
                    break
                self.back.update(told)
                trial = after
        return trial

    def _told(self, trial: RenamedRun, pattern: re.Pattern[str]) -> dict[str, str]:
        """The replaced names that messages mention, each with the line that does."""
        names = self.names
        old_of = {new: old for old, new in names.new.items()}
        found = dict[str, str]()
        for text in (*trial.failed.values(), trial.output if pattern is TELLING else ""):
            for line in text.splitlines():
                if DOCUMENT.search(line) and DOCUMENTS not in self.back:
                    found[DOCUMENTS] = line.strip()
                words = (part for match in pattern.finditer(line) for part in (match[1] or match[2]).split("."))
                for word in words:
                    old = old_of.get(word, word)
                    if old in names.new:
                        found[old] = line.strip()
        return found

    def by_halves(self, test: str, order: Sequence[str]) -> bool:
        """Puts back the one name whose replacement makes a test fail; False where there is none, or no run is left."""
        names = [name for name in order if name not in self.back]
        if self.try_(names, [test]).failed or self.runs >= MAX_RUNS:
            return False
        low, high = 0, len(names)
        while high - low > 1 and self.runs < MAX_RUNS:
            middle = (low + high) // 2
            self._note(f"looking for one name of {high - low} ({self.runs} runs)")
            if self.try_(names[:middle], [test]).failed:
                low = middle
            else:
                high = middle
        self.back.update(dict.fromkeys(names[low:high], f"{test} needs it"))
        return True


def prove(
    names: Names,
    run: Callable[[Names, frozenset[str], Sequence[str]], RenamedRun],
    doubtful: Sequence[str],
    note: Callable[[str], None],
) -> Proof:
    """The largest set of names that can be found with which the tests pass.

    Args:
        names: all that should be replaced.
        run: tries names; gets those that are put back, and the tests to run, all if none are given.
        doubtful: names that are more likely than others to be needed.
        note: receives progress messages.
    """
    search = _Search(names, run, note)
    trial = search.by_messages(search.try_())
    first = set(doubtful)
    order = [DOCUMENTS, *doubtful, *(name for name in names.new if name not in first)]
    hopeless: set[str] = set()
    while search.runs < MAX_RUNS:
        test = next((test for test in trial.failed if test not in hopeless), None)
        if test is None:
            break
        if not search.by_halves(test, order):
            hopeless.add(test)
            continue
        trial = search.by_messages(search.try_())
    return Proof(search.names, tuple(trial.failed), search.back, search.runs)
