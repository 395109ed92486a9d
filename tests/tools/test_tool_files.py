"""listdir, view, grep and rewrite, on every sandbox."""

from pathlib import Path
from typing import Any

from support.folder_tasks import write_files
from support.tools.tool_bench import Bench, Open


def test_rewrite_shows_the_difference_and_becomes_the_patch(bench: Bench) -> None:
    assert bench.lines("rewrite", path="cart.py", code="        value = (item or 0) * 2", start=11) == [
        "rewrote cart.py",
        "@@ -9,5 +9,5 @@",
        "     def price(item):",
        '         """What one item costs."""',
        "-        value = item * 2",
        "+        value = (item or 0) * 2",
        "         return value",
        " ",
    ]
    assert bench.data("eval")["passed"] is True
    assert "+        value = (item or 0) * 2" in bench.env.patch()


def test_a_view_of_long_lines_ends_where_the_text_would_be_cut(open_bench: Open, project: Path) -> None:
    lines = [f"a{number} = '{'x' * 100}'" for number in range(1, 301)]
    (project / "long.py").write_text("\n".join(lines) + "\n")
    bench = open_bench()
    seen: list[str] = []
    while len(seen) < len(lines):
        observation = bench.call("view", path="long.py", start=len(seen) + 1)
        data: Any = observation.data
        assert not observation.truncated
        assert observation.text.startswith(f"long.py {data['start']}-{data['end']} of 300 lines\n")
        assert observation.text.splitlines()[-1].split(None, 1) == [str(data["end"]), lines[data["end"] - 1]]
        assert 6500 < len(observation.text) <= 8000 or data["end"] == 300
        seen += data["lines"]
        assert len(seen) == data["end"]
    assert seen == lines


def test_listdir_is_a_tree_to_a_depth_with_a_line_for_each_name(open_bench: Open, project: Path) -> None:
    write_files(project, {"a/b/c/deep.py": "", "new/line\nof\tits.py": "", **{f"z/file{n:03}": "" for n in range(250)}})
    (project / "empty").mkdir()
    bench = open_bench()
    assert bench.text("listdir", path="a", depth=3) == "b/\n  c/\n    deep.py"
    assert bench.text("listdir", path=".", depth=1) == "a/\ncart.py\nempty/\nnew/\ntest_cart.py\nz/"
    assert bench.text("listdir", path="empty") == "empty folder"
    assert bench.text("listdir", path="new") == "line\\nof\\tits.py"
    assert bench.failure("listdir", path="nowhere") is not None
    long = bench.call("listdir", path="z")
    assert long.text.endswith("[... 50 more ...]")
    assert long.truncated


def test_nothing_hidden_or_outside_the_workspace_is_shown(open_bench: Open, project: Path) -> None:
    write_files(project, {"secret/answer.py": "def total(): pass\n"})
    (project / "link").symlink_to("/etc/passwd")
    bench = open_bench(ignore=("secret/",))
    assert "secret" not in bench.text("listdir")
    assert "secret" not in bench.text("grep", pattern="def total")
    assert bench.failure("listdir", path="secret") is not None
    for path in ("secret/answer.py", "../outside", "/etc/passwd", "link"):
        assert bench.failure("view", path=path) is not None, path
        assert bench.failure("rewrite", path=path, code="x") is not None, path


def test_view_ranges_and_odd_files(open_bench: Open, project: Path) -> None:
    files = {
        "long.txt": "".join(f"line {number}\n" for number in range(1, 501)),
        "empty.txt": "",
        "wide.txt": "x" * 1000,
        "binary": b"\x00\x01",
        "latin.py": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n",
        "broken.txt": b"caf\xe9\n",
        "separators.txt": "one\x0ctwo\u2028three\n",
    }
    write_files(project, files)
    bench = open_bench()
    assert bench.text("view", path="long.txt").startswith("long.txt 1-200 of 500 lines\n   1 line 1\n")
    assert bench.text("view", path="long.txt", start=499, end=9999).endswith(" 499 line 499\n 500 line 500")
    assert bench.text("view", path="long.txt", start=501) == "error: long.txt has only 500 lines"
    assert bench.text("view", path="long.txt", start=5, end=4) == "error: end 4 is before start 5"
    assert bench.data("view", path="long.txt", start=-3, end=1)["end"] == 1
    assert bench.text("view", path="empty.txt") == "empty.txt is empty"
    assert len(bench.text("view", path="wide.txt")) < 300
    assert bench.text("view", path="binary").startswith("error: this is a binary file")
    assert bench.text("view", path="latin.py").endswith("name = 'é'")
    assert bench.text("view", path="broken.txt").endswith("caf\ufffd")
    assert bench.text("view", path="separators.txt").startswith("separators.txt 1-1 of 1 line\n")


def test_grep_patterns(open_bench: Open, project: Path) -> None:
    (project / "many.txt").write_text("match me\n" * 80)
    bench = open_bench()
    assert bench.text("grep", pattern="total(", path="cart.py") == "cart.py:14: def total(self):"
    assert bench.text("grep", pattern="item.*2", path="cart.py") == "cart.py:11: value = item * 2"
    assert bench.text("grep", pattern="item * 2", literal=True) == "cart.py:11: value = item * 2"
    assert bench.text("grep", pattern="nothing like this") == "no match"
    many = bench.call("grep", pattern="match")
    assert many.truncated
    assert many.text.endswith("[... more than 50 matches: narrow the pattern or the path ...]")


def test_rewrite_makes_replaces_inserts_and_deletes(bench: Bench) -> None:
    assert bench.text("rewrite", path="new/file.txt", code="one\ntwo").startswith("created new/file.txt\n")
    bench.call("rewrite", path="new/file.txt", code="zero", start=1, end=0)
    bench.call("rewrite", path="new/file.txt", code="three\nfour", start=4, end=3)
    bench.call("rewrite", path="new/file.txt", code="", start=2)
    bench.call("rewrite", path="new/file.txt", code="2\n", start=2)
    assert bench.workspace.read_text("new/file.txt") == "zero\n2\nthree\nfour\n"
    bench.call("rewrite", path="new/file.txt", code="all new\n")
    assert bench.workspace.read_text("new/file.txt") == "all new\n"
    assert [edit.path for edit in bench.workspace.edits] == ["new/file.txt"] * 6


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"path": "cart.py", "code": "x", "start": 31}, "cart.py has only 30 lines: view it again"),
    ({"path": "cart.py", "code": "x", "start": 30, "end": 31}, "cart.py has only 30 lines: view it again"),
    ({"path": "cart.py", "code": "x", "start": 32, "end": 31}, "cart.py has only 30 lines: view it again"),
    ({"path": "cart.py", "code": "x", "start": 5, "end": 3}, "lines 5 to 3 are not a range"),
    ({"path": "cart.py", "code": "x", "start": 0}, "lines 0 to 0 are not a range"),
    ({"path": "cart.py", "code": "x", "end": 3}, "end needs start"),
    ({"path": "cart.py", "code": '"""A cart."""', "start": 1}, "cart.py already has this content"),
    ({"path": "none.py", "code": "x", "start": 4}, "there is no none.py"),
    ({"path": "test_cart.py", "code": "x"}, "test_cart.py is read-only"),
    ({"path": "bare.txt", "code": "one\n"}, "bare.txt already has this content"),
    ({"path": "cart.py", "code": "x = '\0'\n"}, "code holds a NUL character"),
]


def test_rewrite_refuses(open_bench: Open, project: Path) -> None:
    (project / "bare.txt").write_text("one")
    bench = open_bench(readonly=("test_*.py",))
    before = bench.workspace.read_text("cart.py")
    for arguments, said in REFUSED:
        observation = bench.call("rewrite", **arguments)
        assert observation.failure is not None, arguments
        assert observation.text.startswith(f"error: {said}")
    assert bench.workspace.read_text("cart.py") == before
    assert bench.workspace.edits == []


def test_rewrite_keeps_encoding_newlines_and_mode(open_bench: Open, project: Path) -> None:
    files = {
        "dos.txt": b"one\r\ntwo\r\nthree",
        "latin.py": b"# coding: latin-1\nname = '\xe9'\nother = 1\n",
        "marked.py": b"\xef\xbb\xbfx = 1\n",
        "tool.sh": "#!/bin/sh\necho one\n",
    }
    write_files(project, files)
    (project / "tool.sh").chmod(0o755)
    bench = open_bench()
    bench.call("rewrite", path="dos.txt", code="2\n2b\n", start=2)
    bench.call("rewrite", path="dos.txt", code="end", start=4)
    bench.call("rewrite", path="latin.py", code="other = 'ü'", start=3)
    bench.call("rewrite", path="marked.py", code="x = 2\n", start=1)
    bench.call("rewrite", path="tool.sh", code="echo $(two) `three` 'EOF'\n", start=2)
    read = bench.workspace.sandbox.read_file
    assert read("dos.txt") == b"one\r\n2\r\n2b\r\nend"
    assert read("latin.py") == b"# coding: latin-1\nname = '\xe9'\nother = '\xfc'\n"
    assert read("marked.py") == b"\xef\xbb\xbfx = 2\n"
    assert read("tool.sh") == b"#!/bin/sh\necho $(two) `three` 'EOF'\n"
    assert bench.workspace.sandbox.run(["./tool.sh"]).exit_code is not None
    refused = bench.text("rewrite", path="latin.py", code="other = '\u20ac'", start=3)
    assert refused == "error: the file is iso8859-1, which has no '€'"


def test_rewrite_tells_of_a_syntax_error(bench: Bench) -> None:
    observation = bench.call("rewrite", path="cart.py", code="def broken(:\n", start=1)
    assert observation.text.splitlines()[-1].startswith("SyntaxError: ")
    assert observation.data["syntax_error"] == observation.text.splitlines()[-1]
    nested = bench.call("rewrite", path="deep.py", code="(" * 5000 + ")" * 5000)
    assert nested.data["syntax_error"] is not None
    assert bench.call("rewrite", path="notes.txt", code="def (").data["syntax_error"] is None


def test_rewrite_finds_syntax_errors_where_modules_hide_the_librarys(open_bench: Open, project: Path) -> None:
    (project / "json.py").write_text("x = 1\n")
    bench = open_bench("bubblewrap", sandbox={"env": {"PYTHONPATH": "/workspace"}})
    for _ in range(2):
        assert "SyntaxError" in bench.call("rewrite", path="cart.py", code="def broken(:\n", start=1, end=1).text
        bench.call("rewrite", path="cart.py", code="x = 1", start=1, end=1)
