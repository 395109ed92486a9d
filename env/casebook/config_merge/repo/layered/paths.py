"""Nested dictionaries addressed by dotted paths such as "db.pool.size"."""


def dig(tree, path):
    """Return the value at `path`, None when there is none."""
    node = tree
    for part in path.split("."):
        if not isinstance(node, dict) or part not in node:
            return None
        node = node[part]
    return node


def plant(tree, path, value):
    """Set the value at `path`, making the dictionaries on the way.

    Raises:
        ValueError: a value that is no dictionary is in the way.
    """
    *parents, last = path.split(".")
    node = tree
    for part in parents:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise ValueError("{} is a value, not a section".format(part))
    node[last] = value


def flatten(tree, prefix=""):
    """Return {path: value} for all values that are no dictionaries."""
    flat = {}
    for key, value in tree.items():
        path = prefix + "." + key if prefix else key
        if isinstance(value, dict):
            flat.update(flatten(value, path))
        else:
            flat[path] = value
    return flat
