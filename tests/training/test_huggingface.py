"""Models of the transformers library on the trainer's loop: the losses of the plainest loop, exact resumes, and adapters saved alone.

The corpus is as long as one batch, so the order of samples does not matter and the plain loop needs nothing of the trainer's data path.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training.inside.families import FAMILIES
from tests.training.job import BASE, DDP, FSDP, Job, values, zero
from tests.training.rank import Rank, template, wait
from training.schedule import learning_rate

pytestmark = pytest.mark.training

LENGTH, SAMPLES, STEPS = 32, 8, 6
LORA = {"adapter": {"kind": "lora", "rank": 4, "alpha": 8.0}}
SETTINGS = {key: value for key, value in BASE.items() if key != "model"}
WARM = ("transformers.models.llama.modeling_llama", "transformers.models.auto.modeling_auto", "accelerate", "peft", "huggingface_hub")


@dataclass(frozen=True)
class Models:
    """Tiny models on disk, the text that they are trained on, and the losses of the plain loop."""

    folder: Path
    text: Path

    def settings(self, family: str, **model: object) -> dict:
        """What a run of one of them is told."""
        return {
            "steps": STEPS,
            "model": {"kind": "huggingface", "huggingface": {"source": str(self.folder / family)}, **model},
            "data": {"files": [str(self.text)], "eval_every_nth": SAMPLES + 1},
            "evaluation": {"samples": 1, "every": 3},
            "checkpoint": {"every": 0},
        }

    def call(self, module: str, *arguments: str) -> None:
        """Run a module of tests/training/inside in a process of its own."""
        finished = wait([Rank(arguments, {}, self.folder / "log", f"tests.training.inside.{module}")])
        assert finished.codes == [0], finished.log

    def rows(self, family: str) -> list[bytes]:
        """The beginnings of all rows of its weights, as they lie in memory."""
        file = (self.folder / family / "model.safetensors").read_bytes()
        size = int.from_bytes(file[:8], "little")
        tensors = [entry for name, entry in json.loads(file[8 : 8 + size]).items() if name != "__metadata__" and len(entry["shape"]) == 2]
        data = file[8 + size :]
        starts = [start for entry in tensors for start in range(*entry["data_offsets"], entry["shape"][1] * 4)]
        return [data[start : start + 64] for start in starts]

    def plain_losses(self, job: Job, family: str) -> list[float]:
        """What the plain loop makes of the job's settings."""
        config = job.config()
        adapted = config["model"].get("adapter") is not None
        output, start, file = (job.folder / name for name in ("losses.json", "start", "plain.json"))
        if adapted:
            self.call("families", "start", str(job.write_config()), str(start))
        warmup = config["schedule"]["warmup_steps"]
        settings = {
            "folder": str(self.folder / family),
            "text": str(self.text),
            "length": LENGTH,
            "samples": SAMPLES,
            "lr": [learning_rate(step, peak=3e-3, warmup_steps=warmup, decay_steps=STEPS, floor=0.1) for step in range(STEPS)],
            "weight_decay": 0.1,
            "clip_norm": 1.0,
            "adapter": str(start) if adapted else None,
            "output": str(output),
        }
        job.folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))
        self.call("plain_loop", str(file))
        return json.loads(output.read_text())


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Models:
    template().ask({"import": WARM})
    folder = tmp_path_factory.mktemp("models")
    text = folder / "text"
    text.write_bytes(corpus.read_bytes()[: (SAMPLES + 1) * LENGTH + 1])
    made = Models(folder, text)
    made.call("families", "models", str(folder), *FAMILIES, "wide")
    return made


def make_job(folder: Path, models: Models, family: str, **model: object) -> Job:
    return Job(folder / "runs", models.settings(family, **model), base=SETTINGS)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("engine", "ranks"), [(DDP, 1), (DDP, 2), (FSDP, 2), (zero(3), 2)], ids=["one", "ddp-2", "fsdp-2", "zero-3"])
def test_losses_equal_those_of_the_plain_loop(tmp_path: Path, models: Models, family: str, engine: dict, ranks: int) -> None:
    job = make_job(tmp_path, models, family)
    job.run(ranks=ranks, **engine)
    assert values(job.history(), "loss") == pytest.approx(models.plain_losses(job, family), rel=1e-5)


@pytest.mark.parametrize(("engine", "ranks"), [(DDP, 1), (DDP, 2), (FSDP, 2), (zero(3), 2)], ids=["one", "ddp-2", "fsdp-2", "zero-3"])
def test_adapters_learn_as_they_do_in_the_plain_loop(tmp_path: Path, models: Models, engine: dict, ranks: int) -> None:
    job = make_job(tmp_path, models, "llama", **LORA)
    job.run(ranks=ranks, **engine)
    losses = values(job.history(), "loss")
    assert losses == pytest.approx(models.plain_losses(job, "llama"), rel=1e-5)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("engine", [DDP, FSDP, zero(3)], ids=["ddp", "fsdp", "zero-3"])
@pytest.mark.parametrize("adapter", [{}, LORA], ids=["full", "lora"])
def test_a_run_in_pieces_is_the_unbroken_run(tmp_path: Path, models: Models, engine: dict, adapter: dict) -> None:
    whole, pieces = (make_job(tmp_path / name, models, "qwen3", **adapter) for name in ("whole", "pieces"))
    whole.run(ranks=2, **engine)
    pieces.run(ranks=2, expect=75, stop_after=2, **engine)
    pieces.run(ranks=2, **engine)
    assert values(pieces.history(), "loss") == values(whole.history(), "loss")
    assert pieces.history().evaluations == whole.history().evaluations


@pytest.mark.parametrize(
    ("adapter", "before", "after", "ranks"),
    [({}, zero(3), FSDP, 2), (LORA, FSDP, FSDP, 1), (LORA, zero(3), DDP, 1)],
    ids=["full-zero-3-to-fsdp", "lora-fsdp-to-one", "lora-zero-3-to-one"],
)
def test_another_engine_or_number_of_ranks_goes_on(
    tmp_path: Path, models: Models, adapter: dict, before: dict, after: dict, ranks: int
) -> None:
    whole, pieces = (make_job(tmp_path / name, models, "qwen3", **adapter) for name in ("whole", "pieces"))
    whole.run(engine=DDP["engine"])
    pieces.run(ranks=2, expect=75, stop_after=3, **before)
    pieces.run(ranks=ranks, **after)
    assert values(pieces.history(), "loss") == pytest.approx(values(whole.history(), "loss"), rel=1e-5)


@pytest.mark.parametrize("engine", [DDP, FSDP, zero(3)], ids=["ddp", "fsdp", "zero-3"])
def test_only_the_adapter_is_in_the_checkpoint(tmp_path: Path, models: Models, engine: dict) -> None:
    """Looked for by its bytes, of which some row lies whole on some rank; the same search finds the weights where all are trained."""
    frozen = {}
    for name, model in (("full", {}), ("adapted", LORA)):
        job = make_job(tmp_path / name, models, "llama", **model)
        # A rate of almost nothing, and so weights that stay as they were.
        job.run(ranks=2, expect=75, stop_after=1, optimizer={"lr": 1e-30, "weight_decay": 0.0}, **engine)
        files = [file.read_bytes() for file in job.checkpoints.rglob("engine/**/*") if file.is_file()]
        frozen[name] = sum(row in file for row in models.rows("llama") for file in files)
    assert frozen["full"] > 0
    assert frozen["adapted"] == 0


@pytest.mark.parametrize("ranks", [1, 2])
def test_adapters_learn_over_quantised_weights_and_go_on_exactly(tmp_path: Path, models: Models, ranks: int) -> None:
    quantised = {"adapter": {"kind": "qlora", "rank": 4, "alpha": 8.0}}
    whole, pieces, plain = (
        make_job(tmp_path / name, models, "wide", **model)
        for name, model in (("whole", quantised), ("pieces", quantised), ("plain", {"adapter": {**quantised["adapter"], "kind": "lora"}}))
    )
    for job in (whole, plain):
        job.run(ranks=ranks)
    pieces.run(ranks=ranks, expect=75, stop_after=4)
    pieces.run(ranks=ranks)
    losses = values(whole.history(), "loss")
    assert values(pieces.history(), "loss") == losses
    assert losses[-1] < losses[0]
    assert losses == pytest.approx(values(plain.history(), "loss"), rel=2e-2), "four bits are near the weights"
    assert losses != values(plain.history(), "loss")
    sizes = [sum(file.stat().st_size for file in job.checkpoints.rglob("engine/**/*") if file.is_file()) for job in (whole, plain)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.1), "no quantised weight is saved"


def test_an_adapter_does_not_go_on_over_another_model(tmp_path: Path, models: Models) -> None:
    job = make_job(tmp_path, models, "llama", **LORA)
    job.run(expect=75, stop_after=2)
    moved = models.folder / "moved"
    moved.symlink_to(models.folder / "llama")
    job.run(expect=75, stop_after=1, model={"huggingface": {"source": str(moved)}})
    finished = job.run(expect=78, model={"huggingface": {"source": str(models.folder / "qwen3")}})
    assert "model.huggingface.source: " in finished.log
    assert "the model of the checkpoint of step 3; this one differs from it" in finished.log


def test_a_missing_folder_is_named_on_the_last_line(tmp_path: Path, models: Models) -> None:
    job = make_job(tmp_path, models, "none")
    finished = job.run(expect=78)
    assert "model.huggingface.source: " in finished.log.strip().splitlines()[-1]
    assert "Traceback" not in finished.log
