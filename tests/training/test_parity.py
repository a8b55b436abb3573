"""Every way of spreading a run over ranks computes the same run: one process is the reference.

fp32 on one thread: what differs is the order of sums, so losses agree to 1e-5 relative and the learning rate exactly.

By default the whole trainer runs a few strategies, and `training.parity`, which also compares the weights, some more.
TRAINYARD_PARITY=all gives it every strategy and number of ranks there is, for as long as that takes:

    TRAINYARD_PARITY=all pytest tests/training/test_parity.py -k harness
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.training.job import CONTEXT, DDP, FSDP, TENSOR, Job, values, zero
from tests.training.rank import REPOSITORY, environment, training_python
from training.history import History
from training.parity import LOSS_TOLERANCE, NORM_TOLERANCE, WEIGHT_TOLERANCE
from training.parity_cases import CASES

pytestmark = pytest.mark.training


WHOLE_TABLE = os.environ.get("TRAINYARD_PARITY") == "all"
# One of each kind; what the whole trainer runs below is left out.
SELECTION = {
    "FSDP2, offloaded to the CPU, 2 ranks",
    "FSDP2, recomputed selectively, 2 ranks",
    "HSDP 2 x 2, 4 ranks",
    "FSDP2 2 x CP 2, 4 ranks",
    "DDP 2 x TP 2, 4 ranks",
    "FSDP2 2 x TP 2, 4 ranks",
    "ZeRO-2, optimizer offloaded, 2 ranks",
    "ZeRO-3, both offloaded, 2 ranks",
    "MoE, HSDP 2 x 2, EP 2, 4 ranks",
    "MoE, FSDP2 2 x TP 2, EP 2, 4 ranks",
    "PP 2 x FSDP2 2, interleaved, 4 ranks",
    "PP 2 x TP 2, 4 ranks",
}
# Settings, ranks and micro batch.
STRATEGIES: dict[str, tuple[dict, int, int]] = {
    "ddp-2": (DDP, 2, 2),
    "ddp-4": (DDP, 4, 2),
    "no-accumulation": (DDP, 1, 8),
    "fsdp-2": (FSDP, 2, 2),
    "tensor-2": (TENSOR, 2, 2),
    "context-2": (CONTEXT, 2, 2),
    **{f"zero-{stage}": (zero(stage), 2, 2) for stage in range(4)},
    "zero-3-recomputed": ({**zero(3), "model": {"activation_checkpointing": "full"}}, 2, 2),
}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> History:
    job = Job(tmp_path_factory.mktemp("reference"), {"data": {"files": [str(corpus)]}})
    job.run()
    return job.history()


@pytest.mark.parametrize(("engine", "ranks", "micro"), STRATEGIES.values(), ids=STRATEGIES)
def test_losses_equal_those_of_a_single_process(job: Job, reference: History, engine: dict, ranks: int, micro: int) -> None:
    job.run(ranks=ranks, batch={"micro": micro}, **engine)
    history = job.history()
    assert values(history, "lr") == values(reference, "lr"), "the rate must depend on the optimizer step alone"
    assert values(history, "loss") == pytest.approx(values(reference, "loss"), rel=1e-5)
    assert values(history, "grad_norm") == pytest.approx(values(reference, "grad_norm"), rel=1e-4)
    assert history.evaluations == pytest.approx(reference.evaluations, rel=1e-5)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """What the parity command says of each case, by name."""
    results = tmp_path_factory.mktemp("parity") / "results.json"
    command = [training_python(), "-m", "training.parity", "--json", str(results)]
    command += [] if WHOLE_TABLE else ["--exactly", *SELECTION]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {result["name"]: result for result in json.loads(results.read_text())}


@pytest.mark.parametrize("name", [case.name for case in CASES if WHOLE_TABLE or case.name in SELECTION])
def test_the_harness_finds_the_losses_and_weights_of_a_single_process(measured: dict[str, dict], name: str) -> None:
    assert measured[name]["loss_deviation"] <= LOSS_TOLERANCE
    assert measured[name]["norm_deviation"] <= NORM_TOLERANCE
    assert measured[name]["weight_deviation"] <= WEIGHT_TOLERANCE


def test_the_harness_knows_a_strategy_that_computes_something_else(tmp_path: Path) -> None:
    """Half of the samples dropped and one weight decay forgotten: both must show, or the table says nothing."""
    results = tmp_path / "results.json"
    program = (
        "import dataclasses, sys, training.parity as parity, training.parity_cases as cases;"
        "wrong = cases.Case('wrong', 2, {'optimizer': {'weight_decay': 0.0}});"
        "parity.CASES = (wrong, cases.Case('less', 2, {'batch': {'global_batch': 4}}));"
        "sys.exit(parity.main(['--json', sys.argv[1]]))"
    )
    command = [training_python(), "-c", program, str(results)]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    wrong, less = json.loads(results.read_text())
    assert wrong["weight_deviation"] > 10 * WEIGHT_TOLERANCE
    assert less["loss_deviation"] > 10 * LOSS_TOLERANCE


@pytest.mark.parametrize("precise", [zero(0), zero(1), zero(2), zero(3), FSDP], ids=["zero-0", "zero-1", "zero-2", "zero-3", "fsdp"])
def test_bf16_stays_near_fp32(job: Job, reference: History, precise: dict) -> None:
    """Weights in bf16, master weights and sums in fp32: 2e-4 from fp32 was measured; sums in bf16 would be off by 8e-3."""
    job.run(ranks=2, engine={**precise["engine"], "precision": "bf16"})
    losses = values(job.history(), "loss")
    assert losses == pytest.approx(values(reference, "loss"), rel=1e-3)
    assert losses != values(reference, "loss")
