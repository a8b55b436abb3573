"""A model that ZeRO-3 divides is divided while it is made: what a rank holds does not grow with the model, but with its part of it."""

from dataclasses import asdict

import pytest

from tests.training.job import Job, zero
from tests.training.rank import Rank, contract, wait
from training.config import ModelConfig
from training.flops import count_parameters

pytestmark = pytest.mark.training
RANKS = 4
MODEL = ModelConfig(dim=128, num_layers=6, num_heads=4, num_kv_heads=2, ffn_dim=512)
LARGEST = MODEL.dim * MODEL.ffn_dim


@pytest.mark.parametrize(("precision", "size"), [("fp32", 4), ("bf16", 2)])
def test_a_rank_never_holds_more_than_its_part_and_one_parameter(job: Job, precision: str, size: int) -> None:
    config = str(
        job.write_config(model=asdict(MODEL), steps=1, schedule={"warmup_steps": 0}, evaluation={"every": 0}, **zero(3, precision))
    )
    ranks = [
        Rank(["--config", config], environ, job.folder / f"rank-{index}", module="tests.training.held")
        for index, environ in enumerate(contract(RANKS))
    ]
    finished = wait(ranks)
    assert finished.codes == [0] * RANKS, finished.log
    whole = count_parameters(MODEL) * size
    for log in finished.logs:
        most = int(log.split("at most ")[1].split(" bytes")[0])
        # Parts are rounded up, of a norm's weights by a few values each.
        assert whole / RANKS * 0.99 < most < whole / RANKS * 1.02 + LARGEST * size
