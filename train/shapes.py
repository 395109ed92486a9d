"""The sizes of the models that the recipes are for, as their config.json states them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gumshoe.errors import ConfigError
from gumshoe.model_files import read_object

__all__ = ["SHAPES", "Shape", "read_shape"]


@dataclass(frozen=True)
class Shape:
    """A decoder of the Qwen kind. `experts` and `active_experts` are 1 where each layer is dense.

    `intermediate` is the width of a feed-forward layer, or of one expert.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    experts: int = 1
    active_experts: int = 1
    query_bias: bool = False

    @property
    def active_intermediate(self) -> int:
        """Width of a layer's feed-forward part that one token goes through."""
        return self.intermediate * self.active_experts

    @property
    def parameters(self) -> int:
        """The number of all parameters, norms and biases included."""
        return self._count(self.experts) + self._embeddings

    @property
    def active_parameters(self) -> int:
        """Those that a token is multiplied with: the active experts and the output layer, but not the look-up."""
        return self._count(self.active_experts) + self.vocab * self.hidden

    @property
    def _embeddings(self) -> int:
        return self.vocab * self.hidden * (1 if self.tied else 2)

    def _count(self, experts: int) -> int:
        dense = sum(rows * columns for rows, columns in self._attention())
        dense += 2 * self.hidden + (2 * self.head_dim if not self.query_bias else 0)
        dense += (self.heads + 2 * self.kv_heads) * self.head_dim if self.query_bias else 0
        router = self.hidden * self.experts if self.experts > 1 else 0
        forward = 3 * self.hidden * self.intermediate * experts
        return self.layers * (dense + router + forward) + self.hidden

    def linear_layers(self) -> Iterator[tuple[str, int, int]]:
        """Name, rows and columns of every linear layer but the output's."""
        for _ in range(self.layers):
            yield from zip(("q_proj", "k_proj", "v_proj", "o_proj"), *zip(*self._attention(), strict=True), strict=True)
            for _ in range(self.experts):
                yield "gate_proj", self.hidden, self.intermediate
                yield "up_proj", self.hidden, self.intermediate
                yield "down_proj", self.intermediate, self.hidden

    def _attention(self) -> tuple[tuple[int, int], ...]:
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return ((self.hidden, queries), (self.hidden, keys), (self.hidden, keys), (queries, self.hidden))


SHAPES = {
    "Qwen/Qwen3-0.6B": Shape(28, 1024, 3072, 16, 8, 128, 151936, tied=True),
    "Qwen/Qwen3-1.7B": Shape(28, 2048, 6144, 16, 8, 128, 151936, tied=True),
    "Qwen/Qwen3-4B": Shape(36, 2560, 9728, 32, 8, 128, 151936, tied=True),
    "Qwen/Qwen3-30B-A3B": Shape(48, 2048, 768, 32, 4, 128, 151936, tied=False, experts=128, active_experts=8),
    "Qwen/Qwen2.5-Coder-7B-Instruct": Shape(28, 3584, 18944, 28, 4, 128, 152064, tied=False, query_bias=True),
}


def read_shape(file: Path) -> Shape:
    """The sizes in a model's config.json. Raises ConfigError where it is damaged or of another kind."""
    data = read_object(file, error=ConfigError)
    try:
        hidden, heads = int(data["hidden_size"]), int(data["num_attention_heads"])
        experts = int(data.get("num_experts") or 1)
        return Shape(
            layers=int(data["num_hidden_layers"]),
            hidden=hidden,
            intermediate=int(data["moe_intermediate_size"] if experts > 1 else data["intermediate_size"]),
            heads=heads,
            kv_heads=int(data.get("num_key_value_heads") or heads),
            head_dim=int(data.get("head_dim") or hidden // heads),
            vocab=int(data["vocab_size"]),
            tied=bool(data.get("tie_word_embeddings", False)),
            experts=experts,
            active_experts=int(data.get("num_experts_per_tok") or 1) if experts > 1 else 1,
            query_bias=data.get("model_type") == "qwen2",
        )
    except KeyError as error:
        raise ConfigError(f"{file} does not contain the model's sizes: it has no {error.args[0]}") from None
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"{file} does not contain the model's sizes: {error}") from None
