"""Imports this package from memory, where no program in the sandbox can change it."""

from importlib.machinery import ModuleSpec

PACKAGE = "gumshoe_inside"
"""The name of this package in a sandbox."""
READ = """\
import json, os, sys
data = b""
while len(data) < int(sys.argv[1]):
    data += os.read(0, int(sys.argv[1]) - len(data)) or sys.exit("the host went away")
files = json.loads(data.decode("ascii"))
exec(files["gumshoe_inside/loading.py"])
sys.meta_path.insert(0, MemoryImporter(files))
"""
"""Reads the package from standard input, as a JSON object in ASCII whose length is the program's first argument.

After that, its modules can be imported; `files` maps their paths, `gumshoe_inside/MODULE.py`, to their texts.
"""


class MemoryImporter:
    """Finds and loads modules whose texts are in `files`, by their paths."""

    def __init__(self, files):
        self.files = files

    def find_spec(self, name, path=None, target=None):
        """The module's spec; None for a module that is not in the files."""
        base = name.replace(".", "/")
        for place in (base + "/__init__.py", base + ".py"):
            if place in self.files:
                is_package = place.endswith("/__init__.py")
                return ModuleSpec(name, self, origin=place, is_package=is_package)  # pyright: ignore[reportArgumentType]
        return None

    def create_module(self, spec):
        """Leaves it to the interpreter."""

    def exec_module(self, module):
        """Runs the module's text."""
        place = module.__spec__.origin
        exec(compile(self.files[place], place, "exec"), module.__dict__)  # noqa: S102 - our own modules
