import pytest

from layered import Settings
from layered.paths import dig, flatten, plant
from layered.settings import client_options
from layered.sources import from_assignments, from_environment, read_value

DEFAULTS = {"http": {"timeout_ms": 3000, "retries": 4, "verify": True}, "name": "svc"}


def test_dig_and_plant():
    tree = {"a": {"b": 1}}
    plant(tree, "a.c.d", 2)
    assert tree == {"a": {"b": 1, "c": {"d": 2}}}
    assert (dig(tree, "a.c.d"), dig(tree, "a.x"), dig(tree, "a.b.c")) == (2, None, None)
    with pytest.raises(ValueError, match="b is a value, not a section"):
        plant(tree, "a.b.c", 3)


def test_flatten():
    assert flatten({"a": {"b": 1, "c": {"d": []}}, "e": "x"}) == {"a.b": 1, "a.c.d": [], "e": "x"}


def test_read_value():
    texts = ["12", "-3", "1.5", "yes", "False", "a", "1, b,", "0", ""]
    assert [read_value(text) for text in texts] == [12, -3, 1.5, True, False, "a", [1, "b"], 0, ""]


def test_environment_layer():
    variables = {"APP__DB__HOST": "h", "APP__DB__PORT": "5", "APPLE__X": "1", "APP__DEBUG": "no"}
    assert from_environment(variables) == {"db": {"host": "h", "port": 5}, "debug": False}
    assert from_environment({"MY__A": "1"}, prefix="MY") == {"a": 1}


def test_assignment_layer():
    assert from_assignments(["db.host=h", "q=a=b"]) == {"db": {"host": "h"}, "q": "a=b"}
    for text in ("novalue", "=5"):
        with pytest.raises(ValueError, match="expected path=value"):
            from_assignments([text])


def test_strongest_layer_wins():
    settings = Settings(defaults=DEFAULTS, user={"http": {"retries": 7}}, command={"http": {"retries": 9}})
    assert settings.get("http.retries") == 9
    assert settings.origin("http.retries") == "command"
    assert settings.get("http.timeout_ms") == 3000
    assert settings.origin("name") == "defaults"


def test_missing_values():
    settings = Settings(defaults=DEFAULTS)
    assert settings.get("http.proxy") is None
    assert settings.get("http.proxy", "none") == "none"
    assert settings.origin("http.proxy") is None


def test_changes_between_layers():
    settings = Settings(defaults=DEFAULTS, user={"name": "x", "extra": 1, "http": {"retries": 4}})
    assert settings.changes("defaults", "user") == {
        "extra": (None, 1),
        "http.timeout_ms": (3000, None),
        "http.verify": (True, None),
        "name": ("svc", "x"),
    }


def test_effective():
    settings = Settings(defaults={"b": 1, "a": {"c": 2}}, user={"a": {"c": 3}})
    assert list(settings.effective().items()) == [("a.c", 3), ("b", 1)]


def test_client_options_from_defaults():
    assert client_options(Settings(defaults=DEFAULTS)) == {"timeout": 3.0, "attempts": 5, "verify": True}
    assert client_options(Settings()) == {"timeout": 5.0, "attempts": 3, "verify": True}


def test_client_options_from_the_command_line():
    command = from_assignments(["http.retries=0", "http.timeout_ms=250"])
    options = client_options(Settings(defaults=DEFAULTS, command=command))
    assert options == {"timeout": 0.25, "attempts": 1, "verify": True}


def test_client_options_from_the_environment():
    layer = from_environment({"APP__HTTP__VERIFY": "false"})
    assert client_options(Settings(defaults=DEFAULTS, environment=layer))["verify"] is False
