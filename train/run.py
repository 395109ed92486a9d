"""One training run, whatever its method: its folder, going on from a checkpoint, and the model folder at its end.

The model folder can be loaded directly by transformers, vLLM and `gumshoe serve`.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import yaml

from gumshoe import __version__
from gumshoe.config import config_hash, dump_config, load_config
from gumshoe.errors import ConfigError
from gumshoe.storage import new_folder, read_jsonl, write_atomic
from gumshoe.train.config import CHECKPOINTS, TrainerConfig
from gumshoe.train.model import in_bf16, local_model, merge_adapters

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = [
    "RENDERED_AS_TRAINED",
    "Outcome",
    "Picture",
    "TrainResult",
    "TrainingFolder",
    "fit",
    "is_sharded",
    "last_logged",
    "render_card",
    "save_model",
    "torch_threads",
]

RENDERED_AS_TRAINED = "The chat template in this folder renders a conversation as it was trained."

_FREE = {"threads", "log_every", "keep", "report_to", "device"}
"""Fields that may change between a run and its continuation: they do not change what is learned."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a run. Anything that was not measured is None; each method adds measures of its own."""

    parameters: int
    steps: int
    seconds: float


OutcomeT = TypeVar("OutcomeT", bound=Outcome)


@dataclass(frozen=True)
class TrainResult(Generic[OutcomeT]):
    """Where the model is and the outcome of the run; `outcome` is None if an earlier start had finished it.

    `summary` is the outcome in a few lines of text.
    """

    model: Path
    log: Path
    outcome: OutcomeT | None
    summary: Sequence[str] = ()


class TrainingFolder:
    """Opens the folder of a run: a new one, or the one left by an earlier start of the same config.

    config.yaml   the whole config          log.jsonl    losses, one entry a line
    checkpoints/  to go on from             loss.svg, loss.png (reward.svg, reward.png)
    rows/         what trains, as tokens; gone when training is done
    adapters/     where adapters were trained, before they are merged
    model/        the result; it is there when training is done

    Raises:
        ConfigError: the folder holds something else, or a run of another config.
    """

    def __init__(self, config: TrainerConfig) -> None:
        self.path = Path(config.out)
        self.config_file = self.path / "config.yaml"
        self.log = self.path / "log.jsonl"
        self.checkpoints = self.path / CHECKPOINTS
        self.rows = self.path / "rows"
        self.adapters = self.path / "adapters"
        self.model = self.path / "model"
        self._claim(config)

    @property
    def done(self) -> bool:
        """Whether the model is there."""
        return self.model.is_dir()

    def newest_checkpoint(self) -> Path | None:
        """The checkpoint to go on from; None where there is none."""
        checkpoints = [
            path for path in self.checkpoints.glob("checkpoint-*") if (path / "trainer_state.json").is_file()
        ]
        return max(checkpoints, key=lambda path: int(path.name.rpartition("-")[2]), default=None)

    def _claim(self, config: TrainerConfig) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"out: {self.path} is a file: choose another folder")
        if self.config_file.is_file():
            self._compare(config)
        elif self.path.is_dir() and any(self.path.iterdir()):
            raise ConfigError(f"out: {self.path} is not a training run: choose another folder")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_atomic(self.config_file, dump_config(config))
        except OSError as error:
            raise ConfigError(f"out: {self.path} cannot be written: {error.strerror or error}") from None

    def _compare(self, config: TrainerConfig) -> None:
        try:
            earlier = load_config(type(config), self.config_file)
        except ConfigError:
            raise ConfigError(f"out: {self.path} contains a different kind of run: choose another folder") from None
        changed = sorted(
            name
            for name in type(config).model_fields
            if name not in _FREE and getattr(earlier, name) != getattr(config, name)
        )
        # Nothing is learned before the first checkpoint: until then the config may change.
        if changed and (self.done or self.newest_checkpoint()):
            raise ConfigError(
                f"out: {self.path} contains a run with another config ({', '.join(changed)} differ): "
                "choose another folder, or delete that one"
            )


class Picture(NamedTuple):
    """Measures of the log that are drawn to the run folder, as NAME.svg and NAME.png.

    Attributes:
        name: of the files.
        label: of the vertical axis.
        curves: the measures: (key in the log, title, style as matplotlib has it).
    """

    name: str
    label: str
    curves: Sequence[tuple[str, str, str]]


def fit(trainer: Any, folder: TrainingFolder, resume: Path | None) -> float:
    """Trains from a checkpoint (`resume`, else the newest, if any) to the end; returns how many seconds that took."""
    from transformers import PrinterCallback

    from gumshoe.train.trainer import LossLog, ProgressBar

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(LossLog(folder.log))
    trainer.add_callback(ProgressBar())
    began = time.monotonic()
    checkpoint = resume or folder.newest_checkpoint()
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return time.monotonic() - began


def last_logged(trainer: Any, name: str) -> float | None:
    """The newest value of a measure in the trainer's log; None if it was never logged."""
    return next((entry[name] for entry in reversed(trainer.state.log_history) if name in entry), None)


def save_model(
    config: TrainerConfig,
    folder: TrainingFolder,
    trainer: Any,
    tokenizer: PreTrainedTokenizerBase,
    card: str,
    picture: Picture,
    *,
    has_adapters: bool = False,
) -> None:
    """Writes the result; model/ appears when it is whole. Every process has to call this, one of them writes.

    Args:
        config: of the run.
        folder: of the run.
        trainer: has trained the model.
        tokenizer: of the model, with the template that is served.
        card: the text of README.md.
        picture: is drawn to the run folder.
        has_adapters: the model has adapters, which are written apart and merged into the weights.
    """
    state = trainer.accelerator.get_state_dict(trainer.model) if is_sharded(trainer) else None
    if not trainer.is_world_process_zero():
        return
    _draw(folder, picture)
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    with new_folder(folder.model) as fresh:
        if has_adapters:
            model.save_pretrained(str(folder.adapters), **({} if state is None else {"state_dict": state}))
            model, state = merge_adapters(local_model(config.model), folder.adapters, config), None
        _write_model(model, tokenizer, fresh, state=state, bf16=in_bf16(config))
        (fresh / "README.md").write_text(card, encoding="utf-8")


def _write_model(
    model: Any, tokenizer: PreTrainedTokenizerBase, folder: Path, *, state: dict[str, Any] | None = None, bf16: bool
) -> None:
    """Writes weights, tokenizer, template and generation config.

    Args:
        model: the model, adapters merged.
        tokenizer: its tokenizer, with the template that is served.
        folder: an existing folder.
        state: the weights, where the model itself holds only a part of them.
        bf16: store the weights in bfloat16, as they were computed with.
    """
    import torch

    if bf16:
        model.to(torch.bfloat16)
        state = None if state is None else {name: value.to(torch.bfloat16) for name, value in state.items()}
    _end_turns(model, tokenizer)
    model.save_pretrained(str(folder), **({} if state is None else {"state_dict": state}))
    model.generation_config.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def is_sharded(trainer: Any) -> bool:
    """Whether each process holds only a part of the weights (FSDP, ZeRO-3)."""
    from accelerate.utils import DistributedType

    return trainer.accelerator.distributed_type in {DistributedType.FSDP, DistributedType.DEEPSPEED}


def _end_turns(model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    """Makes generation stop at the token that ends a turn, in addition to where it stopped before."""
    known = model.generation_config.eos_token_id
    ends: list[int] = [] if known is None else list(known) if isinstance(known, list) else [known]
    if tokenizer.eos_token_id not in ends:
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, *ends]
    if model.generation_config.pad_token_id is None:
        model.generation_config.pad_token_id = tokenizer.pad_token_id


def render_card(
    config: TrainerConfig,
    method: str,
    title: str,
    paragraphs: Iterable[str],
    facts: Iterable[tuple[str, int | float | None]],
    outcome: Outcome,
) -> str:
    """The model card, with its YAML header: what the model was made from and how, so that anyone can repeat it."""
    header = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["gumshoe", "seeker", method, "trl"],
        "base_model": config.model,
    }
    rows = [
        ("config hash", f"`{config_hash(config)}`"),
        ("parameters", f"{outcome.parameters:,}"),
        ("optimizer steps", f"{outcome.steps:,}"),
        *((name, _figure(value)) for name, value in facts),
        ("seconds", f"{outcome.seconds:.0f}"),
    ]
    return "\n".join(
        [
            f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n",
            f"# {title}\n",
            *(f"{paragraph}\n" for paragraph in paragraphs),
            "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows) + "\n",
            f"Made with gumshoe {__version__} from this config:\n",
            f"```yaml\n{dump_config(config)}```\n",
        ]
    )


def _figure(value: float | None) -> str:
    if value is None:
        return "not measured"
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _draw(folder: TrainingFolder, picture: Picture) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    entries = [entry for _, entry in read_jsonl(folder.log)]
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for key, title, style in picture.curves:
        points = [(entry["step"], entry[key]) for entry in entries if key in entry]
        if points:
            axes.plot(*zip(*points, strict=True), style, label=title, markersize=4)
    axes.set_xlabel("step")
    axes.set_ylabel(picture.label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False)
    for ending in ("svg", "png"):
        figure.savefig(folder.path / f"{picture.name}.{ending}", dpi=150)


@contextmanager
def torch_threads(count: int | None) -> Generator[None]:
    """Uses `count` threads inside the block; None: as many as there were."""
    import torch

    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
