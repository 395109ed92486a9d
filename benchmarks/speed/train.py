"""Tokens per second of `gumshoe train` and of a bare TRL script, on the same rows and the same model, in one run.

    python -m benchmarks.speed.train MODEL [--rows 256] [--lines 40] [--repeat 3] [--bf16]

Each is run in a process of its own, in turn, `--repeat` times; the best of each counts, since whatever else the machine
does only ever makes a run slower. Both compute in the same precision: float32, or with `--bf16` bfloat16, which TRL
takes by default.

MODEL is a model folder whose template supports tools: `gumshoe unpack FILE.gguf --chat-template hermes --out MODEL`.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

BARE = """
import json, sys
import datasets, trl
from transformers import AutoModelForCausalLM, AutoTokenizer
data, start, out, precision, count = sys.argv[1:]
# In the common cache, rows of another folder of the same name would be taken for these.
rows = datasets.load_dataset(data, "seeker", split="train", cache_dir=f"{out}-cache")
rows = rows.select_columns(["messages", "tools"])
model, tokenizer = AutoModelForCausalLM.from_pretrained(start), AutoTokenizer.from_pretrained(start)
settings = dict(per_device_train_batch_size=4, learning_rate=1e-3, num_train_epochs=1, use_cpu=True, report_to=[],
                max_length=8192, save_strategy="epoch", activation_checkpointing=False, disable_tqdm=True,
                dataloader_pin_memory=False, bf16=precision == "bf16")
arguments = trl.SFTConfig(out, assistant_only_loss=True, **settings)
trainer = trl.SFTTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer)
assert len(trainer.train_dataset) == int(count), len(trainer.train_dataset)
print("\\n" + json.dumps(trainer.train().metrics["train_runtime"]))
"""


def main() -> None:
    """Measures, prints a table, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL", help="model folder to start from")
    parser.add_argument("--rows", type=int, default=256, help="conversations (256)")
    parser.add_argument("--lines", type=int, default=40, help="lines of code that a conversation shows (40)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each (3)")
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16, not in float32")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(
            Path(folder), arguments.model, arguments.rows, arguments.lines, arguments.repeat, arguments.bf16
        )
    for name, value in figures.items():
        print(f"{name:<32}{value:>12,.3f}" if value < 10 else f"{name:<32}{value:>12,.0f}")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def measure(folder: Path, start: Path, rows: int, lines: int, repeat: int, bf16: bool) -> dict[str, float]:
    """The figures by name."""
    from gumshoe.train.model import load_tokenizer, training_template
    from gumshoe.train.rows.dataset import load_rows
    from gumshoe.train.rows.prepare import prepare
    from gumshoe.train.rows.render import Renderer
    from gumshoe.train.rows.samples import Sampling

    data = folder / "data"
    write_dataset(data, rows, lines)
    source = load_rows(data, "seeker", "train")
    tokenizer = load_tokenizer(str(start), None)
    renderer = Renderer(tokenizer, training_template(tokenizer))
    _, report = prepare(source, renderer, Sampling(8192), folder / "rows.arrow")
    tokens = sum(row.tokens for row in report.rows)
    bare: list[float] = []
    ours: list[float] = []
    for number in range(repeat):
        bare.append(run_bare(data, start, folder / f"bare{number}", bf16, rows))
        ours.append(run_ours(data, start, folder / f"ours{number}", bf16))
    return {
        "rows": rows,
        "tokens": tokens,
        "bare TRL, tokens a second": tokens / min(bare),
        "gumshoe, tokens a second": tokens / min(ours),
        "gumshoe over bare": min(bare) / min(ours),
    }


def run_bare(data: Path, start: Path, out: Path, bf16: bool, rows: int) -> float:
    """Seconds of training with the bare script."""
    command = [sys.executable, "-c", BARE, str(data), str(start), str(out)]
    command += ["bf16" if bf16 else "float32", str(rows)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(output.splitlines()[-1])


def run_ours(data: Path, start: Path, out: Path, bf16: bool) -> float:
    """Seconds of training with `gumshoe train`."""
    config = {"out": str(out), "dataset": str(data), "model": str(start), "batch": 4, "learning_rate": 1e-3}
    path = out.with_suffix(".yaml")
    path.write_text(json.dumps({**config, "device": "cpu", "warmup": 0, "bf16": bf16}), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "gumshoe", "train", str(path)], capture_output=True, check=True)
    log = (out / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return float(json.loads(log[-1])["train_runtime"])


def write_dataset(folder: Path, rows: int, lines: int) -> None:
    """Conversations of one look at some code and a report, in the exported form."""
    import datasets

    rng = random.Random(0)
    features = datasets.Features({"messages": datasets.List(datasets.Json()), "tools": datasets.List(datasets.Json())})
    table = {"messages": [conversation(rng, lines) for _ in range(rows)], "tools": [[] for _ in range(rows)]}
    (folder / "seeker").mkdir(parents=True)
    datasets.Dataset.from_dict(table, features).to_parquet(str(folder / "seeker" / "train-00000.parquet"))
    card = (
        "---\nconfigs:\n- config_name: seeker\n  data_files:\n  - {split: train, path: seeker/train-*.parquet}\n---\n"
    )
    (folder / "README.md").write_text(card, encoding="utf-8")


def conversation(rng: random.Random, lines: int) -> list[dict[str, Any]]:
    """A request, a look at `lines` lines of code, a report."""
    path, first = f"shop/part{rng.randrange(40)}.py", rng.randrange(1, 200)
    code = "\n".join(f"{first + line} total_{rng.randrange(99)} = price * {rng.randrange(9)}" for line in range(lines))
    look = {"name": "view", "arguments": {"path": path, "start": first}}
    hand_over = {"name": "report", "arguments": {"path": path, "start": first, "end": first + rng.randrange(lines)}}
    return [
        {"role": "user", "content": f"{path} is wrong."},
        {
            "role": "assistant",
            "content": "[seek 0.5] I read it.",
            "tool_calls": [{"type": "function", "function": look}],
        },
        {"role": "tool", "content": code},
        {
            "role": "assistant",
            "content": "[report 0.9] Here.",
            "tool_calls": [{"type": "function", "function": hand_over}],
        },
    ]


if __name__ == "__main__":
    main()
