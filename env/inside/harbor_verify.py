"""Decides a task of Harbor: the named tests, run on the original repository with what the agent has changed.

Standard library only, Python 3.6 and later. Runs in the verifier's own container, which the agent has never seen. The
archive holds the agent's repository; the original one is here. `task.json` beside this file says which tests decide
and which files are never taken from the agent; the modules that run the tests are beside it, too.
"""

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ARCHIVE = "/logs/artifacts/workspace.tar"
OUT = "/logs/verifier"
GRACE_S = 60
OUTPUT_BYTES = 1 << 20
WORST_FIRST = ("error", "failed", "xpassed", "skipped", "xfailed", "passed")
ALWAYS = frozenset([
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml",
    "sitecustomize.py", "usercustomize.py",
])  # fmt: skip
MODULE = re.compile(r"(\w+?)(\.cpython-[\w-]+|\.abi3)?(\.\w+)?")


def agents_files(archive):
    """Path to (content, mode) of the regular files in the agent's repository."""
    found = {}
    with tarfile.open(archive) as opened:
        for member in opened:
            path = os.path.normpath(member.name)
            if member.isfile() and not path.startswith(("/", "..")) and not is_cache(path):
                found[path] = (opened.extractfile(member).read(), member.mode & 0o777)
    return found


def is_cache(path):
    """Whether a path belongs to git or to a cache of Python or pytest."""
    parts = path.split("/")
    return ".git" in parts or "__pycache__" in parts or ".pytest_cache" in parts or path.endswith(".pyc")


def original_files(root):
    """The content of each regular file below `root`, by relative path."""
    found = {}
    for parent, _, names in os.walk(root):
        for name in names:
            full = os.path.join(parent, name)
            path = os.path.relpath(full, root)
            if os.path.isfile(full) and not os.path.islink(full) and not is_cache(path):
                with open(full, "rb") as stream:
                    found[path] = stream.read()
    return found


def is_kept(path, is_new, spec, packages):
    """Whether a file stays as it is here, whatever the agent has made of it."""
    if path in spec["gold"]:
        return False
    name = path.rpartition("/")[2]
    folders = path.split("/")[:-1]
    is_test = "tests" in folders or name.startswith("test_") or name.endswith(("_test.py", "_tests.py"))
    if path in spec["kept"] or is_test or name == "test.py" or name in ALWAYS:
        return True
    if name.endswith(".pth") or name.startswith("gumshoe_"):
        return True
    return is_new and shadows(path, spec["shadowed"], packages)


def shadows(path, modules, packages):
    """Whether Python would import a new file in place of a module of the test runner or the standard library."""
    parts = path.split("/")
    for depth, part in enumerate(parts):
        match = MODULE.fullmatch(part)
        if match and match.group(1) in modules and "/".join(parts[:depth]) not in packages:
            return True
    return False


def lay(root, spec):
    """Lays what the agent has changed over the original repository, and returns the paths that were taken."""
    theirs, ours = agents_files(ARCHIVE), original_files(root)
    packages = {path.rpartition("/")[0] for path in ours if path.endswith("/__init__.py")}
    changed = [path for path in sorted(set(theirs) | set(ours)) if theirs.get(path, (None,))[0] != ours.get(path)]
    taken = [path for path in changed if not is_kept(path, path not in ours, spec, packages)]
    for path in taken:
        full = os.path.join(root, path)
        if os.path.lexists(full):
            os.unlink(full)
        if path in theirs:
            content, mode = theirs[path]
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as stream:
                stream.write(content)
            os.chmod(full, mode)
    for path, text in spec["tests"].items():
        full = os.path.join(root, path)
        if text is None:
            if os.path.lexists(full):
                os.unlink(full)
        else:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(text)
    return taken


class Supervisor:
    """The process that runs the tests. It starts before anything of the agent's is there, and loads the test runner."""

    def __init__(self, root, spec):
        self._deciding, self._timeout_s = spec["deciding"], spec["timeout_s"]
        connection, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.join(HERE, "gumshoe_supervisor.py")],
            stdin=subprocess.DEVNULL,
            cwd=root,
            env=dict(os.environ, GUMSHOE_CONTROL=str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        connection.settimeout(self._timeout_s + GRACE_S)
        self._stream = connection.makefile("rwb")
        self._loaded = self._ask({
            "argv": [word.replace("{support}", HERE) for word in spec["argv"]],
            "support": HERE,
            "output": OUTPUT_BYTES,
            "root": root,
            "environment": dict(os.environ),
            "direct": spec["direct"],
            "tests": self._deciding,
            "folder": os.path.join(tempfile.mkdtemp(), "verdict"),
        })  # fmt: skip

    def run(self, taken):
        """The report on one run of the tests, or None."""
        order = {"changed": taken, "tests": self._deciding, "timeout_s": self._timeout_s}
        try:
            answer = self._ask(order) if "loaded" in self._loaded else {}
            with open(answer["report"], "rb") as stream:
                data = stream.read()
            if hashlib.sha256(data).hexdigest() == answer["sha256"]:
                return json.loads(data.decode("utf-8"))
        except (ValueError, KeyError, OSError):
            self._process.kill()
        return None

    def _ask(self, message):
        try:
            self._stream.write(json.dumps(message).encode("utf-8") + b"\n")
            self._stream.flush()
            return json.loads(self._stream.readline().decode("utf-8"))
        except (ValueError, OSError):
            return {}


def problems_of(report, direct):
    """Why a run proves nothing, and the outcome of each test."""
    if report is None:
        return ["the supervisor gave no report"], {}
    if report["timed_out"]:
        return ["the tests take too long"], {}
    problems = list(report["problems"])
    outcomes, started, code, final = {}, {}, None, False
    for event in report["events"]:
        kind = event[0]
        if kind == "final" and not final:
            final = True
        elif final or code is not None:
            problems.append("something was reported after the end of the tests")
        elif kind == "start":
            started[event[1]] = started.get(event[1], 0) + 1
        elif kind == "result":
            name, outcome = event[1], event[2]
            if not started.get(name) or outcome not in WORST_FIRST:
                problems.append("{} has a result that does not fit".format(name))
                continue
            started[name] -= 1
            before = outcomes.get(name, "passed")
            outcomes[name] = min(before, outcome, key=WORST_FIRST.index)
        elif kind == "tampered":
            problems.append("the test runner was tampered with: {}".format(event[1]))
        elif kind == "end":
            code = event[1]
        elif kind != "broken":
            problems.append("a report has an unknown format")
    broken = any(event[0] == "broken" for event in report["events"])
    wrong = broken or any(outcome in ("failed", "error") for outcome in outcomes.values())
    if code is None or not final:
        problems.append("the tests did not run to the end")
    elif any(started.values()):
        problems.append("tests have no result")
    elif report["exit_code"] != code and (direct or code == 0):
        problems.append("the runner's report and its exit code contradict each other")
    elif (code == 0 and wrong) or code not in (0, 1, 2, 5):
        problems.append("the runner ended with {}".format(code))
    return problems, outcomes


def failing(tests, outcomes, skipped_counts):
    """The named tests that are not as they should be. A file name stands for all of its tests."""
    good = ("passed", "xfailed") if skipped_counts else ("passed", "xfailed", "skipped")
    for test in tests:
        found = [outcomes[test]] if test in outcomes else []
        if test.endswith(".py"):
            found += [outcome for name, outcome in outcomes.items() if name.startswith(test + "::")]
        if not found or not all(outcome in good for outcome in found):
            yield test


def main():
    """Lays the agent's changes over the original files, runs the tests, and writes the reward."""
    with open(os.path.join(HERE, "task.json"), encoding="utf-8") as stream:
        spec = json.load(stream)
    root = spec["root"]
    os.chdir(root)
    os.makedirs(OUT, exist_ok=True)
    if os.path.isfile(ARCHIVE):
        supervisor = Supervisor(root, spec)
        taken = lay(root, spec)
        problems, outcomes = problems_of(supervisor.run(taken), spec["direct"])
    else:
        taken, problems, outcomes = [], ["the agent's repository was not collected"], {}
    fails = list(failing(spec["fail_to_pass"], outcomes, True))
    breaks = list(failing(spec["pass_to_pass"], outcomes, False))
    resolved = not (problems or fails or breaks)
    verdict = {"resolved": resolved, "problems": problems, "fail_to_pass": fails, "pass_to_pass": breaks}
    with open(os.path.join(OUT, "verdict.json"), "w") as stream:
        json.dump(dict(verdict, changed=taken), stream, indent=1)
    with open(os.path.join(OUT, "reward.txt"), "w") as stream:
        stream.write("1\n" if resolved else "0\n")


if __name__ == "__main__":
    main()
