"""Decoder-only transformer: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

Tensors are [batch, sequence, ...] outside attention and [batch, heads, sequence, head] inside it. The constructor allocates nothing that
matters, so a model can be built on the meta device and filled by `init_weights` once it has been placed.
"""

from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from training.config import ModelConfig
from training.context_parallel import Context, lower_triangle
from training.flops import flops_per_token
from training.moe import MixtureOfExperts
from training.weights import fill_constant, fill_normal, whole_shape

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_INIT_STD = 0.02
_INTO_RESIDUAL = ("attention.out.weight", "feed_forward.down.weight", "experts.down")
_BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}


Routed = tuple[Tensor, Tensor]
"""What a model with experts gives, and what its pipeline stages hand on, in the form that pipelines know.

First the logits [batch, sequence, vocab] of the whole model, or the residual stream [batch, sequence, dim] between stages. Then the
load-balancing loss of each sample, weighted and summed over blocks, [batch].
"""


class Rotation(NamedTuple):
    """What attention knows of positions."""

    cosine: Tensor
    """Of each position's angles in fp32: [sequence, head / 2], or [batch, 1, sequence, head / 2] where samples differ."""
    sine: Tensor
    """The same."""
    mask: Tensor | None = None
    """Which positions each one sees, [batch, 1, sequence, sequence]; nothing means itself and all before it."""


class Transformer(nn.Module):
    """Token ids [batch, sequence] to logits [batch, sequence, vocab], in fp32; as `Routed`, if the model has experts."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.context: Context | None = None
        """This rank's part of the sequence, where ranks divide it."""
        self.embedding: Embedding | None = Embedding(config.vocab_size, config.dim)
        # By name and not by place, so that a pipeline stage that holds some of them calls them as the whole model does.
        self.blocks = nn.ModuleDict({str(layer): Block(config) for layer in range(config.num_layers)})
        self.norm: nn.RMSNorm | None = nn.RMSNorm(config.dim, eps=config.norm_eps)
        self.head: Linear | None = Linear(config.dim, config.vocab_size, bias=False)

    def forward(self, inputs: Tensor, balance: Tensor | None = None, *, length: int | None = None) -> Tensor | Routed:
        """Logits for the token after each position.

        A pipeline stage without embedding takes what the stage before it gave, and the length of the samples, of which a rank may hold a
        part; one without head gives what the next one takes.
        """
        # Computed here and not kept as a buffer: an engine that casts modules to bf16 would spoil the angles of late positions.
        length = length or inputs.shape[1]
        first = self.context.index * length if self.context else 0
        rotation = rotary(length, self.config.dim // self.config.num_heads, self.config.rope_theta, inputs.device, first=first)
        if self.config.document_end is not None:
            rotation = within_documents(rotation, inputs, self.config.document_end)
        state = self.embedding(inputs) if self.embedding is not None else inputs
        if self.config.num_experts is not None:
            state = (state, torch.zeros(len(inputs), device=inputs.device) if balance is None else balance)
        for block in self.blocks.values():
            state = block(state, rotation)
        if self.norm is None or self.head is None:
            return state
        hidden, *balances = state if isinstance(state, tuple) else (state,)
        logits = self.head(self.norm(hidden)).float()
        return (logits, *balances) if balances else logits

    def divide_sequences(self, context: Context) -> None:
        """Take a part of each sample's sequence from here on, and give the logits of that part."""
        self.context = context
        for block in self.blocks.values():
            block.attention.context = context

    @torch.no_grad()
    def init_weights(self, seed: int) -> None:
        """Fill every parameter from the seed and its own name, so that the values do not depend on the order, device, shards or ranks."""
        residual_std = _INIT_STD / (2 * self.config.num_layers) ** 0.5
        for name, parameter in self.named_parameters():
            if len(whole_shape(parameter)) == 1:
                fill_constant(parameter, 1.0)
                continue
            std = residual_std if name.endswith(_INTO_RESIDUAL) else _INIT_STD
            fill_normal(parameter, name, seed, std)


class TransformerArchitecture:
    """The transformer of this module, described to engines."""

    def __init__(self, config: ModelConfig, seed: int) -> None:
        self._config, self._seed = config, seed

    def build(self) -> Transformer:
        """See Architecture."""
        with torch.device("meta"):
            return Transformer(self._config)

    def blocks(self, model: nn.Module) -> list[nn.Module]:
        """See Architecture."""
        return [module for module in model.modules() if isinstance(module, Block)]

    def fill(self, model: nn.Module) -> None:
        """See Architecture."""
        assert isinstance(model, Transformer)
        model.init_weights(self._seed)

    def flops_per_token(self, length: int) -> int:
        """See Architecture."""
        return flops_per_token(self._config, length)

    def attention_kernel(self, length: int, dtype: torch.dtype, device: torch.device) -> str:
        """See Architecture."""
        return attention_choice(self._config, length, dtype, device)


class Embedding(nn.Embedding):
    """Left unfilled by its constructor: `init_weights` fills it. Filling on the meta device would import torch's compiler, for seconds."""

    def reset_parameters(self) -> None:
        """Nothing yet."""


class Linear(nn.Linear):
    """Left unfilled by its constructor, as Embedding is."""

    def reset_parameters(self) -> None:
        """Nothing yet."""


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and around a residual."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.dim, eps=config.norm_eps)
        self.attention = Attention(config)
        self.feed_forward_norm = nn.RMSNorm(config.dim, eps=config.norm_eps)
        self.feed_forward = FeedForward(config) if config.num_experts is None else MixtureOfExperts(config)
        self.dropout = config.dropout

    def forward(self, state: Tensor | Routed, rotation: Rotation) -> Tensor | Routed:
        """[batch, sequence, dim] to the same; with experts, this block's balance loss comes on top of the others'."""
        hidden, *balances = state if isinstance(state, tuple) else (state,)
        hidden = hidden + F.dropout(self.attention(self.attention_norm(hidden), rotation), self.dropout, self.training)
        fed = self.feed_forward(self.feed_forward_norm(hidden))
        if not balances:
            return hidden + F.dropout(fed, self.dropout, self.training)
        mixed, own = fed
        return hidden + F.dropout(mixed, self.dropout, self.training), balances[0] + own


class Attention(nn.Module):
    """Causal grouped-query attention through scaled_dot_product_attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads = config.num_heads, config.num_kv_heads
        self.head_dim = config.dim // config.num_heads
        self.dropout = config.dropout
        self.kernel = config.attention
        self.context: Context | None = None
        """This rank's part of the sequence, where ranks divide it."""
        self.query = Linear(config.dim, self.num_heads * self.head_dim, bias=False)
        self.key = Linear(config.dim, self.num_kv_heads * self.head_dim, bias=False)
        self.value = Linear(config.dim, self.num_kv_heads * self.head_dim, bias=False)
        self.out = Linear(self.num_heads * self.head_dim, config.dim, bias=False)

    def forward(self, hidden: Tensor, rotation: Rotation) -> Tensor:
        """[batch, sequence, dim] to the same; each position sees itself and the ones before it, in its document if there is a mask."""
        query = rotate(self._heads(self.query(hidden)), rotation)
        key = rotate(self._heads(self.key(hidden)), rotation)
        value = self._heads(self.value(hidden))
        if self.context:
            key, value = self.context.with_earlier(key), self.context.with_earlier(value)
        mask = lower_triangle(query.shape[2], key.shape[2], query.device) if rotation.mask is None else rotation.mask
        groups = self.num_heads // self.num_kv_heads
        with attention_kernel(self.kernel):
            mixed = F.scaled_dot_product_attention(
                query,
                key.repeat_interleave(groups, dim=1),
                value.repeat_interleave(groups, dim=1),
                attn_mask=mask,
                is_causal=mask is None,
                dropout_p=self.dropout if self.training else 0.0,
            )
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _heads(self, flat: Tensor) -> Tensor:
        """Split the heads apart: all of them, or this tensor rank's share."""
        return flat.view(*flat.shape[:2], -1, self.head_dim).transpose(1, 2)


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = Linear(config.dim, config.ffn_dim, bias=False)
        self.up = Linear(config.dim, config.ffn_dim, bias=False)
        self.down = Linear(config.ffn_dim, config.dim, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """[batch, sequence, dim] to the same."""
        return self.down(F.silu(self.gate(hidden)) * self.up(hidden))


def rotary(length: int, head_dim: int, theta: float, device: torch.device, *, first: int = 0) -> Rotation:
    """Cosine and sine, each [sequence, head / 2] in fp32, of positions from `first` on."""
    frequencies = theta ** (-torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim)
    angles = torch.outer(torch.arange(first, first + length, device=device, dtype=torch.float32), frequencies)
    return Rotation(angles.cos(), angles.sin())


def within_documents(rotation: Rotation, tokens: Tensor, end: int) -> Rotation:
    """Positions that start anew, and attention that ends, with each document of [batch, sequence] tokens; its last one is `end`."""
    ends = tokens == end
    document = ends.cumsum(dim=1) - ends.long()
    place = torch.arange(tokens.shape[1], device=tokens.device)
    # Where the document of each position starts: the newest place after an end.
    after_end = F.pad(ends[:, :-1], (1, 0))
    position = place - torch.where(after_end, place, 0).cummax(dim=1).values
    same = document[:, :, None] == document[:, None, :]
    mask = same & (place[:, None] >= place[None, :])
    return Rotation(rotation.cosine[position].unsqueeze(1), rotation.sine[position].unsqueeze(1), mask.unsqueeze(1))


def rotate(heads: Tensor, rotation: Rotation) -> Tensor:
    """Turn each pair (i, i + head / 2) of [batch, heads, sequence, head] by its position's angle."""
    cosine, sine = rotation.cosine, rotation.sine
    first, second = heads.float().chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).to(heads.dtype)


def attention_kernel(name: str) -> "AbstractContextManager[None]":
    """Context that limits attention to one kernel family; `auto` limits nothing."""
    return nullcontext() if name == "auto" else sdpa_kernel(_BACKENDS[name])


def attention_choice(config: ModelConfig, length: int, dtype: torch.dtype, device: torch.device) -> str:
    """Name of the kernel family that PyTorch takes for this shape, for the log."""
    shape = (1, config.num_heads, length, config.dim // config.num_heads)
    mask = None if config.document_end is None else torch.ones(1, 1, length, length, dtype=torch.bool, device=device)
    return kernel_choice(config.attention, shape, config.dropout, dtype, device, mask)


def kernel_choice(
    name: str, shape: tuple[int, ...], dropout: float, dtype: torch.dtype, device: torch.device, mask: Tensor | None = None
) -> str:
    """Name of the kernel family that PyTorch takes for causal attention over [batch, heads, sequence, head] within what `name` allows."""
    probe = torch.empty(shape, dtype=dtype, device=device)
    with attention_kernel(name):
        choice = torch._fused_sdp_choice(probe, probe, probe, attn_mask=mask, dropout_p=dropout, is_causal=mask is None)
    return SDPBackend(choice).name.lower().removesuffix("_attention")


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy of each sample, [batch]. Logits that are cut along the vocabulary need DTensor's `loss_parallel` around them."""
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").mean(dim=1)
    return losses.full_tensor() if isinstance(losses, DTensor) else losses


def sample_losses(output: Tensor | Routed, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Cross entropy of each sample, [batch], which is what a run shows; and what it trains on, which has the balance loss on top."""
    if not isinstance(output, tuple):
        losses = next_token_loss(output, targets)
        return losses, losses
    logits, balance = output
    losses = next_token_loss(logits, targets)
    return losses, losses + balance
