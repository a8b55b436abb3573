"""Every finding of the pre-flight, from facts of hosts that this machine does not have."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from training.config import EngineConfig, PreflightConfig
from training.layout import Layout
from training.preflight.checks import Findings, check_bandwidth, check_facts, check_transport
from training.preflight.facts import Facts, count_efa_devices, free_host_mib
from training.preflight.memory import state_bytes
from training.preflight.run import _stored_bytes
from training.preflight.transport import Transport

VERSIONS = {"python": "3.11.7", "torch": "2.15.0", "nccl": "2.29.2"}


def host(rank: int) -> Facts:
    """A rank of two hosts with two devices each, all well."""
    return Facts(
        host=f"host-{rank // 2}",
        time=1000.0,
        versions=VERSIONS,
        device="cuda",
        device_id=f"GPU-{rank}",
        num_devices=2,
        expected_ranks=2,
        free_mib=80_000,
        shared_memory_mib=8000,
        memlock_mib=None,
        efa_devices=16,
        fabric="efa",
    )


def findings(changes: dict[int, dict], **config: object) -> Findings:
    facts = [replace(host(rank), **changes.get(rank, {})) for rank in range(4)]
    return check_facts(facts, PreflightConfig.from_mapping(config), needed_mib=10_000)


def test_hosts_that_are_well_have_no_findings() -> None:
    assert findings({}) == Findings()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({3: {"versions": VERSIONS | {"torch": "2.14.0"}}}, "rank 3 (host-1) have torch 2.14.0, where rank 0 has 2.15.0"),
        (
            {rank: {"versions": {"python": "3.11.7", "torch": "2.15.0"}} for rank in (2, 3)},
            "ranks 2, 3 (host-1) have nccl none, where rank 0 has 2.29.2",
        ),
        ({1: {"device_id": "GPU-0"}}, "ranks 0, 1 share one device of host-0"),
        ({rank: {"num_devices": 4, "expected_ranks": 8} for rank in range(4)}, "rank 0 on host-0 sees 4 devices for 8 ranks of its host"),
        ({2: {"free_mib": 9_999}}, "rank 2 on host-1 needs 10000 MiB for its state, and 9999 MiB are free"),
        (
            {rank: {"device": "cpu", "device_id": "", "free_mib": 15_000} for rank in range(4)},
            "rank 0 on host-0 needs 10000 MiB for its state, as do all 2 ranks there, and 15000 MiB are free",
        ),
        ({0: {"shared_memory_mib": 64}, 1: {"shared_memory_mib": 64}}, "/dev/shm of host-0 has 64 MiB; 128 MiB are needed"),
        ({3: {"time": 1031.0}}, "clocks differ: rank 0 on host-0 is 31.0 s behind rank 3 on host-1"),
    ],
    ids=["version", "missing-version", "device-twice", "few-devices", "memory", "host-memory", "shared-memory", "clock"],
)
def test_a_problem_names_rank_host_and_numbers(changes: dict, problem: str) -> None:
    found = findings(changes)
    assert any(line.startswith(problem) for line in found.problems), found.problems


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({rank: {"num_devices": 8} for rank in range(2)}, "host-0 has 8 devices but 2 ranks; the others stay idle"),
        ({2: {"memlock_mib": 8}}, "host-1 may pin only 8 MiB (memlock)"),
        ({rank: {"efa_devices": 0} for rank in range(4)}, "FI_PROVIDER is efa but ranks 0, 1, 2, 3 see no EFA interface"),
    ],
    ids=["idle", "memlock", "efa-by-name-only"],
)
def test_a_warning_does_not_end_the_run(changes: dict, warning: str) -> None:
    found = findings(changes)
    assert found.problems == []
    assert any(line.startswith(warning) for line in found.warnings), found.warnings


def test_a_rank_that_is_shown_its_own_device_alone_is_no_problem() -> None:
    assert findings({rank: {"num_devices": 1} for rank in range(4)}) == Findings()


def test_sockets_end_the_run_where_efa_is_demanded_and_are_a_warning_elsewhere() -> None:
    facts = [host(rank) for rank in range(4)]
    fallen_back = [Transport("efa", 16), Transport("efa", 16), Transport("sockets"), Transport("sockets")]
    demanded = check_transport(fallen_back, facts, PreflightConfig(transport="efa"))
    assert demanded.problems[0].startswith("NCCL does not use EFA but sockets (TCP) on ranks 2, 3; rank 2 on host-1 sees 16 EFA interfaces")
    tolerated = check_transport(fallen_back, facts, PreflightConfig())
    assert (tolerated.problems, len(tolerated.warnings)) == ([], 1)
    assert check_transport([Transport("efa", 16)] * 4, facts, PreflightConfig(transport="efa")) == Findings()
    unknown = check_transport([Transport("unknown")] * 4, facts, PreflightConfig(transport="efa"))
    assert unknown.problems, "what cannot be told is not taken for EFA"


def test_slow_links_end_the_run_where_a_bandwidth_is_demanded() -> None:
    demand = PreflightConfig(min_bandwidth_gb_per_second=100.0)
    assert check_bandwidth(99.0, demand).problems == ["bus bandwidth is 99.00 GB/s; preflight.min_bandwidth_gb_per_second asks for 100"]
    assert check_bandwidth(101.0, demand) == Findings()
    assert check_bandwidth(0.001, PreflightConfig()) == Findings()


@pytest.mark.parametrize(
    ("stage", "bytes_each"),
    [(0, 16.0), (1, 4 + 4 + 8 / 4), (2, 4 + (4 + 8) / 4), (3, 16 / 4)],
)
def test_state_of_each_zero_stage(stage: int, bytes_each: float) -> None:
    engine = EngineConfig(kind="deepspeed", zero_stage=stage)  # ty: ignore[invalid-argument-type]
    assert state_bytes(1000, engine, Layout(replicate=4), on_host=False) == 1000 * bytes_each
    assert state_bytes(1000, engine, Layout(replicate=4, tensor=2), on_host=False) == 500 * bytes_each


def test_replicas_divide_nothing_and_shards_everything() -> None:
    assert state_bytes(1000, EngineConfig(), Layout(replicate=4), on_host=False) == 16_000
    assert state_bytes(1000, EngineConfig(), Layout(replicate=2, shard=4), on_host=False) == 4_000


def test_what_is_offloaded_takes_the_host_s_memory_and_not_the_device_s() -> None:
    engine = EngineConfig(kind="deepspeed", zero_stage=3, offload_optimizer="cpu", offload_parameters="cpu")
    layout = Layout(replicate=4)
    assert state_bytes(1000, engine, layout, on_host=False) == 1_000
    assert state_bytes(1000, engine, layout, on_host=True) == 4_000


def test_efa_interfaces_are_told_by_their_driver(tmp_path: Path) -> None:
    drivers = tmp_path / "drivers"
    for number, driver in enumerate(("efa", "efa", "mlx5_core")):
        (drivers / driver).mkdir(parents=True, exist_ok=True)
        device = tmp_path / "infiniband" / f"rdma{number}" / "device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to(drivers / driver)
    assert count_efa_devices(tmp_path / "infiniband") == 2
    assert count_efa_devices(tmp_path / "nothing") == 0


def test_the_host_has_some_memory_free() -> None:
    assert free_host_mib() > 100


def test_what_is_frozen_is_counted_as_weights_alone_and_divided_where_weights_are() -> None:
    layout = Layout(replicate=4)
    assert state_bytes(10, EngineConfig(), layout, on_host=False, frozen_bytes=4_000) == 160 + 4_000
    for stage, expected in ((1, 4_000), (3, 1_000)):
        engine = EngineConfig(kind="deepspeed", zero_stage=stage)
        assert state_bytes(0, engine, layout, on_host=False, frozen_bytes=4_000) == expected


@pytest.mark.parametrize(("stage", "precision", "size"), [(3, "bf16", 2), (3, "fp32", 4), (2, "bf16", 4), (None, "bf16", 4)])
def test_a_frozen_weight_is_counted_in_the_precision_that_it_is_made_in(stage: int | None, precision: str, size: int) -> None:
    engine = EngineConfig(kind="ddp" if stage is None else "deepspeed", zero_stage=stage, precision=precision)  # ty: ignore[invalid-argument-type]
    assert _stored_bytes(torch.empty(3, device="meta"), engine) == size
    assert _stored_bytes(torch.empty(3, dtype=torch.uint8), engine) == 1
