"""Models of the transformers library: built without memory, filled from their folder to the bit, and refused where they can't be."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tests.training.inside.families import FAMILIES, write_model
from training.architecture import build_model, choose_architecture, resolve_model
from training.config import TrainConfig
from training.errors import TrainingError
from training.flops import attention_flops
from training.huggingface.export import write_folder
from training.schema import ConfigError

pytestmark = pytest.mark.training

CPU = torch.device("cpu")
TOKENS = torch.randint(0, 256, (2, 16), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {family: write_model(root / family, family) for family in FAMILIES}


def config(folder: Path | str, adapter: dict | None = None, data: dict | None = None, **source: Any) -> TrainConfig:
    model = {"kind": "huggingface", "huggingface": {"source": str(folder), **source}, "adapter": adapter or {}}
    settings = {"name": "x", "steps": 20, "model": model, "data": {"sequence_length": 16, **(data or {})}}
    return resolve_model(TrainConfig.from_mapping(settings))


def reference(folder: Path) -> nn.Module:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@torch.no_grad()
def logits(model: nn.Module) -> Tensor:
    return model.eval()(TOKENS)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_from_its_folder_is_the_librarys(folders: dict[str, Path], family: str) -> None:
    settings = config(folders[family])
    architecture = choose_architecture(settings)
    assert all(parameter.is_meta for parameter in architecture.build().parameters())
    model = build_model(settings, CPU)
    expected = reference(folders[family])
    with torch.no_grad():
        assert torch.equal(logits(model), expected(TOKENS).logits)
    assert len(list(architecture.blocks(model))) == 2
    assert {name for name, _ in model.named_parameters()} == {f"model.{name}" for name, _ in expected.named_parameters()}


@pytest.mark.parametrize("family", ["qwen3", "gpt2"])
def test_tied_embeddings_are_one_parameter(folders: dict[str, Path], family: str) -> None:
    library: Any = build_model(config(folders[family]), CPU).model
    assert library.get_input_embeddings().weight is library.get_output_embeddings().weight


def test_weights_in_several_files_are_read_through_their_index(tmp_path: Path, folders: dict[str, Path]) -> None:
    several = write_model(tmp_path / "several", "llama", max_shard_size="40KB")
    assert len([*several.glob("*.safetensors")]) > 1
    assert torch.equal(logits(build_model(config(several), CPU)), logits(build_model(config(folders["llama"]), CPU)))


@pytest.mark.parametrize("family", FAMILIES)
def test_random_weights_depend_on_the_seed_alone_and_are_the_librarys_own_kind(folders: dict[str, Path], family: str) -> None:
    settings = config(folders[family], weights="random")
    first, second = (build_model(settings, CPU).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    library = reference(folders[family]).apply(lambda module: None)
    library.init_weights()
    for name, value in library.state_dict().items():
        ours = first[f"model.{name}"]
        assert bool(torch.isfinite(ours).all())
        if value.dim() >= 2 and value.numel() >= 1024:
            assert ours.std().item() == pytest.approx(0.02, rel=0.6), name


def test_operations_per_token_are_those_that_torch_counts(folders: dict[str, Path]) -> None:
    settings = config(folders["llama"])
    architecture, model = choose_architecture(settings), build_model(settings, CPU)
    model.kernel = "math"
    with FlopCounterMode(display=False) as counter:
        model(TOKENS).sum().backward()
    half = attention_flops(layers=2, width=32, length=16)
    assert counter.get_total_flops() == TOKENS.numel() * (architecture.flops_per_token(16) + half)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_untrained_adapter_changes_nothing_and_is_all_that_is_trained(folders: dict[str, Path], family: str) -> None:
    settings = config(folders[family], {"kind": "lora", "rank": 4, "alpha": 8})
    architecture, model = choose_architecture(settings), build_model(settings, CPU)
    assert torch.equal(logits(model), logits(build_model(config(folders[family]), CPU)))
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained
    assert all(".lora_" in name for name in trained)
    assert len(list(architecture.blocks(model))) == 2
    model.train()
    model(TOKENS).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters() if parameter.requires_grad)


def test_adapters_start_from_the_seed_and_their_name(folders: dict[str, Path]) -> None:
    settings = config(folders["llama"], {"kind": "lora", "rank": 4, "targets": ["q_proj", "v_proj"]})
    first, second = (build_model(settings, CPU).state_dict() for _ in range(2))
    down = [name for name in first if ".lora_A." in name]
    assert len(down) == 4, "two targets in two blocks"
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first[down[0]], first[down[2]]), "blocks do not share their values"


@pytest.mark.parametrize("mode", ["full", "selective"])
def test_recomputing_activations_gives_the_same_gradients(folders: dict[str, Path], mode: str) -> None:
    from dataclasses import replace

    settings = config(folders["llama"])
    recomputed = replace(settings, model=replace(settings.model, activation_checkpointing=mode))
    models = [build_model(each, CPU).train() for each in (settings, recomputed)]
    for model in models:
        model(TOKENS).square().mean().backward()
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.equal(one.grad, other.grad)


def test_a_hubs_name_without_a_hub_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match=r'model.huggingface.source: "team/model" is refused; allowed: a folder .* the hub says'):
        config("team/model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"folder": "/nowhere"}, 'model.huggingface.source: "/nowhere" is refused; allowed: a folder that exists on every host'),
        ({"data": {"sequence_length": 65}}, "data.sequence_length: 65 is refused; allowed: at most 64"),
        ({"digest": "0"}, 'model.huggingface.digest: "0" is refused'),
        ({"adapter": {"kind": "lora", "targets": ["nothing"]}}, 'model.adapter.targets: ["nothing"] is refused; allowed: names of linear'),
    ],
    ids=["folder", "positions", "digest", "targets"],
)
def test_what_does_not_go_with_the_folder_is_refused(folders: dict[str, Path], changes: dict, message: str) -> None:
    folder = changes.pop("folder", folders["llama"])
    with pytest.raises(ConfigError) as caught:
        choose_architecture(config(folder, **changes)).build()
    assert message in str(caught.value)


def test_a_small_vocabulary_is_refused_for_bytes(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 100}))
    with pytest.raises(ConfigError, match=r"model.vocab_size: 100 is refused; allowed: at least 256 when data.encoding is bytes"):
        config(tmp_path, weights="random")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "a folder with a readable config.json"),
        ({"config.json": "{"}, "a folder with a readable config.json"),
        ({"config.json": '{"model_type": "llama"}'}, "has no vocab_size"),
        ({"config.json": '{"vocab_size": 256}'}, "a folder that holds model.safetensors"),
        ({"config.json": '{"vocab_size": 256}', "pytorch_model.bin": ""}, "its pickled weights are not read: convert them to safetensors"),
        ({"config.json": '{"vocab_size": 256}', "model.safetensors.index.json": "[]"}, "a readable model.safetensors.index.json"),
        ({"config.json": '{"vocab_size": 256, "model_type": "none"}', "model.safetensors": ""}, "a model that transformers knows"),
        ({"config.json": '{"vocab_size": 256, "model_type": "clip"}', "model.safetensors": ""}, "a causal language model"),
    ],
    ids=["empty", "torn", "no-vocabulary", "no-weights", "pickled", "index", "unknown", "no-language-model"],
)
def test_a_folder_that_is_no_model_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        choose_architecture(config(tmp_path)).build()
    assert "model.huggingface.source" in str(caught.value)
    assert message in str(caught.value)


def test_weights_that_do_not_go_with_the_configuration_are_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path, "llama")
    facts = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**facts, "intermediate_size": 48}))
    with pytest.raises(TrainingError, match=r"mlp.gate_proj.weight is \[64, 32\], but its config.json makes it \[48, 32\]"):
        build_model(config(folder), CPU)
    (folder / "config.json").write_text(json.dumps({**facts, "num_hidden_layers": 3}))
    with pytest.raises(TrainingError, match=r"lacks weights that its model has: model.layers.2"):
        build_model(config(folder), CPU)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_exported_model_is_the_same_for_the_library(tmp_path: Path, folders: dict[str, Path], family: str) -> None:
    (folders[family] / "tokenizer.json").write_text("{}")
    settings = config(folders[family], weights="random")
    model = build_model(settings, CPU)
    write_folder(settings, model.state_dict(), tmp_path)
    with torch.no_grad():
        assert torch.equal(reference(tmp_path)(TOKENS).logits, logits(model))
    assert (tmp_path / "tokenizer.json").exists(), "the tokenizer belongs to the model"


@pytest.mark.parametrize("family", FAMILIES)
def test_an_exported_adapter_is_the_same_for_the_library(tmp_path: Path, folders: dict[str, Path], family: str) -> None:
    from peft import PeftModel

    settings = config(folders[family], {"kind": "lora", "rank": 4})
    model = build_model(settings, CPU)
    for parameter in model.parameters():
        if parameter.requires_grad:
            nn.init.normal_(parameter, std=0.1)
    write_folder(settings, {name: value for name, value in model.state_dict().items() if ".lora_" in name}, tmp_path)
    loaded = PeftModel.from_pretrained(reference(folders[family]), tmp_path).eval()
    with torch.no_grad():
        assert torch.allclose(loaded(TOKENS).logits, logits(model), atol=1e-6)
    assert not torch.allclose(reference(folders[family])(TOKENS).logits, logits(model), atol=1e-2), "the adapter must do something"
    assert not [*tmp_path.glob("model*.safetensors")], "the base is not part of it"


def test_an_export_that_lacks_something_is_refused(tmp_path: Path, folders: dict[str, Path]) -> None:
    settings = config(folders["llama"])
    state = dict(build_model(settings, CPU).state_dict())
    del state["model.model.norm.weight"]
    with pytest.raises(TrainingError, match=r"no values for model.model.norm.weight \(1 in all\)"):
        write_folder(settings, state, tmp_path)
