"""bash: state that lasts, time limits, and commands that try to break the exchange."""

import signal
import threading

import pytest

from support.tools.tool_bench import Bench, Open


def test_bash(bench: Bench) -> None:
    assert bench.text("bash", command="ls") == "cart.py  test_cart.py"
    assert bench.text("bash", command="mkdir sub; cd sub; export NAME='a b'; plain=1") == "no output"
    assert bench.text("bash", command='echo "$NAME $plain ${PWD##*/}"') == "a b 1 sub"
    failed = bench.call("bash", command="false")
    assert (failed.text, failed.data) == ("exit code 1", {"exit_code": 1, "timed_out": False})
    bench.call("bash", command="sleep 600 & job=$!")
    assert bench.text("bash", command="kill -0 $job && echo there") == "there"
    assert bench.text("bash", command="kill -9 $$").startswith("exit code ")
    assert bench.text("bash", command="echo back") == "back"


def test_state_outlives_exit_and_timeout(open_bench: Open, backend: str) -> None:
    bench = open_bench(backend, timeout=3.0)
    bench.call("bash", command="mkdir sub; cd sub; export NAME=kept")
    assert bench.text("bash", command="echo leaving; exit 3") == "leaving\nexit code 3"
    assert bench.text("bash", command='echo "$NAME ${PWD##*/}"') == "kept sub"
    late = bench.call("bash", command="echo early; sleep 612.5 & sleep 612.5")
    assert late.text == "early\ntimed out after 3 s: killed"
    assert late.data["timed_out"] is True
    alive = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]leep 612.5'"
    assert bench.text("bash", command=f'echo "$NAME ${{PWD##*/}}"; {alive}') == "kept sub\n0\nexit code 1"


def test_a_call_that_is_interrupted_is_not_in_the_way_of_the_next(bench: Bench) -> None:
    assert bench.text("bash", command="export NAME=kept") == "no output"
    for tool, command in (("bash", "sleep 60"), ("pdb", "b cart.py:13, __import__('time').sleep(60)\nc")):
        timer = threading.Timer(1.0, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            bench.call(tool, command=command)
        timer.join()
        assert bench.text("bash", command="echo $NAME") == "kept"
        assert "cart.py:12" in bench.text("pdb", command="b cart.py:12")


ODD = "".join(map(chr, [*range(1, 10), *range(11, 13), *range(14, 128)])) + "é☃😀%41\\x41\\n${HOME}"


@pytest.mark.parametrize("length", [1, 100])
def test_every_character_of_a_command_arrives(bench: Bench, length: int) -> None:
    """The short ones on the control socket, the long ones in a file."""
    text = ODD * length
    command = "cat > got <<'gumshoe end'\n" + text + "\ngumshoe end\n"
    assert bench.text("bash", command=command) == "no output"
    assert bench.env.sandbox.read_file("got") == text.encode() + b"\n"


def test_a_command_that_cannot_be_read_leaves_the_next_one_alone(bench: Bench) -> None:
    assert bench.failure("bash", command="echo a\0b") is not None
    assert bench.text("bash", command="echo 'unclosed").endswith("exit code 2")
    assert bench.text("bash", command="echo next") == "next"


def test_commands_find_no_input_and_no_control_socket(bench: Bench) -> None:
    assert bench.text("bash", command="cat; env | grep GUMSHOE_; ls /proc/self/fd | wc -w") == "4"


def test_output_is_plain_and_capped(bench: Bench) -> None:
    assert bench.text("bash", command=r"printf '\033[31mred\033[0m 10%%\r20%%\n\377\n'") == "20%\n\ufffd"
    long = bench.call("bash", command="yes | head -c 20000000")
    assert long.truncated
    assert len(long.text) < 5000
