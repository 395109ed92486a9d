"""Where layers come from: environment variables and assignments on the command line."""

from .paths import plant

WORDS = {"true": True, "yes": True, "false": False, "no": False}


def read_value(text):
    """Return the text as bool, int or float where it reads as one, a list where it has commas."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if "," in text:
        return [read_value(part.strip()) for part in text.split(",") if part.strip()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def from_environment(variables, prefix="APP"):
    """Return the layer of variables such as APP__DB__HOST: double underscores separate the parts."""
    layer = {}
    start = prefix + "__"
    for name in sorted(variables):
        if name.startswith(start):
            path = name[len(start) :].lower().replace("__", ".")
            plant(layer, path, read_value(variables[name]))
    return layer


def from_assignments(assignments):
    """Return the layer of texts such as "db.host=example".

    Raises:
        ValueError: a text has no equals sign or no path.
    """
    layer = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals or not path:
            raise ValueError("expected path=value: " + assignment)
        plant(layer, path, read_value(value))
    return layer
