"""The trainer's benchmarks work at the smallest size; what they measure counts only where nothing else runs."""

import json

import pytest

from benchmarks.gpu import verdict
from benchmarks.step import Blocks
from tests.training.job import Job
from tests.training.rank import Finished, Rank, end, wait

pytestmark = pytest.mark.training


def run(job: Job, module: str, *arguments: str) -> Finished:
    job.folder.mkdir(parents=True, exist_ok=True)
    process = Rank(arguments, {}, job.folder / "output", module=module)
    try:
        return wait([process], 120)
    finally:
        end([process])


def test_the_gpu_script_trains_with_every_engine(job: Job) -> None:
    sizes = ["--size", "tiny", "--micro", "1", "--length", "32", "--steps", "4"]
    finished = run(job, "benchmarks.gpu", *sizes, "--output", str(job.folder / "results.json"))
    assert finished.codes == [0], finished.log
    results = json.loads((job.folder / "results.json").read_text())
    losses = [results[engine]["last_loss"] for engine in ("plain", "fsdp", "zero3")]
    assert losses == pytest.approx([losses[0]] * 3, rel=2e-2), "the same model on the same data"
    assert all(results[engine]["tokens_per_second"] > 0 for engine in ("plain", "fsdp", "zero3"))
    assert results["matmul_tflops"] > 0


def test_goals_of_a_gpu_are_held_against_the_rate_of_the_same_run() -> None:
    plain = {"model_tflops": 480.0, "tokens_per_second": 1000.0}
    results = {"matmul_tflops": 790.0, "plain": plain, "fsdp": plain | {"tokens_per_second": 951.0}, "zero3": {"error": "missing"}}
    assert verdict(results) == {"plain": True, "fsdp": True}
    assert verdict(results | {"matmul_tflops": 801.0})["plain"] is False
    assert verdict(results | {"fsdp": plain | {"tokens_per_second": 949.0}})["fsdp"] is False


def test_the_step_benchmark_alternates_two_loops_that_learn_the_same(job: Job) -> None:
    sizes = ["--rounds", "2", "--steps", "3", "--dim", "64", "--layers", "1", "--micro", "1", "--length", "16"]
    finished = run(job, "benchmarks.step", *sizes)
    assert finished.codes in ([0], [1]), finished.log
    bare, trainer, result = finished.log.strip().splitlines()[-3:]
    assert bare.startswith("bare: ")
    assert bare.rpartition(" ")[2][:5] == trainer.rpartition(" ")[2][:5], "last losses differ"
    assert json.loads(result)["goal"] == 1.03


def test_the_fastest_blocks_count() -> None:
    blocks = Blocks(seconds={"bare": [2.0, 1.0], "trainer": [1.03, 9.0]})
    assert blocks.ratio == pytest.approx(1.03)
