"""Look values up in a stack of layers."""

from .paths import dig, flatten


class Settings:
    """Layers by name, the strongest last."""

    def __init__(self, **layers):
        self._layers = dict(layers)

    def get(self, path, default=None):
        """Return the value at `path` from the strongest layer that has it."""
        value, _ = self._find(path)
        return default if value is None else value

    def origin(self, path):
        """Return the name of the layer that `get` takes `path` from, None when there is none."""
        _, name = self._find(path)
        return name

    def changes(self, base, other):
        """Return {path: (value in base, value in other)} where two layers differ; None where a value is missing."""
        before, after = flatten(self._layers[base]), flatten(self._layers[other])
        return {
            path: (before.get(path), after.get(path))
            for path in sorted(set(before) | set(after))
            if before.get(path) != after.get(path)
        }

    def effective(self):
        """Return {path: value} of all layers together, sorted by path."""
        paths = {path for layer in self._layers.values() for path in flatten(layer)}
        return {path: self.get(path) for path in sorted(paths)}

    def _find(self, path):
        for name in reversed(list(self._layers)):
            value = dig(self._layers[name], path)
            if value is not None:
                return value, name
        return None, None


def client_options(settings):
    """Return the options of the HTTP client: timeout in seconds, attempts, and whether certificates are checked."""
    return {
        "timeout": settings.get("http.timeout_ms", 5000) / 1000,
        "attempts": settings.get("http.retries", 2) + 1,
        "verify": settings.get("http.verify", True),
    }
