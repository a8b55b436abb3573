"""TrainConfig: what is refused, in which words, and that JSON carries every value both ways."""

import ast
import inspect
import json

import pytest

from training import config as config_module
from training.config import TrainConfig
from training.schema import ConfigError

pytestmark = pytest.mark.unit


def valid() -> dict:
    """The smallest accepted configuration."""
    return {"name": "tiny", "steps": 20, "schedule": {"warmup_steps": 4}}


def test_json_gives_back_an_equal_configuration() -> None:
    text = json.dumps({**valid(), "engine": {"kind": "deepspeed", "zero_stage": 3, "precision": "bf16"}, "data": {"files": ["a.txt"]}})
    config = TrainConfig.from_json(text)
    assert TrainConfig.from_json(config.to_json()) == config


def test_overrides_reach_nested_keys() -> None:
    config = TrainConfig.from_json(json.dumps(valid()), ["optimizer.lr=1e-4", "engine.kind=deepspeed", "engine.zero_stage=1", "steps=30"])
    assert (config.optimizer.lr, config.engine.zero_stage, config.steps) == (1e-4, 1, 30)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stepz=3", "stepz: 3 is refused; allowed: no such key; did you mean steps?"),
        ("optimizer.lrr=3", "optimizer.lrr: 3 is refused; allowed: no such key; did you mean lr?"),
        ("steps=0", "steps: 0 is refused; allowed: a number >= 1"),
        ("steps=2.5", "steps: 2.5 is refused; allowed: a whole number"),
        ("steps=true", "steps: true is refused; allowed: a whole number"),
        ("steps=many", 'steps: "many" is refused; allowed: a whole number'),
        ("optimizer.lr=0", "optimizer.lr: 0.0 is refused; allowed: a number > 0"),
        ("optimizer.lr=NaN", "optimizer.lr: NaN is refused; allowed: a finite number"),
        ("optimizer.betas=[0.9]", "optimizer.betas: [0.9] is refused; allowed: a list of 2 values"),
        ("optimizer.betas=[0.9,1]", "optimizer.betas[1]: 1 is refused; allowed: a number >= 0 and < 1"),
        ("name=Big Run", "allowed: 1 to 63 lower-case letters"),
        ("name=../other", "allowed: 1 to 63 lower-case letters"),
        ("model.num_kv_heads=3", "model.num_kv_heads: 3 is refused; allowed: a divisor of num_heads = 4"),
        ("model.dim=130", "model.dim: 130 is refused; allowed: a multiple of num_heads = 4"),
        ("model.dim=132", "for rotary pairs"),
        ("model.num_experts=1", "model.num_experts: 1 is refused; allowed: a number >= 2"),
        ("model.capacity_factor=1.5", "model.capacity_factor: 1.5 is refused; allowed: its default when num_experts is nothing"),
        ("model.experts_per_token=1", "model.experts_per_token: 1 is refused; allowed: its default when num_experts is nothing"),
        ("model.balance_weight=0", "model.balance_weight: 0.0 is refused; allowed: its default when num_experts is nothing"),
        ("model.vocab_size=100", "model.vocab_size: 100 is refused; allowed: at least 256 when data.encoding is bytes"),
        ("model.document_end=256", "model.document_end: 256 is refused; allowed: a token id, below vocab_size = 256"),
        ("model.attention=fast", 'model.attention: "fast" is refused; allowed: one of "auto", "flash", "efficient", "math"'),
        ("data.encoding=uint16", "data.files: [] is refused; allowed: at least one file when data.encoding is uint16"),
        ("data.files=a.txt", 'data.files: "a.txt" is refused; allowed: a list'),
        ("engine.kind=deepspeed", "engine.zero_stage: nothing is refused; allowed: 0, 1, 2 or 3 when kind is deepspeed"),
        ("engine.zero_stage=1", "engine.zero_stage: 1 is refused; allowed: nothing when kind is ddp; ZeRO needs kind deepspeed"),
        ("engine.precision=fp8", 'engine.precision: "fp8" is refused; allowed: one of "fp32", "bf16", "fp16"'),
        ("engine.loss_scale_power=8", "engine.loss_scale_power: 8 is refused; allowed: its default when precision is fp32"),
        ("model.kind=huggingface", "model.huggingface.source: nothing is refused; allowed: a folder or a hub's name"),
        ('model.huggingface={"source": "x"}', "allowed: its defaults when model.kind is transformer; set model.kind to huggingface"),
        ('model.adapter={"kind": "lora"}', "allowed: its defaults when model.kind is transformer; set model.kind to huggingface"),
        ("model.adapter.rank=4", "model.adapter.rank: 4 is refused; allowed: its default when adapter.kind is none"),
        ("checkpoint.keep=1", "checkpoint.keep: 1 is refused; allowed: a number >= 2"),
        ("schedule.warmup_steps=20", "schedule.warmup_steps: 20 is refused; allowed: fewer than steps = 20"),
        ("schedule.decay_steps=3", "schedule.warmup_steps: 4 is refused; allowed: fewer than schedule.decay_steps = 3"),
        ("data.eval_every_nth=1", "data.eval_every_nth: 1 is refused; allowed: a number >= 2"),
        ("distributed.backend=mpi", 'allowed: one of "auto", "gloo", "nccl"'),
        ("model=7", "model: 7 is refused; allowed: a mapping of settings"),
        ("steps.x=7", "steps.x: "),
        ("steps", "allowed: key=value"),
    ],
)
def test_bad_settings_are_refused_with_path_value_and_what_is_allowed(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainConfig.from_json(json.dumps(valid()), [override])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.dim=64", "model.dim: 64 is refused; allowed: its default when model.kind is huggingface"),
        ("model.compile=true", "model.compile: true is refused; allowed: false when model.kind is huggingface"),
        ("model.dropout=0.1", "model.dropout: 0.1 is refused; allowed: its default when model.kind is huggingface"),
        ("parallel.tensor=2", "parallel.tensor: 2 is refused; allowed: 1 when model.kind is huggingface"),
        ("model.huggingface.weights=none", 'allowed: one of "pretrained", "random"'),
    ],
)
def test_what_a_hugging_face_model_brings_itself_or_lacks_is_refused(override: str, message: str) -> None:
    base = {**valid(), "model": {"kind": "huggingface", "huggingface": {"source": "folder"}}}
    with pytest.raises(ConfigError) as caught:
        TrainConfig.from_json(json.dumps(base), [override])
    assert message in str(caught.value)


def test_compiling_blocks_that_are_no_whole_graphs_is_refused() -> None:
    base = {**valid(), "model": {"compile": True}}
    with pytest.raises(ConfigError, match=r"model.compile: true is refused; allowed: false with engine.zero_stage 3"):
        TrainConfig.from_mapping({**base, "engine": {"kind": "deepspeed", "zero_stage": 3}})
    with pytest.raises(ConfigError, match=r"model.compile: true is refused; allowed: false with parallel.tensor = 2"):
        TrainConfig.from_mapping({**base, "parallel": {"tensor": 2}})


def test_what_does_not_go_together_in_the_engine_is_refused() -> None:
    base = {**valid(), "engine": {"kind": "deepspeed", "zero_stage": 0, "precision": "fp16"}}
    with pytest.raises(ConfigError, match=r"engine.precision: .fp16. is refused; allowed: fp32 or bf16 with zero_stage 0"):
        TrainConfig.from_json(json.dumps(base))
    model = {"kind": "huggingface", "huggingface": {"source": "folder"}, "adapter": {"kind": "qlora"}}
    with pytest.raises(ConfigError, match=r"engine.kind: .deepspeed. is refused; allowed: ddp when model.adapter.kind is qlora"):
        TrainConfig.from_mapping({**valid(), "model": model, "engine": {"kind": "deepspeed", "zero_stage": 1}})


@pytest.mark.parametrize(
    ("text", "message"), [("{", "valid JSON"), ("[1]", "a JSON object of settings"), ('{"steps": 1}', "name: nothing is refused")]
)
def test_text_that_is_no_configuration_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match="is refused") as caught:
        TrainConfig.from_json(text)
    assert message in str(caught.value)


def test_a_batch_that_does_not_fit_the_ranks_is_refused_before_any_rank_exists() -> None:
    config = TrainConfig.from_mapping({**valid(), "batch": {"micro": 2, "global_batch": 256}})
    assert config.plan_batch(8).accumulation == 16
    with pytest.raises(ConfigError, match=r"batch: .*256 is not a multiple of micro batch 2 x data-parallel replicas 7 = 14"):
        config.plan_batch(7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"parallel": {"pipeline": 2}, "batch": {"accumulation": 2}},
            "nothing when parallel.pipeline is above 1: only the first stage",
        ),
        ({"parallel": {"context": 2}}, "nothing when parallel.context is above 1: a rank sees only its part"),
        ({"model": {"attention": "flash"}}, "auto, efficient or math when document_end is set: flash kernels take no mask"),
    ],
)
def test_documents_are_kept_apart_only_where_their_ends_are_seen(changes: dict, message: str) -> None:
    model = {"document_end": 0, **changes.get("model", {})}
    with pytest.raises(ConfigError) as caught:
        TrainConfig.from_mapping({**valid(), **changes, "model": model})
    assert message in str(caught.value)


def test_every_field_is_documented() -> None:
    tree = ast.parse(inspect.getsource(config_module))
    for section in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, following in zip(section.body, [*section.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign):
                documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
                assert documented, f"{section.name}.{ast.unparse(field.target)} has no documentation under it"
