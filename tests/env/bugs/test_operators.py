"""The mutation operators: what each one makes, and what holds for all of them."""

from __future__ import annotations

import ast
from difflib import SequenceMatcher
from itertools import islice

import pytest

from gumshoe.env.bugs.candidates import Candidate, candidates, project_candidates
from gumshoe.env.bugs.operators import OPERATORS
from gumshoe.env.bugs.operators.mutation import ParsedFile, apply
from gumshoe.env.tasks.projects import casebook_projects

# One small file in which every operator finds something; odd spacing and comments show whether formatting is kept.
EVERYTHING = '''\
"""A file with a bit of everything."""
import asyncio   # odd spacing stays
import copy


class Store( object ):
    """Keeps   things."""

    def __init__(self, items=None, limit = 10, strict=True):
        if items is None:
            items = []
        self.items = list(items)     # a copy
        self.limit = limit
        self._cache = {}

    def cache_key(self, name, kind):
        return (name, kind)

    def find(self, name, kind, *, default=None):
        key = (name, kind)
        if key in self._cache:
            return self._cache[key]
        for index in range(len(self.items)):
            item = self.items[index]
            if item["name"] == name and item.get("kind", 0) == kind:
                self._cache[key] = item
                break
            elif not item["name"]:
                continue
        else:
            return default
        return item

    def record(self, name, kind):
        name = name.strip()
        entry = {"name": name, "kind": kind}
        self.items.append(entry)
        self._cache.clear()
        return entry["name"], entry["kind"]

    def total(self, first, last):
        count = 0
        for item in self.items[first:last]:
            if item["size"] >= self.limit or item["size"] < 0:
                raise ValueError("too large")
            count += item["size"] * 2 - 1
        try:
            return count / len(self.items)
        except (ZeroDivisionError, KeyError):
            return 0
        except TypeError:
            return min(first, last)


async def fetch(source, retries=3):
    rows = [row async for row in source if row]
    await asyncio.sleep(  0.1  )
    return sorted(rows, key=len), copy.copy(rows)
'''


def made(operator: str, source: str) -> set[str]:
    return {candidate.text for candidate in candidates(source, 0, operators=[operator])}


@pytest.fixture(scope="module")
def everything() -> list[Candidate]:
    return list(candidates(EVERYTHING, 0))


def test_every_operator_finds_something(everything: list[Candidate]) -> None:
    assert {candidate.operator for candidate in everything} == set(OPERATORS)
    assert len(OPERATORS) >= 15


def test_what_comes_out_is_python_and_means_something_else(everything: list[Candidate]) -> None:
    before = ast.dump(ast.parse(EVERYTHING))
    for candidate in everything:
        assert ast.dump(ast.parse(candidate.text)) != before


def test_every_text_comes_once(everything: list[Candidate]) -> None:
    assert len({candidate.text for candidate in everything}) == len(everything)
    assert len({candidate.digest for candidate in everything}) == len(everything)


def test_the_formatting_elsewhere_is_kept(everything: list[Candidate]) -> None:
    """All lines that are not said to be changed stand there as they did."""
    lines = EVERYTHING.splitlines()
    for candidate in everything:
        kept = [line for number, line in enumerate(lines, 1) if number not in candidate.lines]
        after = candidate.text.splitlines()
        matcher = SequenceMatcher(None, kept, after, autojunk=False)
        assert sum(block.size for block in matcher.get_matching_blocks()) == len(kept), candidate


def test_one_operator_makes_one_change(everything: list[Candidate]) -> None:
    """The syntax trees differ below one node, unless the operator is the one that works in several places."""
    source = ParsedFile(EVERYTHING)
    for name, operator in OPERATORS.items():
        for mutation in operator.proposals(source):
            if name == "multi_site":
                assert len({source.span(node) for node, _ in mutation.changes}) > 1
            else:
                assert len(mutation.changes) == 1


def test_a_mutation_put_back_gives_the_file_back() -> None:
    source = ParsedFile(EVERYTHING)
    assert source.module.code == EVERYTHING
    for operator in OPERATORS.values():
        for mutation in operator.proposals(source):
            apply(source, mutation)
    assert source.module.code == EVERYTHING


@pytest.mark.parametrize(("seed", "name"), list(enumerate(casebook_projects())))
def test_the_casebook_is_mutated_without_a_hitch(seed: int, name: str) -> None:
    """Operators take turns, so that the first candidates of a project show them all."""
    root = casebook_projects()[name]
    files = {str(path): path.read_text() for path in sorted(root.glob("*/*.py")) if path.parent.name != "tests"}
    for candidate in islice(project_candidates(files, seed), 30):
        assert ast.parse(candidate.text)
        assert candidate.text != files[candidate.path]
        assert candidate.lines


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("arithmetic", "x = a  +  b\n", "x = a  -  b\n"),
        ("arithmetic", "x //= 2\ny += 1\n", "x //= 2\ny -= 1\n"),
        ("boolean_operator", "x = a and b\n", "x = a or b\n"),
        ("changed_exception", "raise KeyError(x)\n", "raise IndexError(x)\n"),
        (
            "changed_exception",
            "try:\n    f()\nexcept ValueError:\n    g()\n",
            "try:\n    f()\nexcept TypeError:\n    g()\n",
        ),
        ("comparison", "x = a<b\n", "x = a<=b\n"),
        ("comparison", "x = a == b\n", "x = a is b\n"),
        ("dropped_argument", "f(a, key=b)\n", "f(a)\n"),
        ("dropped_condition", "x = a and b\n", "x = b\n"),
        ("dropped_condition", "x = [i for i in y if i]\n", "x = [i for i in y]\n"),
        ("dropped_condition", "x = not a\n", "x = a\n"),
        ("dropped_statement", "def f():\n    x.add(1)\n", "def f():\n    pass\n"),
        ("dropped_statement", "def f():\n    n += 1\n    return n\n", "def f():\n    return n\n"),
        ("inverted_condition", "if not a:\n    b()\n", "if a:\n    b()\n"),
        ("inverted_condition", "if a in b:\n    c()\n", "if a not in b:\n    c()\n"),
        ("inverted_condition", "x = 1 if a or b else 2\n", "x = 1 if not (a or b) else 2\n"),
        ("loop_control", "for a in b:\n    break\n", "for a in b:\n    continue\n"),
        ("missing_branch", "if a:\n    b()\nelse:\n    c()\n", "if a:\n    b()\n"),
        (
            "missing_branch",
            "if a:\n    b()\nelif c:\n    d()\nelse:\n    e()\n",
            "if a:\n    b()\nelse:\n    e()\n",
        ),
        ("missing_branch", "def f(a):\n    if a:\n        g()\n    return 2\n", "def f(a):\n    return 2\n"),
        (
            "missing_branch",
            "def f(a):\n    if a:\n        b()\n    elif c:\n        d()\n",
            "def f(a):\n    if c:\n        d()\n",
        ),
        (
            "missing_branch",
            "def f(a):\n    if a:\n        b()\n    else:\n        # why\n        d()\n    e()\n",
            "def f(a):\n    # why\n    d()\n    e()\n",
        ),
        ("missing_guard", "def f(a):\n    if a:\n        return 1\n    return 2\n", "def f(a):\n    return 2\n"),
        ("missing_guard", "def f(a):\n    if a: raise E\n    b()\n", "def f(a):\n    b()\n"),
        (
            "missing_handler",
            "def f():\n    try:\n        a()\n    except KeyError:\n        b()\n    else:\n        c()\n",
            "def f():\n    a()\n    c()\n",
        ),
        (
            "missing_handler",
            "try:\n    a()\nexcept KeyError:\n    b()\nfinally:\n    c()\n",
            "try:\n    a()\nfinally:\n    c()\n",
        ),
        ("missing_handler", "def f():\n    with suppress(E):\n        a()\n", "def f():\n    a()\n"),
        ("missing_handler", "def f():\n    try: a()\n    except E: pass\n", "def f():\n    a()\n"),
        ("missing_normalization", "def f(s):\n    s = s.strip().lower()\n    g(s)\n", "def f(s):\n    g(s)\n"),
        ("missing_normalization", "def f(s):\n    s = s or 1\n    g(s)\n", "def f(s):\n    g(s)\n"),
        ("missing_normalization", "def f(s):\n    s = max(s, 0)\n    g(s)\n", "def f(s):\n    g(s)\n"),
        (
            "missing_normalization",
            "def f(s):\n    if s is None:\n        s = []\n    g(s)\n",
            "def f(s):\n    g(s)\n",
        ),
        ("missing_normalization", "x = a.strip('/').split()\n", "x = a.split()\n"),
        ("missing_normalization", "x = abs(a - b) * 2\n", "x = (a - b) * 2\n"),
        (
            "missing_handler",
            "try:\n    a()\nexcept KeyError:\n    b()\nexcept ValueError:\n    c()\n",
            "try:\n    a()\nexcept ValueError:\n    c()\n",
        ),
        ("missing_return", "def f():\n    return a\n", "def f():\n    a\n"),
        (
            "multi_site",
            "class A:\n    def __init__(self, a, b):\n        self.a = a\n        self.b = b\n",
            "class A:\n    def __init__(self, a, b):\n        self.a = b\n        self.b = a\n",
        ),
        (
            "multi_site",
            "def f(x):\n    x['n'] = x['n'] + 1\n\ndef g(x):\n    return x['n']\n",
            "def f(x):\n    x['ns'] = x['ns'] + 1\n\ndef g(x):\n    return x['n']\n",
        ),
        ("mutable_default", "def f(a=None):\n    a = a or []\n", "def f(a=[]):\n    a = a or []\n"),
        (
            "mutable_default",
            "def f(a=None):\n    if a is None:\n        a = {}\n",
            "def f(a={}):\n    if a is None:\n        a = {}\n",
        ),
        (
            "mutable_default",
            "def f(a=None):\n    b = set() if a is None else a\n",
            "def f(a=set()):\n    b = set() if a is None else a\n",
        ),
        ("off_by_one", "x = y * 3\n", "x = y * 4\n"),
        ("off_by_one", "x = y * 0\n", "x = y * -1\n"),
        ("range_bounds", "range(n)\n", "range(n - 1)\n"),
        ("range_bounds", "range(n)\n", "range(1, n)\n"),
        ("range_bounds", "range(0, n - 1)\n", "range(0, n)\n"),
        ("range_bounds", "enumerate(x, 1)\n", "enumerate(x)\n"),
        ("range_bounds", "x[a:b]\n", "x[a:]\n"),
        ("range_bounds", "x[a or b:]\n", "x[(a or b) + 1:]\n"),
        ("range_bounds", "x[-1]\n", "x[0]\n"),
        ("range_bounds", "x[0]\n", "x[-1]\n"),
        ("range_bounds", "x[i + 1]\n", "x[i]\n"),
        ("range_bounds", "x[i - 1]\n", "x[i - 2]\n"),
        ("removed_await", "async def f():\n    await g()\n", "async def f():\n    g()\n"),
        ("shared_state", "x = list(y)\n", "x = y\n"),
        ("shared_state", "x = y.copy()\n", "x = y\n"),
        ("stale_cache", "def f(a, b):\n    cache[a, b] = 1\n", "def f(a, b):\n    cache[a] = 1\n"),
        ("stale_cache", "def f(s):\n    s.cache.pop(1)\n    s.n = 1\n", "def f(s):\n    s.n = 1\n"),
        ("stale_cache", "def f(s):\n    s._total = None\n    s.n = 1\n", "def f(s):\n    s.n = 1\n"),
        ("stale_cache", "def f(s):\n    del seen[1]\n    s.n = 1\n", "def f(s):\n    s.n = 1\n"),
        ("stale_cache", "def f(a, b):\n    return cache[(a, b)]\n", "def f(a, b):\n    return cache[(b,)]\n"),
        ("swapped_arguments", "f(a, b)\n", "f(b, a)\n"),
        ("swapped_arguments", "f(x=a, y=b)\n", "f(x=b, y=a)\n"),
        ("swapped_result", "def f():\n    return a, b\n", "def f():\n    return b, a\n"),
        (
            "wrong_attribute",
            "class A:\n    def f(self):\n        self.a = self.b = 1\n        return self.a\n",
            "class A:\n    def f(self):\n        self.a = self.b = 1\n        return self.b\n",
        ),
        ("wrong_call", "x = min(y)\n", "x = max(y)\n"),
        ("wrong_call", "x.append(y)\n", "x.extend(y)\n"),
        ("wrong_default", "def f(a=True): ...\n", "def f(a=False): ...\n"),
        ("wrong_default", "def f(a=5): ...\n", "def f(a=6): ...\n"),
        ("wrong_default", "x.get(k, 0)\n", "x.get(k, 1)\n"),
        ("wrong_default", "x.get(k, None)\n", "x.get(k, 0)\n"),
        ("wrong_default", "x.get(k, 'a')\n", 'x.get(k, "")\n'),
        ("wrong_default", "def f(a=0.5): ...\n", "def f(a=0.0): ...\n"),
        ("wrong_variable", "def f(a, b):\n    return a\n", "def f(a, b):\n    return b\n"),
        ("wrong_variable", "def f(a):\n    n = 1\n    return g(a)\n", "def f(a):\n    n = 1\n    return g(n)\n"),
    ],
)
def test_an_operator_makes_its_mistake(operator: str, before: str, after: str) -> None:
    assert after in made(operator, before)


@pytest.mark.parametrize(
    ("operator", "source"),
    [
        ("arithmetic", "x = 'a' + b\n"),
        ("changed_exception", "raise\n"),
        ("comparison", "x = a is None\n"),
        ("dropped_argument", "f(*a)\ng(b)\n"),
        ("dropped_statement", "def f():\n    x = 1\n    return x\n"),
        ("dropped_statement", "x.add(1)\n"),
        ("missing_branch", "def f(a):\n    if a:\n        return 1\n    return 2\n"),
        ("missing_guard", "def f(a):\n    if a:\n        return 1\n    else:\n        return 2\n"),
        ("missing_guard", "if a:\n    raise E\n"),
        ("missing_handler", "def f():\n    with open(x):\n        a()\n"),
        ("missing_handler", "try:\n    import a\nexcept ImportError:\n    a = None\n"),
        ("missing_normalization", "def f(s):\n    t = s or 1\n    s = t + 1\n    return s\n"),
        ("missing_return", "def f():\n    return None\n"),
        ("mutable_default", "def f(a=None):\n    b = a\n"),
        ("off_by_one", "def f(a: 'x[1]' = 2): ...\n"),
        ("range_bounds", "range(*n)\n"),
        ("shared_state", "x = list(y())\n"),
        ("stale_cache", "def f(a, b):\n    x = (a, b)\n"),
        ("swapped_arguments", "f(a, a)\ng(*b, c)\n"),
        ("wrong_attribute", "class A:\n    def f(self):\n        self.a = 1\n        self.a()\n"),
        ("wrong_call", "x = y[0]()\n"),
        ("wrong_default", "f(k, 0)\n"),
        ("wrong_variable", "def f(a):\n    return g(a)\n"),
        ("wrong_variable", "def f(a):\n    return a\n    n = 1\n"),
    ],
)
def test_an_operator_leaves_alone_what_is_not_its_own(operator: str, source: str) -> None:
    assert made(operator, source) == set()


def test_the_order_is_drawn_from_the_seed() -> None:
    def order(seed: int) -> list[str]:
        return [candidate.digest for candidate in islice(candidates(EVERYTHING, seed), 60)]

    assert order(1) == order(1)
    assert order(1) != order(2)
    few = sorted(OPERATORS)[:6]
    first, second = ({c.digest for c in candidates(EVERYTHING, seed, operators=few)} for seed in (1, 2))
    assert first == second
    assert first


def test_operators_take_turns(everything: list[Candidate]) -> None:
    first = [candidate.operator for candidate in everything[: len(OPERATORS)]]
    assert len(set(first)) > len(OPERATORS) * 0.8
