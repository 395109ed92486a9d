"""Tokens per second of a served model on the turns of recorded episodes, with and without a prefix cache.

    python benchmarks/bench_serve.py MODEL RUN [--episodes 4] [--workers 2] [--dtype bfloat16] [--max-tokens 320]
        [--vllm PYTHON] [--only WAY] [--max-length 8192]

MODEL is a model folder whose chat template supports tools, RUN a run folder, whose episodes are replayed turn by turn:
every prompt is the recorded one, every answer the model's own. `transformers serve` is measured as it is and with
`prefix_cache: true`; vLLM if the interpreter of its environment is given.
CPU seconds are those of the server and hold on a shared machine; wall time does not. Loading is left out.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import psutil

from gumshoe.collect.policies.openai import OpenAIPolicy
from gumshoe.collect.policy_config import OpenAIConfig
from gumshoe.collect.store import read_trajectories
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.records import Trajectory, Usage


def main() -> None:
    """Measures each way and prints a line of JSON for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL", help="model folder")
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder of episodes")
    parser.add_argument("--episodes", type=int, default=4, help="episodes that are asked again (4)")
    parser.add_argument("--workers", type=int, default=2, help="episodes at the same time (2)")
    parser.add_argument("--dtype", default="bfloat16", help="type of the weights (bfloat16)")
    parser.add_argument("--max-tokens", type=int, default=320, help="tokens of an answer (320)")
    parser.add_argument("--vllm", metavar="PYTHON", help="interpreter of an environment with vLLM")
    parser.add_argument("--only", metavar="WAY", help="such as vllm (all)")
    parser.add_argument("--max-length", type=int, default=8192, help="tokens of a conversation (8192)")
    arguments = parser.parse_args()
    episodes = list(islice(read_trajectories(arguments.run), arguments.episodes))
    common = {"device": "cpu", "dtype": arguments.dtype, "max_length": arguments.max_length}
    ways = {
        "transformers": ServeConfig.model_validate({**common, "backend": "transformers"}),
        "transformers, prefix cache": ServeConfig.model_validate(
            {**common, "backend": "transformers", "prefix_cache": True}
        ),
    }
    if arguments.vllm:
        ways["vllm"] = ServeConfig.model_validate({**common, "backend": "vllm", "python": arguments.vllm})
    if arguments.only not in {None, *ways}:
        parser.error(f"--only must be one of: {'; '.join(ways)} (vllm needs --vllm)")
    for name, config in ways.items():
        if arguments.only not in {None, name}:
            continue
        figures = measure(arguments.model, config, episodes, arguments.workers, arguments.max_tokens)
        print(json.dumps({"way": name, **figures}), flush=True)


def measure(
    model: Path, config: ServeConfig, episodes: list[Trajectory], workers: int, max_tokens: int
) -> dict[str, float]:
    """Tokens, wall seconds and the server's CPU seconds for all turns of the episodes."""
    with ModelServer(model, config) as server, ThreadPoolExecutor(workers) as pool:
        asked = OpenAIConfig(
            model=server.model,
            base_url=server.base_url,
            syntax="template",
            temperature=0.0,
            max_tokens_name="max_tokens",
            max_tokens=max_tokens,
            timeout_s=1800,
        )
        assert server.pid is not None
        ask_again(asked, episodes[:1], turns=1)  # On the first request, everything is cold.
        spent, began = processor_seconds(server.pid), time.monotonic()
        usage = sum(pool.map(lambda episode: ask_again(asked, [episode]), episodes), Usage())
        wall, spent = time.monotonic() - began, processor_seconds(server.pid) - spent
    tokens = usage.prompt_tokens + usage.completion_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "wall_s": round(wall, 1),
        "processor_s": round(spent, 1),
        "tokens_a_second": round(tokens / wall, 1),
        "tokens_a_processor_second": round(tokens / spent, 1),
    }


def ask_again(config: OpenAIConfig, episodes: list[Trajectory], turns: int | None = None) -> Usage:
    """Requests each turn of the episodes, in order. Returns the usage."""
    usage = Usage()
    for episode in episodes:
        policy = OpenAIPolicy(config)
        places = [at for at, message in enumerate(episode.messages) if message.role == "assistant"]
        for place in places[:turns]:
            usage += policy.complete(episode.messages[:place], episode.tools).usage
        policy.close()
    return usage


def processor_seconds(pid: int) -> float:
    """CPU seconds of a process and of everything it started that is still running."""
    process = psutil.Process(pid)
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


if __name__ == "__main__":
    main()
