"""Mixture of experts: a router sends each token to a few of many feed-forward networks.

What depends on more than one token (the balance loss and the capacity) is taken over one sample at a time. So a run computes the same
whatever its micro-batches, replicas and parallel layout are, and whether a token is dropped depends only on the tokens before it.

The ranks that share the experts (expert parallelism) exchange tokens by all-to-all: each computes its own experts for everyone's tokens.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed._functional_collectives import all_to_all_single, all_to_all_single_autograd
from torch.distributed.tensor import DTensor
from torch.nn import functional as F

from training.config import ModelConfig


class Routing(NamedTuple):
    """Where the tokens of a micro-batch go; T tokens of B samples, K choices each."""

    experts: Tensor
    """Expert of each choice, [T, K] of int64, best first."""
    weights: Tensor
    """Share of each choice in the token's output, [T, K] in fp32."""
    kept: Tensor
    """Whether the expert still had room, [T, K] of bool."""
    balance: Tensor
    """Load-balancing loss of each sample, [B] in fp32; 1 when its tokens are spread evenly."""


class MixtureOfExperts(nn.Module):
    """Takes the place of a block's feed-forward part."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.num_experts is not None
        self.num_experts = config.num_experts
        self.router = Router(config)
        self.experts = Experts(config.num_experts, config.dim, config.ffn_dim)
        self.balance_weight = config.balance_weight
        self.tally = Tally(config.num_experts)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """[batch, sequence, dim] to the same, and each sample's weighted balance loss, [batch]."""
        routing = self.router(hidden)
        if self.training:
            self.tally.add(routing)
        mixed = self.experts(hidden.flatten(0, 1), routing)
        return mixed.view_as(hidden), self.balance_weight * routing.balance


class Router(nn.Module):
    """Linear scores of all experts, in fp32 whatever the precision of the run: near ties decide where a token goes."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.num_experts is not None
        self.num_choices = config.experts_per_token
        self.capacity_factor = config.capacity_factor
        self.weight = nn.Parameter(torch.empty(config.num_experts, config.dim))

    def forward(self, hidden: Tensor) -> Routing:
        """Choices for [batch, sequence, dim]."""
        with torch.autocast(hidden.device.type, enabled=False):
            probabilities = F.linear(hidden.float(), _local(self.weight).float()).softmax(dim=-1)
        weights, experts = probabilities.topk(self.num_choices, dim=-1)
        if self.num_choices > 1:
            # A single choice keeps its probability: its share would always be 1 and teach the router nothing.
            weights = weights / weights.sum(dim=-1, keepdim=True)
        chosen = F.one_hot(experts.flatten(1), probabilities.shape[-1])
        balance = balance_loss(probabilities, chosen)
        kept = within_capacity(experts, chosen, self.capacity_factor)
        return Routing(experts.flatten(0, 1), weights.flatten(0, 1), kept.flatten(0, 1), balance)


def balance_loss(probabilities: Tensor, chosen: Tensor) -> Tensor:
    """Loss of each sample that is least when its tokens use all experts alike: experts x sum of (share of choices x mean probability).

    `probabilities` is [batch, sequence, experts]; `chosen` [batch, choices, experts] is 1 where a choice is that expert's. Gives [batch].
    """
    share = chosen.to(probabilities.dtype).mean(dim=1)
    return probabilities.shape[-1] * (share * probabilities.mean(dim=1)).sum(dim=-1)


def capacity(num_choices: int, num_experts: int, factor: float) -> int:
    """Choices of one sample that one expert takes: its even share times the factor, rounded up."""
    return math.ceil(factor * num_choices / num_experts)


def within_capacity(experts: Tensor, chosen: Tensor, factor: float | None) -> Tensor:
    """Which choices [batch, sequence, per token] find room, first come first served by position in the sample, then by preference."""
    if factor is None:
        return torch.ones_like(experts, dtype=torch.bool)
    place = chosen.cumsum(dim=1).gather(2, experts.flatten(1).unsqueeze(-1)).view_as(experts)
    return place <= capacity(chosen.shape[1], chosen.shape[2], factor)


class Experts(nn.Module):
    """SwiGLU networks side by side; this rank may hold only some of them, as shards of DTensors."""

    def __init__(self, num_experts: int, dim: int, ffn_dim: int) -> None:
        super().__init__()
        self.num_experts = num_experts
        self.gate = nn.Parameter(torch.empty(num_experts, ffn_dim, dim))
        self.up = nn.Parameter(torch.empty(num_experts, ffn_dim, dim))
        self.down = nn.Parameter(torch.empty(num_experts, dim, ffn_dim))
        self.group: ProcessGroup | None = None
        """Ranks that share the experts, each with as many; None when this rank has them all."""

    def forward(self, tokens: Tensor, routing: Routing) -> Tensor:
        """[tokens, dim] to the same: the weighted sum of what each token's experts make of it."""
        rows = Rows.sort(routing, self.num_experts)
        per_token = routing.experts.shape[1]
        outgoing = tokens[rows.choice // per_token]
        computed = self._exchange(outgoing, rows.counts) if self.group else self._compute(outgoing, rows.counts)
        weighted = computed * rows.weight.unsqueeze(-1)
        # A place for each choice and then a sum: adding rows to tokens in place would sum in an order of its own on a GPU.
        placed = weighted.new_zeros(len(tokens) * per_token, weighted.shape[1]).index_copy(0, rows.choice, weighted)
        return placed.view(len(tokens), per_token, -1).sum(dim=1).to(tokens.dtype)

    def _exchange(self, outgoing: Tensor, counts: Tensor) -> Tensor:
        """Send each row to the rank of its expert, and get its result back in the same place."""
        assert self.group is not None
        size = self.group.size()
        # [rank that sent, expert of this rank]: what comes in is sorted by sender first.
        incoming = all_to_all_single(counts, None, None, self.group).view(size, -1)
        sent, received = counts.view(size, -1).sum(dim=1).tolist(), incoming.sum(dim=1).tolist()
        rows = all_to_all_single_autograd(outgoing, received, sent, self.group)
        by_expert = torch.repeat_interleave(torch.arange(incoming.shape[1], device=rows.device).repeat(size), incoming.flatten()).argsort(
            stable=True
        )
        computed = self._compute(rows[by_expert], incoming.sum(dim=0))
        back = torch.empty_like(computed).index_copy(0, by_expert, computed)
        return all_to_all_single_autograd(back, sent, received, self.group)

    def _compute(self, rows: Tensor, counts: Tensor) -> Tensor:
        """Rows sorted by expert, and how many each expert of this rank has, to what the experts make of them."""
        dtype = torch.get_autocast_dtype(rows.device.type) if torch.is_autocast_enabled(rows.device.type) else rows.dtype
        gate, up, down = (_local(weight).to(dtype).transpose(-2, -1) for weight in (self.gate, self.up, self.down))
        ends = counts.cumsum(dim=0).to(torch.int32)
        rows = rows.to(dtype)
        inner = F.silu(F.grouped_mm(rows, gate, offs=ends)) * F.grouped_mm(rows, up, offs=ends)
        return F.grouped_mm(inner, down, offs=ends)


class Rows(NamedTuple):
    """The kept choices of a micro-batch, sorted by expert."""

    choice: Tensor
    """Which choice each row is, counted through all tokens."""
    weight: Tensor
    """Share of each row in its token's output, [rows] in fp32."""
    counts: Tensor
    """Rows of each expert, [experts] of int64."""

    @classmethod
    def sort(cls, routing: Routing, num_experts: int) -> "Rows":
        """The rows of a routing; the order within an expert is that of the tokens."""
        kept = routing.kept.flatten()
        experts = routing.experts.flatten()[kept]
        order = experts.argsort(stable=True)
        choice = kept.nonzero().squeeze(-1)[order]
        return cls(
            choice=choice,
            weight=routing.weights.flatten()[choice],
            counts=torch.bincount(experts, minlength=num_experts),
        )


class Tally:
    """What a layer's router has decided since it was last asked; sums, so that ranks and micro-batches add up."""

    def __init__(self, num_experts: int) -> None:
        self._num_experts = num_experts
        self._sums: Tensor | None = None

    @torch.no_grad()
    def add(self, routing: Routing) -> None:
        """Count a micro-batch. Recomputed activations count twice, which leaves all shares as they are."""
        chosen = torch.bincount(routing.experts.flatten(), minlength=self._num_experts).double()
        dropped, samples = (~routing.kept).sum().double(), torch.tensor(float(len(routing.balance)), device=chosen.device).double()
        sums = torch.cat((chosen, torch.stack((dropped, routing.balance.double().sum(), samples))))
        self._sums = sums if self._sums is None else self._sums + sums

    def take(self) -> list[float]:
        """Choices of each expert, dropped choices, sum of the balance losses, number of samples; then starts over."""
        sums, self._sums = self._sums, None
        return [0.0] * (self._num_experts + 3) if sums is None else sums.tolist()


def measure_experts(model: nn.Module, add_up: Callable[[Sequence[float]], list[float]]) -> dict[str, float]:
    """How the experts were used since the last call, over all ranks; nothing for a model without experts. `add_up` sums over the ranks.

    balance_loss: unweighted mean over blocks, 1 when even. dropped_tokens: share of the choices for which there was no room.
    expert_load_max: choices of the busiest expert of any block, as a multiple of an even share.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, ModelConfig) or config.num_experts is None:
        return {}
    width = config.num_experts + 3
    sums = [0.0] * (config.num_layers * width)
    for name, module in model.named_modules():
        if isinstance(module, MixtureOfExperts):
            first = int(name.split(".")[-2]) * width
            sums[first : first + width] = module.tally.take()
    sums = add_up(sums)
    layers = [sums[first : first + width] for first in range(0, len(sums), width)]
    chosen = [sum(layer[: config.num_experts]) for layer in layers]
    return {
        "balance_loss": math.fsum(layer[-2] / layer[-1] for layer in layers) / len(layers),
        "dropped_tokens": math.fsum(layer[-3] for layer in layers) / math.fsum(chosen),
        "expert_load_max": max(
            max(layer[: config.num_experts]) * config.num_experts / total for layer, total in zip(layers, chosen, strict=True)
        ),
    }


def _local(weight: Tensor) -> Tensor:
    return weight.to_local() if isinstance(weight, DTensor) else weight
