"""Serving: a real `transformers serve` on a micro model, and small real servers for what goes wrong."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from gumshoe.cli import main
from gumshoe.collect.config import OpenAIConfig
from gumshoe.collect.policies.openai import OpenAIPolicy
from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.backends import (
    Installed,
    choose_backend,
    container_command,
    environment,
    look_for,
    look_in_image,
    serve_command,
)
from gumshoe.eval.serve.model_folder import check_model_folder, lay_out_for_transformers
from gumshoe.records import Completion, Message, ToolCall, ToolSchema

TOOLS = json.loads(Path(__file__).with_name("micro_tools.json").read_text())
VIEW = ToolSchema(**TOOLS[0]["function"])
GUARDIAN = Path(__file__).parents[2] / "eval" / "serve" / "guardian.py"


def completed(config: OpenAIConfig, messages: Sequence[Message]) -> Completion:
    with closing(OpenAIPolicy(config)) as policy:
        return policy.complete(messages, [VIEW])


def ask(server: ModelServer, messages: Sequence[Message]) -> Completion:
    return completed(
        OpenAIConfig(model=server.model, base_url=server.base_url, syntax="template", temperature=0.0, max_tokens=90),
        messages,
    )


def until(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# --- what is served -----------------------------------------------------------------------------------------------


def test_the_server_answers_a_valid_call_with_the_text_that_the_model_wrote(served: ModelServer) -> None:
    completion = ask(served, [Message(role="user", content="good")])
    assert completion.text == "[seek 0.9] I look"
    assert [(call.name, call.arguments) for call in completion.tool_calls] == [("view", {"path": "a.py"})]


def test_transformers_serves_a_model_under_a_name_of_ones_own(micro_model: Path) -> None:
    with ModelServer(micro_model, ServeConfig(backend="transformers", name="seeker")) as server:
        assert server.model == "seeker"
        assert server.shell_command.startswith("cd ")
        assert ask(server, [Message(role="user", content="good")]).text == "[seek 0.9] I look"
    with (
        pytest.raises(ServeError, match="cannot serve a model as 'a/b'"),
        ModelServer(micro_model, ServeConfig(backend="transformers", name="a/b")),
    ):
        pass


def test_a_broken_call_comes_back_as_data_and_not_as_a_server_error(served: ModelServer) -> None:
    completion = ask(served, [Message(role="user", content="bad")])
    assert completion.text == "[seek 0.9] I look"
    (call,) = completion.tool_calls
    assert call.parse_error is not None


def test_a_call_that_the_length_limit_cuts_off_comes_back_as_data(served: ModelServer) -> None:
    config = OpenAIConfig(
        model=served.model, base_url=served.base_url, syntax="template", temperature=0.0, max_tokens=18
    )
    completion = completed(config, [Message(role="user", content="good")])
    assert completion.finish_reason == "length"
    assert completion.tool_calls[0].parse_error is not None


def test_the_served_prompt_has_the_tokens_of_the_training_rendering(served: ModelServer, micro_model: Path) -> None:
    """Tools, past calls with their text, tool answers: as the training path renders them, counted over the wire."""
    messages = [
        Message(role="system", content="You look."),
        Message(role="user", content="good"),
        Message(
            role="assistant",
            content="[seek 0.9] I look",
            tool_calls=(
                ToolCall(id="1", name="view", arguments={"path": "é.py", "start": 3, "deep": {"b": [1], "a": None}}),
            ),
        ),
        Message(role="tool", content="[step 0] 1 x = 'ü'", tool_call_id="1", name="view"),
        Message(role="assistant", content="", tool_calls=(ToolCall(id="2", name="view", arguments={}),) * 2),
        Message(role="tool", content="[step 1] error", tool_call_id="2", name="view"),
        Message(role="tool", content="[step 1] error", tool_call_id="2", name="view"),
    ]
    counted = ask(served, messages).usage.prompt_tokens
    script = (
        "import json, sys; from transformers import AutoTokenizer\n"
        "row = json.load(sys.stdin); tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "print(len(tokenizer.apply_chat_template(row['messages'], tools=row['tools'], add_generation_prompt=True,"
        " return_dict=True)['input_ids']))"
    )
    row = {
        "messages": [message.as_openai(arguments_as_text=False) for message in messages],
        "tools": [VIEW.as_openai()],
    }
    rendered = subprocess.run(
        [sys.executable, "-c", script, str(micro_model)],
        input=json.dumps(row),
        capture_output=True,
        text=True,
        check=True,
    )
    assert counted == int(rendered.stdout)


def test_native_history_would_lose_text_on_this_server(served: ModelServer) -> None:
    """The reason for the `template` syntax; should this fail, the server has learnt to keep it."""
    messages = [
        Message(role="user", content="good"),
        Message(role="assistant", content="a long text" * 9, tool_calls=(ToolCall(id="1", name="view"),)),
        Message(role="tool", content="x", tool_call_id="1", name="view"),
    ]
    as_text = ask(served, messages).usage.prompt_tokens
    config = OpenAIConfig(model=served.model, base_url=served.base_url, temperature=0.0, max_tokens=2)
    native = completed(config, messages)
    assert native.usage.prompt_tokens < as_text


def test_two_clients_at_once_are_both_answered(served: ModelServer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: ask(served, [Message(role="user", content="good")]), range(2)))
    assert answers[0].tool_calls == answers[1].tool_calls


def test_a_prefix_cache_changes_no_answer(served: ModelServer, micro_model: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    config = ServeConfig(backend="transformers", device="cpu", threads=1, prefix_cache=True)
    conversations = [[Message(role="user", content=text)] for text in ("good", "bad", "good", "bad")]
    with ModelServer(micro_model, config) as cached, ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda messages: ask(cached, messages), conversations))
    for completion, messages in zip(found, conversations, strict=True):
        expected = ask(served, messages)
        assert (completion.text, completion.finish_reason) == (expected.text, expected.finish_reason)
        assert [call.arguments for call in completion.tool_calls] == [call.arguments for call in expected.tool_calls]
        assert completion.usage.prompt_tokens == expected.usage.prompt_tokens


def test_the_command_is_shown_whole_and_the_log_begins_with_it(served: ModelServer) -> None:
    assert served.backend == "transformers"
    assert served.shell_command.endswith(" ".join(served.command[-2:]))
    assert "HF_HUB_OFFLINE=1" in served.shell_command
    assert served.log.read_text().startswith(f"$ {served.shell_command}\n")
    assert served.healthy()
    served.check()


# --- the model folder ---------------------------------------------------------------------------------------------


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(ServeError, match=r"there is no model folder .*nowhere"):
        ModelServer(Path("/nowhere")).start()


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ((), "no config.json"),
        (("config.json",), "no tokenizer"),
        (("config.json", "tokenizer.json"), "no weights"),
        (("config.json", "tokenizer.json", "model.safetensors"), "no chat template"),
    ],
)
def test_a_folder_that_is_no_model_says_what_it_lacks(tmp_path: Path, files: tuple[str, ...], missing: str) -> None:
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(ServeError, match=missing):
        check_model_folder(tmp_path)


def test_a_damaged_tokenizer_config_is_named(tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ServeError, match=r"tokenizer_config\.json cannot be read"):
        check_model_folder(tmp_path)


def test_the_layout_links_every_file_and_leaves_the_model_as_it_is(micro_model: Path, tmp_path: Path) -> None:
    before = (micro_model / "tokenizer_config.json").read_bytes()
    view = lay_out_for_transformers(micro_model, tmp_path / "view")
    assert {path.name for path in view.iterdir()} == {path.name for path in micro_model.iterdir()}
    assert (micro_model / "tokenizer_config.json").read_bytes() == before
    template = json.loads((view / "tokenizer_config.json").read_text())["response_template"]
    assert template["fields"] == {
        "content": {"content": "text", "content_args": {"strip": False}, "close": ["<|im_end|>"]}
    }


def test_end_tokens_may_be_a_list_and_may_be_missing(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    added = [{"id": 7, "content": "<end>"}, {"id": 8, "content": "<stop>"}, {"id": 9, "content": "<other>"}]
    (model / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
    (model / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8]}))
    (model / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<eos>"}}))
    written = json.loads((lay_out_for_transformers(model, tmp_path / "one") / "tokenizer_config.json").read_text())
    assert written["response_template"]["fields"]["content"]["close"] == ["<end>", "<eos>", "<stop>"]
    for name in ("generation_config.json", "tokenizer_config.json"):
        (model / name).write_text("[]")
    written = json.loads((lay_out_for_transformers(model, tmp_path / "two") / "tokenizer_config.json").read_text())
    assert "close" not in written["response_template"]["fields"]["content"]


# --- choosing and composing ---------------------------------------------------------------------------------------


def installed(vllm: str | None = None, transformers: str | None = None, *, gpu: bool = False) -> Installed:
    return Installed("python", vllm, transformers, gpu)


def test_vllm_is_taken_where_it_is_installed_else_transformers() -> None:
    assert choose_backend("auto", installed("0.32", "5.23")) == "vllm"
    assert choose_backend("auto", installed(None, "5.23")) == "transformers"
    assert choose_backend("transformers", installed("0.32", "5.23")) == "transformers"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("auto", "python has neither vLLM nor transformers' server: pip install"),
        ("vllm", "python has no vllm: name the interpreter"),
        ("transformers", "python has no transformers: pip install"),
    ],
)
def test_nothing_installed_is_one_line_with_a_cure(wanted: str, said: str) -> None:
    with pytest.raises(ServeError, match=said):
        choose_backend(wanted, installed())


def test_an_interpreter_that_is_not_there_is_named() -> None:
    with pytest.raises(ServeError, match="there is no interpreter /nowhere/python"):
        look_for("/nowhere/python")
    with pytest.raises(ServeError, match="the interpreter false cannot be used"):
        look_for("false")


def test_the_vllm_command_has_the_flags_of_tools_and_template(tmp_path: Path) -> None:
    config = ServeConfig(
        python="/v/python", max_length=99, tensor_parallel=2, data_parallel=3, arguments=("--seed", "1")
    )
    argv, name = serve_command("vllm", config, installed("0.32"), model=tmp_path, port=5)
    text = " ".join(argv)
    assert text.startswith(f"/v/python -m vllm.entrypoints.openai.api_server --model {tmp_path}")
    assert name == str(tmp_path)
    for flags in (
        "--port 5",
        "--max-model-len 99",
        "--enable-auto-tool-choice --tool-call-parser hermes",
        "--tensor-parallel-size 2",
        "--data-parallel-size 3",
        "--enforce-eager --dtype float32",
    ):
        assert flags in text
    assert text.endswith("--seed 1")
    on_gpu, named = serve_command(
        "vllm", ServeConfig(name="seeker"), installed("0.32", gpu=True), model=tmp_path, port=5
    )
    assert named == "seeker"
    assert "--enforce-eager" not in on_gpu
    assert on_gpu[-2:] == ["--dtype", "auto"]


def test_an_image_is_run_with_the_model_at_its_own_path(tmp_path: Path) -> None:
    config = ServeConfig(image="vllm/vllm-openai:v1", arguments=("--seed", "1"))
    command, _ = serve_command("vllm", config, installed("1", gpu=True), model=tmp_path, port=5)
    argv = container_command(config, installed("1", gpu=True), command, tmp_path)
    text = " ".join(argv)
    assert text.startswith(f"docker run --rm --init --network host --ipc host -v {tmp_path}:{tmp_path}:ro --gpus all")
    assert "--entrypoint python3 vllm/vllm-openai:v1 -m vllm.entrypoints.openai.api_server" in text
    assert text.endswith("--seed 1")
    assert "--gpus" not in container_command(config, installed("1"), command, tmp_path)
    assert look_in_image("an-image").vllm


def test_the_server_is_kept_off_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HOME", raising=False)
    variables = environment("vllm", ServeConfig(threads=2), installed("0.32"), model=tmp_path, scratch=tmp_path)
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert (Path(variables["HF_HOME"]) / "hub").is_dir()
    assert (variables["OMP_NUM_THREADS"], variables["VLLM_CPU_KVCACHE_SPACE"]) == ("2", "1")
    monkeypatch.setenv("HF_HOME", "/cache")
    on_gpu = environment(
        "transformers", ServeConfig(), installed(None, "5", gpu=True), model=tmp_path, scratch=tmp_path
    )
    assert on_gpu.keys().isdisjoint({"HF_HOME", "OMP_NUM_THREADS"})


def test_a_small_model_gets_one_thread_and_a_large_one_what_it_wants(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.touch()
    small = environment("transformers", ServeConfig(), installed(None, "5"), model=tmp_path, scratch=tmp_path)
    assert small["OMP_NUM_THREADS"] == "1"
    os.truncate(weights, 1 << 30)
    large = environment("transformers", ServeConfig(), installed(None, "5"), model=tmp_path, scratch=tmp_path)
    assert "OMP_NUM_THREADS" not in large


# --- life and death -----------------------------------------------------------------------------------------------

FAKE = """
import http.server, os, pathlib, sys
crashes = pathlib.Path(sys.argv[0]).parent / "crashes"
port = int(sys.argv[sys.argv.index("--port") + 1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            print("out of memory, says the server", flush=True)
            os._exit(7)
        self.send_response(200); self.end_headers(); self.wfile.write(str(os.getpid()).encode())
    def log_message(self, *arguments): pass
print("starting", flush=True)
if crashes.exists():
    print("the weights do not fit", flush=True)
    sys.exit(3)
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def small_server(tmp_path: Path, micro_model: Path) -> Iterator[Callable[..., ModelServer]]:
    """Makes servers whose program is a small real HTTP server, installed where `python -m` finds vLLM's."""
    package = tmp_path / "site" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(FAKE)
    metadata = tmp_path / "site" / "vllm-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 1.0\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    made: list[ModelServer] = []

    def make(**options: Any) -> ModelServer:
        given: dict[str, Any] = {"startup_s": 120.0, **options}
        config = ServeConfig(backend="vllm", python=str(python), **given)
        made.append(ModelServer(micro_model, config, log=tmp_path / "server.log"))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.mark.needs("docker")
def test_a_server_in_a_container_is_served_and_stopped(micro_model: Path, tmp_path: Path) -> None:
    """The image has a small server where vLLM's is; everything else is as with vLLM's own image."""
    package = tmp_path / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(FAKE)
    (tmp_path / "Dockerfile").write_text(
        "FROM gumshoe-python:latest\nUSER root\nCOPY vllm /site/vllm\nENV PYTHONPATH=/site\n"
    )
    image = "gumshoe-test-serve:latest"
    import docker

    client = docker.from_env()
    try:
        client.images.build(path=str(tmp_path), tag=image, rm=True)
        with ModelServer(micro_model, ServeConfig(image=image, startup_s=60), log=tmp_path / "log") as server:
            assert server.command[:3] == ["docker", "run", "--rm"]
            assert get(server)
        assert until(lambda: not client.containers.list(filters={"ancestor": image}))
        assert get(server) == ""
        client.images.remove(image, force=True)
    finally:
        client.close()


def get(server: ModelServer, path: str = "/health") -> str:
    connection = http.client.HTTPConnection(server.base_url.split("/")[2], timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


def test_a_server_that_dies_is_started_again_on_the_same_port(small_server: Callable[..., ModelServer]) -> None:
    with small_server(restarts=1) as server:
        first = get(server)
        get(server, "/die")
        assert until(lambda: get(server) not in ("", first))
        assert server.restarts == 1
        get(server, "/die")
        with pytest.raises(ServeError, match=r"died \(exit code 7\) after 1 restarts: out of memory, says the server"):
            server.wait()
        with pytest.raises(ServeError):
            server.check()


def test_a_server_that_dies_at_once_gives_its_last_words(
    small_server: Callable[..., ModelServer], tmp_path: Path
) -> None:
    server = small_server()
    crashes = tmp_path / "site" / "vllm" / "entrypoints" / "openai" / "crashes"
    crashes.touch()
    with pytest.raises(ServeError, match=r"died \(exit code 3\): the weights do not fit \(all of it: .*server\.log\)"):
        server.start()
    assert server.pid is None


def test_a_server_that_cannot_come_back_is_given_up(small_server: Callable[..., ModelServer], tmp_path: Path) -> None:
    with small_server() as server:
        (tmp_path / "site" / "vllm" / "entrypoints" / "openai" / "crashes").touch()
        get(server, "/die")
        with pytest.raises(ServeError, match="the weights do not fit"):
            server.wait()


def test_a_silent_server_is_given_up_in_time(small_server: Callable[..., ModelServer]) -> None:
    with pytest.raises(ServeError, match=r"did not answer within 0\.01 s"):
        small_server(startup_s=0.01).start()


def test_a_port_in_use_is_refused(small_server: Callable[..., ModelServer]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServeError, match=f"port {port} on 127.0.0.1 cannot be used .*another --port"):
            small_server(port=port).start()


def test_an_address_of_another_machine_is_refused(small_server: Callable[..., ModelServer]) -> None:
    with pytest.raises(ServeError, match=r"cannot listen on 192.0.2.1 \(Cannot assign requested address\)"):
        small_server(host="192.0.2.1").start()


def test_a_log_that_cannot_be_written_is_refused(micro_model: Path, tmp_path: Path) -> None:
    server = ModelServer(micro_model, ServeConfig(backend="transformers"), log=tmp_path)
    with pytest.raises(ServeError, match=f"the log {tmp_path} cannot be written: Is a directory"):
        server.start()


def test_closing_stops_the_server_and_may_be_done_twice(small_server: Callable[..., ModelServer]) -> None:
    server = small_server()
    server.start()
    pid = int(get(server))
    server.close()
    server.close()
    assert gone(pid)
    assert get(server) == ""


def test_killing_whoever_started_it_stops_the_server(small_server: Callable[..., ModelServer], tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from gumshoe.eval.serve import ModelServer; from gumshoe.eval.config import ServeConfig\n"
        "server = ModelServer(Path(sys.argv[1]), ServeConfig(backend='vllm', python=sys.argv[2]))\n"
        "server.start(); print(server.base_url, flush=True); time.sleep(600)"
    )
    shape = small_server()
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(shape.folder), str(shape.config.python)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    shape.base_url = parent.stdout.readline().strip()
    pid = int(get(shape))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert until(lambda: gone(pid))


def run_guardian(*argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-I", str(GUARDIAN), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_the_guardian_passes_the_exit_code_on() -> None:
    for code, expected in (("raise SystemExit(5)", 5), ("import os; os.kill(os.getpid(), 9)", 137)):
        with run_guardian(sys.executable, "-c", code) as guardian:
            assert guardian.wait(timeout=120) == expected
    with run_guardian("/nowhere/program") as guardian:
        assert guardian.wait(timeout=120) == 127


@pytest.mark.parametrize("how", ["pipe", "signal"])
def test_the_guardian_takes_children_down_too(how: str) -> None:
    code = (
        "import subprocess, sys, time\n"
        "deaf = 'import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'\n"
        "child = subprocess.Popen([sys.executable, '-c', deaf], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(600)"
    )
    with run_guardian(sys.executable, "-c", code) as guardian:
        assert guardian.stdout is not None
        assert guardian.stdin is not None
        child = int(guardian.stdout.readline())
        if how == "pipe":
            guardian.stdin.close()
        else:
            os.kill(guardian.pid, signal.SIGTERM)
        guardian.wait(timeout=120)
    assert until(lambda: gone(child))


# --- the command --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["/nowhere"], "there is no model folder /nowhere"),
        (["/nowhere", "--port", "http"], "port: "),
        (["/nowhere", "-p", "prot=1"], "unknown key 'prot'; did you mean 'port'?"),
        (["/nowhere", "--backend", "sglang"], "backend: "),
    ],
)
def test_the_command_refuses_wrong_input_in_one_line(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *argv]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_command_serves_until_it_is_told_to_stop(
    small_server: Callable[..., ModelServer], micro_model: Path, tmp_path: Path
) -> None:
    shape = small_server()
    argv = [sys.executable, "-m", "gumshoe", "serve", str(micro_model), "--port", "0", "--backend", "vllm"]
    argv += ["--python", str(shape.config.python), "--log", str(tmp_path / "log")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        lines = [command.stdout.readline() for _ in range(5)]
        assert "-m vllm.entrypoints.openai.api_server" in lines[0]
        shape.base_url = lines[2].split()[-1]
        pid = int(get(shape))
        os.kill(command.pid, signal.SIGTERM)
        assert command.wait(timeout=120) == 0
    assert gone(pid)


def test_a_client_of_the_sdk_needs_nothing_of_ours(served: ModelServer) -> None:
    client = openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0)
    answer = client.chat.completions.create(
        model=served.model, messages=[{"role": "user", "content": "good"}], tools=TOOLS, temperature=0, max_tokens=90
    )
    assert "<tool_call>" in (answer.choices[0].message.content or "")
    client.close()
