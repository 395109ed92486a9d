"""Snapshots of a whole episode: files, breakpoints, the paused program, the shell."""

from __future__ import annotations

from support.tools.tool_bench import Bench


def test_an_episode_goes_back_to_its_paused_program(bench: Bench) -> None:
    bench.call("pdb", command="b cart.py:17, item is None\nc\n!total = 40")
    bench.call("bash", command="mkdir sub; cd sub; export WHERE=here")
    moment = bench.env.snapshot()
    for _ in range(2):
        assert "program ended with exit code 1" in bench.text("pdb", command="cl\nc\nc")
        bench.call("rewrite", path="cart.py", start=11, end=11, code="        return 0")
        assert "> cart.py:15 in total (breakpoint 1)" in bench.text("pdb", command="b cart.py:15\nc")
        bench.call("bash", command="cd /; export WHERE=there; rmdir $OLDPWD")
        bench.env.restore(moment)
        assert bench.workspace.patch() == ""
        assert bench.text("pdb", command="p total, item") == "total, item = (40, None)"
        assert bench.text("pdb", command="b") == "breakpoint 1 at cart.py:17 (if item is None)"
        assert bench.text("bash", command="basename $PWD; echo $WHERE") == "sub\nhere"


def test_a_program_that_leaves_without_a_word_is_back_as_well(bench: Bench) -> None:
    bench.call("pdb", command="b cart.py:17\nc")
    moment = bench.env.snapshot()
    assert bench.text("pdb", command="!import os\n!os._exit(3)") == "program ended with exit code 3"
    bench.env.restore(moment)
    assert bench.text("pdb", command="p total") == "total = 0"
    other = bench.env.snapshot()
    bench.call("pdb", command="n")
    bench.env.restore(other)
    bench.env.restore(moment)
    assert bench.text("pdb", command="n").splitlines()[0] == "> cart.py:16 in total"


def test_a_program_with_threads_starts_anew(bench: Bench) -> None:
    code = "!import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    bench.call("pdb", command=f"b cart.py:17\nc\n{code}")
    moment = bench.env.snapshot()
    bench.call("pdb", command="cl")
    bench.env.restore(moment)
    assert bench.text("pdb", command="b\np 1").splitlines()[0] == "breakpoint 1 at cart.py:17"
