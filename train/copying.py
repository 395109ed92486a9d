"""Starting weights that can copy: an induction circuit, laid down by hand.

A report quotes file names, line numbers and values that stand earlier in the conversation, so what a small model needs
first is to copy. Trained from noise, copying appears only after many thousands of steps. Here it is there from the
start: where the last few tokens stood before, what followed them then is what comes next. Training only has to learn
when to copy, and from where. Nothing about debugging is put in.

The residual stream is cut into orthogonal parts: `now` (the token itself), one part a token of context for the token
1, 2, ... back, and `next` (what the output reads), plus one constant direction.

- Layer 0, a head a token of context: attends from each token to the one `d` back. The rotary position code does that
  alone: the constant direction is turned by `d` steps in the fast rotating dimensions of the key.
- Layer 1, the first `COPY_HEADS` heads: compare the tokens up to here with the tokens in front of each earlier
  token, in the slowly rotating dimensions, where distance does not count; write the token found there to `next`.

- All other heads behind layer 0 carry the token they attend to over to `next`, softly. Where they attend is random:
  training has to find out where to look, and not also how to hand on what is seen.

Everything else stays random, as the architecture makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from transformers import PreTrainedModel, Qwen3ForCausalLM

__all__ = ["COPY_HEADS", "freeze_copying", "lay_copying"]

COPY_HEADS = 2
"""Heads of layer 1 that copy: one matches all the context, one the last token only."""

_EMBEDDING = 0.06  # scale of the embeddings, against 0.02 of the architecture: logits can be sure from the start
_NOISE = 0.1  # what is left of the random embeddings
_QUIET = 0.3  # factor on the random outputs of layers, so that they do not drown the circuit
_LOOK_BACK = 4.5  # weight of the query and key norms of layer 0
_MATCH = 2.5  # and of layer 1
_GAIN = 2.0  # how loud the copied token is, against the others in the residual stream
_POINTER_GAIN = 0.5  # and one that is only pointed at
_FAST, _SLOW = 0.05, 3e-4  # radians a token: dimensions that tell neighbours apart, and those blind to distance


def lay_copying(model: Qwen3ForCausalLM, *, context: int, seed: int) -> None:
    """Changes the weights of a fresh model so that it copies.

    Args:
        model: at least 2 layers, `context` heads, and untied input and output embeddings.
        context: tokens that must agree.
        seed: of the random parts.
    """
    import torch

    with torch.no_grad():
        circuit = _Circuit(model, context, torch.Generator().manual_seed(seed))
        circuit.embed()
        circuit.quieten()
        for back in range(1, context + 1):
            circuit.look_back(back)
        circuit.copy(head=0, context=context)
        for head in range(1, COPY_HEADS):
            circuit.copy(head=head, context=1)
        circuit.point()


def freeze_copying(model: PreTrainedModel) -> None:
    """Keeps what copying stands on from being trained: the embeddings, the output layer and the first layer.

    Few rows over few projects teach a model their names before they teach it anything else, and with that they undo
    copying for names that it has not seen.
    """
    for name, parameter in model.named_parameters():
        if any(part in name for part in ("embed_tokens.", "lm_head.", ".layers.0.")):
            parameter.requires_grad = False


class _Circuit:
    def __init__(self, model: Qwen3ForCausalLM, context: int, generator: Generator) -> None:
        import torch

        config: Any = model.config
        # torch types what modules hold as tensors or modules, whichever it is.
        self.layers: Any = model.model.layers
        self.embeddings: Any = model.get_input_embeddings().weight
        self.output: Any = model.lm_head.weight
        self.context = context
        self.generator = generator
        self.hidden = config.hidden_size
        self.heads = config.num_attention_heads
        self.head_dim = config.head_dim
        self.width = min((self.hidden - 1) // (context + 2), self.head_dim)
        basis, _ = torch.linalg.qr(torch.randn(self.hidden, self.hidden, generator=generator))
        parts = [basis[index * self.width : (index + 1) * self.width] for index in range(context + 2)]
        self.now, self.earlier, self.next = parts[0], parts[1:-1], parts[-1]
        self.constant = basis[-1]
        half = self.head_dim // 2
        self.angles: Tensor = float(config.rope_parameters["rope_theta"]) ** (-torch.arange(half) / half)
        self.loudness = _EMBEDDING * self.hidden**0.5

    def embed(self) -> None:
        """A random direction of `now` for each token, plus the constant one; the output reads the same of `next`."""
        import torch

        tokens = torch.randn(len(self.embeddings), self.width, generator=self.generator)
        tokens /= tokens.norm(dim=1, keepdim=True)
        self.embeddings.mul_(_NOISE).add_((tokens @ self.now + self.constant) * self.loudness)
        self.output.mul_(_NOISE).add_(tokens @ self.next * self.loudness)

    def quieten(self) -> None:
        for layer in self.layers:
            layer.self_attn.o_proj.weight.mul_(_QUIET)
            layer.mlp.down_proj.weight.mul_(_QUIET)

    def look_back(self, back: int) -> None:
        """Head `back - 1` of layer 0 brings the token `back` places earlier to its part of the residual stream."""
        import torch

        fast = (self.angles > _FAST).nonzero().flatten()
        query, key = torch.zeros(self.head_dim), torch.zeros(self.head_dim)
        query[fast] = 1.0
        key[fast] = torch.cos(back * self.angles[fast])
        key[fast + self.head_dim // 2] = torch.sin(back * self.angles[fast])
        self._norms(0, _LOOK_BACK)
        read = self.hidden**0.5 / 2**0.5  # length of `now` behind the layer norm: half of the energy is the constant
        self._head(
            layer=0,
            head=back - 1,
            query=query[:, None] * self.constant,
            key=key[:, None] * self.constant,
            target=self.earlier[back - 1] * (self.loudness / read),
        )

    def copy(self, *, head: int, context: int) -> None:
        """A head of layer 1 that finds where the last `context` tokens stood before and writes what came then."""
        import torch

        slow = (self.angles < _SLOW).nonzero().flatten()
        slow = torch.cat([slow, slow + self.head_dim // 2])
        query, key = torch.zeros(self.head_dim, self.hidden), torch.zeros(self.head_dim, self.hidden)
        sources = [self.now, *self.earlier]
        for back in range(context):
            dims = slow[back::context]
            mix = torch.randn(self.width, self.width, generator=self.generator)
            sketch = torch.linalg.qr(mix)[0][: len(dims)]
            query[dims[: len(sketch)]] = sketch @ sources[back]
            key[dims[: len(sketch)]] = sketch @ sources[back + 1]
        self._norms(1, _MATCH)
        read = self.hidden**0.5 / (2 + self.context) ** 0.5
        self._head(layer=1, head=head, query=query, key=key, target=self.next * (_GAIN * self.loudness / read))

    def point(self) -> None:
        """All heads that are left hand on what they attend to."""
        read = self.hidden**0.5 / (2 + self.context) ** 0.5
        for number, layer in enumerate(self.layers[1:], start=1):
            for head in range(COPY_HEADS if number == 1 else 0, self.heads):
                rows = slice(head * self.head_dim, (head + 1) * self.head_dim)
                target = self.next * (_POINTER_GAIN * self.loudness / read)
                self._carry(layer.self_attn, rows, target)

    def _norms(self, layer: int, weight: float) -> None:
        attention = self.layers[layer].self_attn
        attention.q_norm.weight.fill_(weight)
        attention.k_norm.weight.fill_(weight)

    def _head(self, *, layer: int, head: int, query: Tensor, key: Tensor, target: Tensor) -> None:
        """Sets one head: it reads `now` where it attends and writes it to the rows of `target`."""
        attention = self.layers[layer].self_attn
        rows = slice(head * self.head_dim, (head + 1) * self.head_dim)
        attention.q_proj.weight[rows] = query
        attention.k_proj.weight[rows] = key
        self._carry(attention, rows, target)

    def _carry(self, attention: Any, rows: slice, target: Tensor) -> None:
        """Makes the head at `rows` read `now` where it attends and write it to the rows of `target`."""
        attention.v_proj.weight[rows] = 0.0
        attention.v_proj.weight[rows][: self.width] = self.now
        attention.o_proj.weight[:, rows] = 0.0
        attention.o_proj.weight[:, rows][:, : self.width] = target.T
