"""Mutation operators and the candidates that they make; which proven bugs are held out, and what a task says."""

import ast
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.bugs.candidates import Candidate, candidates, project_candidates
from gumshoe.env.bugs.judging import FailedTest
from gumshoe.env.bugs.operators import OPERATORS
from gumshoe.env.bugs.operators.mutation import ParsedFile, apply
from gumshoe.env.bugs.tasks import (
    assign_splits,
    families,
    heldout_names,
    heldout_packages,
    nearness,
    problem_statement,
)

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


def test_all_operators_make_python_that_means_something_else(everything: list[Candidate]) -> None:
    assert {candidate.operator for candidate in everything} == set(OPERATORS)
    assert len({candidate.text for candidate in everything}) == len(everything)
    assert len({candidate.digest for candidate in everything}) == len(everything)
    before = ast.dump(ast.parse(EVERYTHING))
    assert all(ast.dump(ast.parse(candidate.text)) != before for candidate in everything)
    assert all(candidate.lines for candidate in everything)
    first = {candidate.operator for candidate in everything[: len(OPERATORS)]}
    assert len(first) > len(OPERATORS) * 0.8, "operators take turns"


def test_the_formatting_elsewhere_is_kept(everything: list[Candidate]) -> None:
    """All lines that are not said to be changed stand there as they did."""
    lines = EVERYTHING.splitlines()
    for candidate in everything:
        kept = [line for number, line in enumerate(lines, 1) if number not in candidate.lines]
        after = candidate.text.splitlines()
        matcher = SequenceMatcher(None, kept, after, autojunk=False)
        assert sum(block.size for block in matcher.get_matching_blocks()) == len(kept), candidate


def test_an_operator_makes_one_change_and_leaves_the_file_itself_alone() -> None:
    """The syntax trees differ below one node, unless the operator is the one that works in several places."""
    source = ParsedFile(EVERYTHING)
    for name, operator in OPERATORS.items():
        for mutation in operator.proposals(source):
            places = {source.span(node) for node, _ in mutation.changes}
            assert len(places) > 1 if name == "multi_site" else len(mutation.changes) == 1
            apply(source, mutation)
    assert source.module.code == EVERYTHING


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("arithmetic", "x = a  +  b\n", "x = a  -  b\n"),
        ("arithmetic", "x //= 2\ny += 1\n", "x //= 2\ny -= 1\n"),
        ("boolean_operator", "x = a and b\n", "x = a or b\n"),
        ("changed_exception", "raise KeyError(x)\n", "raise IndexError(x)\n"),
        ("changed_exception", "try: f()\nexcept ValueError: g()\n", "try: f()\nexcept TypeError: g()\n"),
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
        ("missing_branch", "if a: b()\nelif c: d()\nelse: e()\n", "if a: b()\nelse: e()\n"),
        ("missing_branch", "def f(a):\n    if a:\n        g()\n    return 2\n", "def f(a):\n    return 2\n"),
        ("missing_branch", "def f(a):\n    if a: b()\n    elif c: d()\n", "def f(a):\n    if c: d()\n"),
        (
            "missing_branch",
            "def f(a):\n    if a:\n        b()\n    else:\n        # why\n        d()\n    e()\n",
            "def f(a):\n    # why\n    d()\n    e()\n",
        ),
        ("missing_guard", "def f(a):\n    if a:\n        return 1\n    return 2\n", "def f(a):\n    return 2\n"),
        ("missing_guard", "def f(a):\n    if a: raise E\n    b()\n", "def f(a):\n    b()\n"),
        (
            "missing_handler",
            "def f():\n    try: a()\n    except: b()\n    else: c()\n",
            "def f():\n    a()\n    c()\n",
        ),
        ("missing_handler", "try: a()\nexcept KeyError: b()\nfinally: c()\n", "try: a()\nfinally: c()\n"),
        ("missing_handler", "def f():\n    with suppress(E):\n        a()\n", "def f():\n    a()\n"),
        ("missing_handler", "def f():\n    try: a()\n    except E: pass\n", "def f():\n    a()\n"),
        ("missing_normalization", "def f(s):\n    s = s.strip().lower()\n    g(s)\n", "def f(s):\n    g(s)\n"),
        ("missing_normalization", "def f(s):\n    s = s or 1\n    g(s)\n", "def f(s):\n    g(s)\n"),
        ("missing_normalization", "def f(s):\n    s = max(s, 0)\n    g(s)\n", "def f(s):\n    g(s)\n"),
        ("missing_normalization", "def f(s):\n    if s is None: s = []\n    g(s)\n", "def f(s):\n    g(s)\n"),
        ("missing_normalization", "x = a.strip('/').split()\n", "x = a.split()\n"),
        ("missing_normalization", "x = abs(a - b) * 2\n", "x = (a - b) * 2\n"),
        ("missing_handler", "try: a()\nexcept B: b()\nexcept C: c()\n", "try: a()\nexcept C: c()\n"),
        ("missing_return", "def f():\n    return a\n", "def f():\n    a\n"),
        ("multi_site", "def f(s, a, b):\n    s.a = a\n    s.b = b\n", "def f(s, a, b):\n    s.a = b\n    s.b = a\n"),
        (
            "multi_site",
            "def f(x):\n    x['n'] = x['n'] + 1\n\ndef g(x):\n    return x['n']\n",
            "def f(x):\n    x['ns'] = x['ns'] + 1\n\ndef g(x):\n    return x['n']\n",
        ),
        ("mutable_default", "def f(a=None):\n    a = a or []\n", "def f(a=[]):\n    a = a or []\n"),
        ("mutable_default", "def f(a=None):\n    if not a: a = {}\n", "def f(a={}):\n    if not a: a = {}\n"),
        (
            "mutable_default",
            "def f(a=None):\n    b = a if a else set()\n",
            "def f(a=set()):\n    b = a if a else set()\n",
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
    few = sorted(OPERATORS)[:6]
    first, again, other = (
        [candidate.digest for candidate in candidates(EVERYTHING, seed, operators=few)] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert {*first} == {*other}


FUNCTIONS = st.dictionaries(st.text("abc123", min_size=1), st.sampled_from(["f", "g", "h", "k"]), max_size=30)
SHARES = st.floats(0, 0.99)


def test_docstrings_annotations_imports_and_decorators_stay() -> None:
    source = '"""1 < 2"""\nfrom a import b\n\n@dec(1)\ndef f(x: T[1]) -> U[2]:\n    "3 and 4"\n    return x\n'
    for candidate in candidates(source, 0):
        changed = [line for line in candidate.text.splitlines() if line not in source.splitlines()]
        assert len(changed) == 1
        assert changed[0].strip() == "x"


def test_a_candidate_names_its_function_and_the_statement_it_is_in() -> None:
    source = "class A:\n    def f(self):\n        return (\n            1 +\n            2\n        )\n"
    (candidate,) = candidates(source, 0, path="a.py", operators=["arithmetic"])
    assert (candidate.path, candidate.symbol, candidate.lines) == ("a.py", "A.f", (3, 4))


def test_a_change_in_a_condition_belongs_to_all_that_is_evaluated_before_it() -> None:
    source = "def f(a, b):\n    if (\n        a\n        or b\n    ):\n        return 1\n    return 2\n"
    (candidate,) = candidates(source, 0, operators=["boolean_operator"])
    assert candidate.lines == (2, 3, 4)


@pytest.mark.parametrize("line", ['a = f"{f"{a}"}"', "type P = int", "try: f()\n    except A, B: raise", 't"{a}"'])
def test_syntax_newer_than_this_python_gets_bugs(line: str) -> None:
    source = f"def f(a, b):\n    {line}\n    return a + b\n\n\nclass Box[T]: ...\n"
    (candidate,) = candidates(source, 0, operators=["arithmetic"])
    assert candidate.text == source.replace("a + b", "a - b")


def test_a_file_that_is_not_python_gets_none() -> None:
    files = {"bad.py": "async = 1\n", "good.py": "def f(a, b):\n    return a + b\n"}
    assert {one.path for one in project_candidates(files, 0)} == {"good.py"}
    with pytest.raises(ValueError, match=r"bad.py:1 is not Python"):
        project_candidates({"bad.py": "async = 1\n"}, 0)


def test_line_ends_and_indentation_are_kept() -> None:
    source = "def f(a, b):\r\n\tif a < b:\r\n\t\treturn a\r\n\treturn b\r\n"
    for candidate in candidates(source, 0):
        assert "\n" not in candidate.text.replace("\r\n", "")
        assert "    " not in candidate.text


@given(FUNCTIONS, SHARES, st.integers())
def test_a_function_is_on_one_side_only(functions: dict[str, str], share: float, seed: int) -> None:
    splits = assign_splits(functions, share, seed)
    sides: dict[str, set[str]] = {}
    for bug, split in splits.items():
        sides.setdefault(functions[bug], set()).add(split)
    assert splits.keys() == functions.keys()
    assert all(len(side) == 1 for side in sides.values())
    assert not functions or "train" in splits.values()
    assert splits == assign_splits(functions, share, seed)


def test_the_share_is_met_where_functions_are_small() -> None:
    functions = {f"bug{number}": f"f{number}" for number in range(100)}
    assert list(assign_splits(functions, 0.2, 3).values()).count("heldout_bugs") == 20
    assert set(assign_splits(functions, 0.0, 3).values()) == {"train"}


@given(st.sets(st.text("abc", min_size=1), max_size=9), SHARES, st.integers())
def test_some_projects_are_held_out_and_some_are_not(projects: set[str], share: float, seed: int) -> None:
    held = heldout_names(sorted(projects), share, seed)
    assert held <= projects
    assert held == heldout_names(sorted(projects, reverse=True), share, seed)
    assert 0 < len(held) < len(projects) if len(projects) > 1 and share > 0 else not held


def failed_test(*frames: tuple[str, int, str], message: str = "AssertionError: assert 1 == 2") -> FailedTest:
    return FailedTest("AssertionError", message, frames)


def test_difficulty_is_the_distance_of_the_nearest_failed_test() -> None:
    cause = [("a.py", "A.f")]
    here, near, far = ("a.py", 3, "f"), ("a.py", 9, "g"), ("tests/test_a.py", 5, "test_f")
    assert nearness(cause, {"t": failed_test(far, here)}) == "same_function"
    assert nearness(cause, {"t": failed_test(here, near), "u": failed_test(far)}) == "other_function"
    assert nearness(cause, {"t": failed_test(here, far)}) == "other_file"
    assert nearness(cause, {"t": failed_test()}) == "other_file"
    assert nearness((), {"t": failed_test(here)}) == "other_file"


def test_the_statement_tells_the_failure_and_stays_short() -> None:
    text = problem_statement({"tests/t.py::a": failed_test()})
    assert text.startswith("tests/t.py::a fails:\n\n    AssertionError: assert 1 == 2\n\nThe tests are right.")
    several = problem_statement({f"t{number}": failed_test(message="x\n" * 500) for number in range(7)})
    assert "So do 6 other tests." in several
    assert "    ...\n" in several
    assert len(several) < 200
    assert "So does one other test." in problem_statement({"t0": failed_test(), "t1": failed_test()})


def code(name: str) -> str:
    return "\n".join(f"def function_{number}_of_{name}(): return {number}" for number in range(30))


def test_near_duplicates_are_held_out_together() -> None:
    fork = code("one") + "\nx = 'something of its own, long enough'"
    sources = {"one": code("one"), "fork": fork, "two": code("two")}
    assert families(sources) == [["fork", "one"], ["two"]]
    held = [heldout_packages(sources, 0.4, seed) for seed in range(20)]
    assert {frozenset(names) for names in held} == {frozenset({"fork", "one"}), frozenset({"two"})}


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.text(max_size=80), min_size=1), st.integers(0, 5))
def test_every_package_is_in_one_family(sources: dict[str, str], seed: int) -> None:
    assert sorted(name for group in families(sources) for name in group) == sorted(sources)
    assert heldout_packages(sources, 0.3, seed) < set(sources)
