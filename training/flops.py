"""Sizes of a model as pure functions of its shape: parameters, and floating point operations per token. Standard library only.

Operations are those of the matrix products: 2 per weight and token forwards, twice that backwards. Recomputation does not count, so a
utilisation figure says what the model got and not what the device did.
"""

from training.config import ModelConfig


def count_parameters(model: ModelConfig) -> int:
    """Parameters of the whole model."""
    idle_experts = (model.num_experts or 1) - _active_experts(model)
    norms = (2 * model.num_layers + 1) * model.dim
    return model.vocab_size * model.dim + matrix_weights(model) + idle_experts * model.num_layers * _expert_weights(model) + norms


def matrix_weights(model: ModelConfig) -> int:
    """Weights that each token is multiplied by: all but norms, the experts that it does not go to, and the embedding, which is a lookup."""
    head_dim = model.dim // model.num_heads
    attention = model.dim * head_dim * 2 * (model.num_heads + model.num_kv_heads)
    router = model.dim * (model.num_experts or 0)
    feed_forward = _active_experts(model) * _expert_weights(model) + router
    return model.num_layers * (attention + feed_forward) + model.vocab_size * model.dim


def _active_experts(model: ModelConfig) -> int:
    return 1 if model.num_experts is None else model.experts_per_token


def _expert_weights(model: ModelConfig) -> int:
    return 3 * model.dim * model.ffn_dim


def flops_per_token(model: ModelConfig, length: int) -> int:
    """Floating point operations of one token's forward and backward pass, in a sequence of this length."""
    return 6 * matrix_weights(model) + attention_flops(layers=model.num_layers, width=model.dim, length=length)


def attention_flops(*, layers: int, width: int, length: int) -> int:
    """The part of one token's operations that grows with the sequence: scores and their mix, forwards and backwards.

    `width` is query heads times head size. Causal: on average half of the sequence is seen.
    """
    return 6 * layers * width * length
