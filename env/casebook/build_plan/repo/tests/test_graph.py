import pytest

from buildplan.graph import CycleError, Graph, Task


@pytest.fixture
def graph():
    return Graph([Task("app", ("lib", "assets")), Task("lib", ("base",)), Task("assets"), Task("base")])


def test_dependencies_come_first(graph):
    assert graph.order("app") == ["assets", "base", "lib", "app"]


def test_only_what_the_target_needs(graph):
    assert graph.order("lib") == ["base", "lib"]


def test_shared_dependency_is_planned_once():
    graph = Graph([Task("a", ("b", "c")), Task("b", ("d",)), Task("c", ("d",)), Task("d")])
    assert graph.order("a") == ["d", "b", "c", "a"]


def test_roots_are_what_nothing_needs(graph):
    assert graph.roots() == ["app"]
    assert Graph([Task("y"), Task("x")]).roots() == ["x", "y"]


def test_cycle_is_named():
    graph = Graph([Task("start", ("a",)), Task("a", ("b",)), Task("b", ("c",)), Task("c", ("a",))])
    with pytest.raises(CycleError, match="^a -> b -> c -> a$") as caught:
        graph.order("start")
    assert caught.value.path == ("a", "b", "c", "a")


def test_unknown_and_duplicate_tasks():
    with pytest.raises(KeyError, match="no such task: gone"):
        Graph([Task("a", ("gone",))]).order("a")
    with pytest.raises(ValueError, match="duplicate task: a"):
        Graph([Task("a"), Task("a")])
