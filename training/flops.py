"""Sizes of a model as pure functions of its shape: parameters, and floating point operations per token. Standard library only.

Operations are those of the matrix products: 2 per weight and token forwards, twice that backwards. Recomputation does not count, so a
utilisation figure says what the model got and not what the device did.
"""

from training.config import ModelConfig


def count_parameters(model: ModelConfig) -> int:
    """Parameters of the whole model."""
    norms = (2 * model.num_layers + 1) * model.dim
    idle_experts = model.num_experts - model.experts_per_token if model.num_experts else 0
    return model.vocab_size * model.dim + matrix_weights(model) + model.num_layers * idle_experts * feed_forward_weights(model) + norms


def matrix_weights(model: ModelConfig) -> int:
    """Weights that each token is multiplied by: all but norms, the embedding, which is a lookup, and the experts it does not go to."""
    head_dim = model.dim // model.num_heads
    attention = model.dim * head_dim * 2 * (model.num_heads + model.num_kv_heads)
    feed_forward = feed_forward_weights(model)
    if model.num_experts:
        feed_forward = model.experts_per_token * feed_forward + model.num_experts * model.dim
    return model.num_layers * (attention + feed_forward) + model.vocab_size * model.dim


def feed_forward_weights(model: ModelConfig) -> int:
    """Weights of one SwiGLU network: a block's, or an expert's."""
    return 3 * model.dim * model.ffn_dim


def flops_per_token(model: ModelConfig, length: int) -> int:
    """Floating point operations of one token's forward and backward pass, in a sequence of this length."""
    return 6 * matrix_weights(model) + attention_flops(layers=model.num_layers, width=model.dim, length=length)


def attention_flops(*, layers: int, width: int, length: int) -> int:
    """The part of one token's operations that grows with the sequence: scores and their mix, forwards and backwards.

    `width` is query heads times head size. Causal: on average half of the sequence is seen.
    """
    return 6 * layers * width * length
