"""The project that variants are made of: its files, a clean copy to come back to, and what makes its tests random."""

import functools
import os
import random
import shutil
import sys
import time


class ProjectUnderTest:
    """The project under test, the limits of a run, and a clean copy to come back to."""

    def __init__(self, request):
        self.root = os.path.realpath(request["root"])
        self.keep = request["keep"]
        self.clean = os.path.join(self.keep, "clean")
        self.temporary = os.path.join(self.keep, "tmp")
        self.cpu_s = self.wall_s = float(request["timeout_s"])
        self.trace_factor = float(request["trace_factor"])
        self.memory = int(request["memory_mb"]) << 20
        self.arguments = ["-q", "--tb=native", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
        self.arguments += ["--rootdir", self.root, "--basetemp", self.temporary]
        # Plugins may be loaded before pytest is configured, and a project may turn every warning into an error.
        self.arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        self.arguments += request["arguments"]
        self.entries = {}
        self.randomness = Randomness()

    def save_clean_copy(self):
        """Makes the clean copy, of a project that nothing has been run in yet."""
        shutil.copytree(self.root, self.clean, symlinks=True)

    def save_byte_code(self):
        """Adds the byte code that a run has left to the clean copy, and nothing else of what it left."""
        for path, facts in entries(self.root):
            folder = os.path.dirname(path)
            known = os.path.isdir(os.path.join(self.clean, os.path.dirname(folder)))
            if facts is not None and os.path.basename(folder) == "__pycache__" and known:
                os.makedirs(os.path.join(self.clean, folder), exist_ok=True)
                shutil.copy2(os.path.join(self.root, path), os.path.join(self.clean, path))

    def read_clean_entries(self):
        """Reads what the clean copy holds."""
        self.entries = dict(entries(self.clean))

    def restore(self):
        """Puts back what differs from the clean copy in kind, size or time."""
        seen = dict(entries(self.root))
        for path in sorted(set(seen) - set(self.entries), reverse=True) + changed(seen, self.entries):
            remove(os.path.join(self.root, path))
        for path in sorted(self.entries):
            if seen.get(path) != self.entries[path]:
                self._restore_entry(path)

    def _restore_entry(self, path):
        """Copies one clean file or folder into the project."""
        source, target = os.path.join(self.clean, path), os.path.join(self.root, path)
        if self.entries[path] is None:
            os.makedirs(target, exist_ok=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)

    def reset_and_write(self, files):
        """Makes the project the clean one with these texts, by path."""
        self.restore()
        for path, text in files.items():
            target = os.path.join(self.root, path)
            forget_byte_code(target)
            with open(target, "w", encoding="utf-8", newline="") as file:
                file.write(text)


def entries(folder, prefix=""):
    """(path, facts) of everything below `folder`; the facts of a folder are None."""
    with os.scandir(folder) as found:
        for entry in found:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield path, None
                for item in entries(entry.path, path + "/"):
                    yield item
            else:
                facts = entry.stat(follow_symlinks=False)
                yield path, (facts.st_mode, facts.st_size, facts.st_mtime_ns)


def changed(seen, entries):
    """Paths that are a folder on one side and a file on the other."""
    return [path for path in seen if path in entries and (seen[path] is None) != (entries[path] is None)]


def remove(path):
    """Removes a file, link or folder, if there is one."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def forget_byte_code(path):
    """Removes the byte code of a source: a variant may have the same size, and be written in the same second."""
    folder, name = os.path.split(path)
    cache = os.path.join(folder, "__pycache__")
    stem = os.path.splitext(name)[0] + "."
    if os.path.isdir(cache):
        for entry in os.listdir(cache):
            if entry.startswith(stem):
                os.unlink(os.path.join(cache, entry))


CLOCKS = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns")


class ObservedFunction:
    """Stands in for a function of a module and tells `observe` about each call: its result, and the file that called.

    An object and not a function, since a function in a class would become a method.
    """

    def __init__(self, module, name, observe):
        self.original = getattr(module, name)
        functools.update_wrapper(self, self.original)
        self.__module__ = module.__name__
        self.observe = observe

    def __call__(self, *arguments):
        """As the original."""
        result = self.original(*arguments)
        self.observe(result, sys._getframe(1).f_code.co_filename)
        return result

    def __reduce__(self):
        # Copied and pickled by its name, as the original.
        return self.__name__


class Randomness:
    """Watches the system's random numbers and clocks. Python's shared random numbers need nobody to watch them.

    A module that was imported before keeps the originals.
    """

    def __init__(self):
        self.numbers = 0
        self.clocks_read_in = set()

    def watch(self):
        """Takes the place of the functions."""
        os.urandom = random._urandom = ObservedFunction(os, "urandom", self.note_numbers)  # type: ignore[attr-defined]
        for name in CLOCKS:
            if hasattr(time, name):  # Python 3.6 has none in nanoseconds
                setattr(time, name, ObservedFunction(time, name, self.note_clock))

    def note_numbers(self, numbers, caller):
        """Keeps what the system's random numbers were."""
        self.numbers = hash((self.numbers, numbers))

    def note_clock(self, seconds, caller):
        """Keeps which file has read a clock."""
        self.clocks_read_in.add(caller)

    def state(self):
        """Where the random numbers are. What a seed does not repeat differs from run to run."""
        return hash((random.getstate(), self.numbers))
