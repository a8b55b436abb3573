"""A causal language model of the transformers library, described to engines as the transformer of our own is."""

import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from training.config import ModelConfig
from training.errors import TrainingError
from training.flops import attention_flops
from training.huggingface.adapter import add_adapter, base_name, fill_adapter, is_adapter
from training.huggingface.folder import locate
from training.huggingface.quantisation import load_quantised
from training.huggingface.weights import PretrainedWeights
from training.model import attention_kernel, kernel_choice
from training.precision import DTYPES
from training.schema import ConfigError
from training.weights import copy_whole, whole_shape

PREFIX = "model."
"""What the names of the library's parameters begin with in ours."""


class HuggingFaceModel(nn.Module):
    """Token ids [batch, sequence] to logits [batch, sequence, vocab], in fp32; the library's model is `model`."""

    def __init__(self, model: Any, kernel: str) -> None:
        super().__init__()
        self.model = model
        self.kernel = kernel

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits for the token after each position."""
        with attention_kernel(self.kernel):
            return self.model(input_ids=tokens, use_cache=False).logits.float()


class HuggingFaceArchitecture:
    """See Architecture. The configuration's source is a folder, or a hub's name whose copy is there already."""

    def __init__(self, config: ModelConfig, seed: int, precision: str) -> None:
        _quieten()
        self._config, self._seed, self._precision = config, seed, precision
        self._is_quantised = config.adapter.kind == "qlora"
        self._folder = locate(config.huggingface)
        self._library = self._read_config()

    def build(self) -> HuggingFaceModel:
        """See Architecture. Buffers are computed by the model's constructor and real: files do not hold them.

        A model to be quantised comes with its weights, on the device of this rank: they exist in four bits alone.
        """
        if self._is_quantised:
            model = load_quantised(self._folder, DTYPES[self._precision])
            return HuggingFaceModel(add_adapter(model, self._config.adapter), self._config.attention)
        return self._plain()

    def _plain(self) -> HuggingFaceModel:
        """The model without quantisation, on the meta device."""
        model = self._bare()
        if self._config.adapter.kind != "none":
            with _without_storage():
                model = add_adapter(model, self._config.adapter)
            model.get_base_model().tie_weights()
        return HuggingFaceModel(model, self._config.attention)

    def blocks(self, model: nn.Module) -> list[nn.Module]:
        """See Architecture. They are what the library says must not be split over devices."""
        names = set(_library_model(model)._no_split_modules or ())
        blocks = [module for module in model.modules() if any(kind.__name__ in names for kind in type(module).__mro__)]
        if not blocks:
            raise TrainingError(f"{self._library.model_type} names no blocks (_no_split_modules), so it can't be sharded or recomputed")
        return blocks

    @torch.no_grad()
    def fill(self, model: nn.Module) -> None:
        """See Architecture."""
        parameters = {name.removeprefix(PREFIX): parameter for name, parameter in model.named_parameters()}
        for name, parameter in parameters.items():
            if is_adapter(name):
                fill_adapter(name, parameter, self._seed)
        if self._is_quantised:
            return
        base = {base_name(name): parameter for name, parameter in parameters.items() if not is_adapter(name)}
        if self._config.huggingface.weights == "random":
            self._fill_from_seed(base)
        else:
            self._fill_from_files(base, dict(_saved_buffers(model)))

    def flops_per_token(self, length: int) -> int:
        """See Architecture. A frozen weight needs no gradient of its own: 4 operations instead of 6."""
        model = self._plain()
        text = self._library.get_text_config()
        experts = getattr(text, "num_local_experts", None) or getattr(text, "num_experts", None) or 1
        share = getattr(text, "num_experts_per_tok", 1) / experts
        weights = 0
        for module in model.modules():
            if not isinstance(module, nn.Embedding):
                for parameter in module.parameters(recurse=False):
                    used = parameter.numel() * (share if parameter.dim() == 3 else 1)
                    weights += round(used * (6 if parameter.requires_grad else 4)) if parameter.dim() >= 2 else 0
        return weights + attention_flops(layers=text.num_hidden_layers, width=text.num_attention_heads * self._head_dim(), length=length)

    def attention_kernel(self, length: int, dtype: torch.dtype, device: torch.device) -> str:
        """See Architecture."""
        shape = (1, self._library.get_text_config().num_attention_heads, length, self._head_dim())
        return kernel_choice(self._config.attention, shape, 0.0, dtype, device)

    def _head_dim(self) -> int:
        text = self._library.get_text_config()
        return getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads

    def _read_config(self) -> Any:
        from transformers import AutoConfig

        try:
            config = AutoConfig.from_pretrained(self._folder, local_files_only=True)
        except (ValueError, KeyError, OSError) as error:
            raise ConfigError("model.huggingface.source", str(self._folder), f"a model that transformers knows; it says: {error}") from None
        # Master weights; what the files are in does not matter.
        config.dtype = torch.float32
        return config

    def _bare(self) -> Any:
        """The library's model without adapters, its parameters on the meta device."""
        from transformers import AutoModelForCausalLM

        try:
            with _without_storage():
                model = AutoModelForCausalLM.from_config(self._library, attn_implementation="sdpa")
        except ValueError as error:
            allowed = f"a causal language model with scaled dot product attention; transformers says: {error}"
            raise ConfigError("model.huggingface.source", str(self._folder), allowed) from None
        # Ties are lost while parameters move to the meta device one by one.
        model.tie_weights()
        return model

    def _fill_from_files(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> None:
        prefix = self._bare().base_model_prefix
        weights = PretrainedWeights(self._folder, prefix, parameters)
        for name, parameter in parameters.items():
            if (shape := weights.get_shape(name)) != tuple(whole_shape(parameter)):
                raise TrainingError(f"{self._folder}: {name} is {list(shape)}, but its config.json makes it {list(whole_shape(parameter))}")
            copy_whole(parameter, weights[name])
        for name, buffer in buffers.items():
            if name in weights:
                buffer.copy_(weights[name][...])

    def _fill_from_seed(self, parameters: dict[str, Tensor]) -> None:
        """The library's own initialisation, one block at a time, each from the seed and its name."""
        fresh = self._bare()
        for name, unit in _units(fresh, self.blocks(fresh)):
            names = {inner: f"{name}.{inner}" for inner, _ in unit.named_parameters()}
            if parameters.keys().isdisjoint(names.values()):
                continue
            unit.to_empty(device="cpu")
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(zlib.crc32(f"{self._seed}/{name}".encode()))
                unit.apply(fresh._init_weights)
            for inner, value in unit.named_parameters():
                if names[inner] in parameters:
                    copy_whole(parameters[names[inner]], value)
            unit.to("meta")


def _library_model(model: nn.Module) -> Any:
    """The library's model inside of ours, of an adapter's, or itself."""
    inner = model.model if isinstance(model, HuggingFaceModel) else model
    return inner.get_base_model() if hasattr(inner, "get_base_model") else inner


def _units(model: nn.Module, blocks: list[nn.Module]) -> Iterator[tuple[str, nn.Module]]:
    """Blocks, and outside of them the modules that hold parameters themselves; with their names."""
    inside: set[int] = set()
    for name, module in model.named_modules():
        if id(module) in inside:
            continue
        if any(module is block for block in blocks):
            inside |= {id(inner) for inner in module.modules()}
            yield name, module
        elif next(module.parameters(recurse=False), None) is not None:
            yield name, module


def _saved_buffers(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Buffers that belong to a model's files, by their names there."""
    for prefix, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name not in module._non_persistent_buffers_set:
                yield base_name(f"{prefix}.{name}".removeprefix(PREFIX)), buffer


def _quieten() -> None:
    """Ranks by the dozen must not draw progress bars over each other's lines, nor repeat advice."""
    from transformers.utils import logging as library

    library.set_verbosity_error()
    library.disable_progress_bar()


@contextmanager
def _without_storage() -> Generator[None]:
    """Parameters are made on the meta device, no time is spent on their values, and buffers are computed."""
    from accelerate import init_empty_weights
    from transformers.initialization import no_init_weights

    with no_init_weights(), init_empty_weights(include_buffers=False):
        yield
