import pytest

from access.groups import Directory
from access.rules import ALLOW, DENY, Policy, Rule


@pytest.fixture
def directory():
    groups = Directory()
    groups.add("u1", "devs")
    groups.add("u2", "ops")
    groups.add("devs", "staff")
    groups.add("ops", "staff")
    return groups


@pytest.fixture
def policy(directory):
    rules = Policy(directory)
    rules.allow("staff", "read", "docs")
    rules.allow("devs", "*", "code")
    return rules


def test_ancestors_have_distances(directory):
    assert directory.ancestors("u1") == {"devs": 1, "staff": 2}
    assert directory.ancestors("staff") == {}
    assert directory.ancestors("stranger") == {}


def test_shortest_way_counts(directory):
    directory.add("u1", "staff")
    assert directory.ancestors("u1") == {"devs": 1, "staff": 1}


def test_circles_do_no_harm(directory):
    directory.add("staff", "devs")
    assert directory.ancestors("devs") == {"staff": 1}
    assert directory.ancestors("u1") == {"devs": 1, "staff": 2}


def test_members(directory):
    assert directory.members("staff") == ["devs", "ops", "u1", "u2"]
    assert directory.members("u1") == []


def test_removed_from_a_group(directory):
    directory.remove("u1", "devs")
    directory.remove("u1", "unknown")
    assert directory.ancestors("u1") == {}


def test_rule_covers_what_is_below():
    rule = Rule("u1", "read", "docs/a")
    assert [rule.covers("read", path) for path in ("docs/a", "docs/a/b", "docs/ab", "docs")] == [
        True,
        True,
        False,
        False,
    ]
    assert not rule.covers("write", "docs/a")
    assert Rule("u1", "*", "docs").covers("write", "docs")
    assert (rule.depth(), rule.effect, DENY) == (2, ALLOW, "deny")


def test_permission_through_groups(policy):
    assert policy.may("u1", "read", "docs/plan")
    assert policy.may("u1", "write", "code")
    assert not policy.may("u2", "write", "code")
    assert not policy.may("stranger", "read", "docs")


def test_deeper_rules_win(policy):
    policy.deny("staff", "read", "docs/salaries")
    assert not policy.may("u1", "read", "docs/salaries/may")
    assert policy.may("u1", "read", "docs/other")


def test_nearer_rules_win(policy):
    policy.deny("devs", "read", "docs")
    policy.allow("u1", "read", "docs")
    assert policy.may("u1", "read", "docs")
    assert policy.deciding_rule("u1", "read", "docs").who == "u1"
    assert policy.may("u2", "read", "docs")


def test_denial_wins_at_the_same_distance(policy, directory):
    policy.deny("devs", "read", "docs")
    assert not policy.may("u1", "read", "docs")
    policy.deny("staff", "list", "docs")
    policy.allow("staff", "list", "docs")
    assert not policy.may("u2", "list", "docs")


def test_who_may(policy):
    assert policy.who_may("write", "code", ["u1", "u2", "x"]) == ["u1"]
    assert policy.who_may("read", "docs", ["u1", "u2", "x"]) == ["u1", "u2"]


def test_user_who_joins_a_group_gets_its_rights(policy, directory):
    assert not policy.may("u3", "read", "code")
    directory.add("u3", "devs")
    assert policy.may("u3", "read", "code")


def test_group_that_leaves_a_group_loses_its_rights(policy, directory):
    assert policy.may("u1", "read", "docs")
    directory.remove("devs", "staff")
    assert not policy.may("u1", "read", "docs")
