"""Reading a patch takes a bounded amount of memory, whatever is in it: what would take more is refused before."""

from __future__ import annotations

import subprocess
import sys

import pytest

MEMORY_MB = 512
"""What a patch may cost on top of an interpreter that holds its text."""
CHILD = """
import base64, resource, sys, zlib
from pathlib import Path
from gumshoe.env.diff import apply_patch, drop_files, parse_patch
from gumshoe.env.diff.parse import LARGEST_PATCH, MOST_LINES
from gumshoe.errors import TaskError

HEADER = "diff --git a/f b/f\\nindex 1..2\\n"
BINARY = HEADER + "GIT binary patch\\n"
NEW = HEADER + "--- /dev/null\\n+++ b/f\\n"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

def block(packed, size, kind="literal"):
    chunks = (packed[start:start + 52] for start in range(0, len(packed), 52))
    lines = "".join(LETTERS[len(chunk) - 1] + base64.b85encode(chunk, pad=True).decode() + "\\n" for chunk in chunks)
    return f"{kind} {size}\\n{lines}\\n"

def zeros(size):
    packer = zlib.compressobj(1)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)), packer.flush()])

patch = SHAPE
in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = in_use + (MEMORY_MB << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    apply_patch({"f": ""}, patch)
    drop_files(patch, ["f"])
    print("read")
except TaskError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("shape", "outcome"),
    [
        ("BINARY + block(zeros(600 << 20), 600 << 20)", "too large"),
        ("BINARY + block(zeros(600 << 20), 1000)", "damaged"),
        ("BINARY + block(zeros(600 << 20), 0)", "damaged"),
        ("BINARY + block(zeros(60 << 20), 60 << 20)", "read"),
        ("BINARY + block(zeros(40 << 20), 40 << 20) + block(zeros(40 << 20), 40 << 20, 'delta')", "too large"),
        ("(BINARY + block(zeros(1 << 20), 1 << 20)) * 100", "too large"),
        ("BINARY + f'literal {10 ** 30}\\n\\n'", "without its full content"),
        ("BINARY + block(b'', 9) * 200_000", "damaged"),
        (
            "HEADER + 'Binary files a/f and b/f differ\\n' * 200 + BINARY + block(zeros(9 << 20), 9 << 20)",
            "without its",
        ),
        (
            "'--- a/f\\n+++ b/f\\nBinary files a/f and b/f differ\\n' * 9999 + block(zeros(9 << 20), 9 << 20)",
            "without its",
        ),
        ("NEW + '@@ -0,0 +1,6000000 @@\\n' + '+x\\n' * 6_000_000", "too large"),
        ("NEW + f'@@ -0,0 +1,{MOST_LINES - 9} @@\\n' + '+x\\n' * (MOST_LINES - 9)", "read"),
        ("NEW + '@@ -0,0 +1 @@\\n+x\\n' * (MOST_LINES // 2 - 9)", "read|apply"),
        ("''.join(f'diff --git a/{n} b/{n}\\nold mode 100644\\nnew mode 100755\\n' for n in range(160_000))", "apply"),
        ("NEW + '@@ -0,0 +1 @@\\n+' + 'x' * (60 << 20) + '\\n'", "read"),
        ("NEW + '@@ -0,0 +1 @@\\n+' + '\\U0001f600' * (20 << 20) + '\\n'", "too large"),
        ("'x\\n' * 6_000_000", "too large"),
    ],
)
def test_a_patch_is_read_or_refused_within_the_limit(shape: str, outcome: str) -> None:
    code = CHILD.replace("SHAPE", shape).replace("MEMORY_MB", str(MEMORY_MB))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert any(word in done.stdout for word in outcome.split("|")), done.stdout[:300]
