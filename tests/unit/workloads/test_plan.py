"""The run's configuration is checked where the job is planned: batch identity, warm-up, where checkpoints go."""

from dataclasses import replace

import pytest

from tests.unit.workloads.builders import cpu_job, gpu_job, plan, platform
from workloads.errors import JobError
from workloads.kinds import KINDS

pytestmark = [pytest.mark.unit, pytest.mark.parametrize("kind", KINDS)]
DIRECTORY = {"directory": "/checkpoints"}


def train(**settings):
    return {"steps": 20, "checkpoint": DIRECTORY} | settings


def test_the_batch_identity_is_derived_from_the_world(kind):
    batch = plan(gpu_job(kind, train=train(batch={"micro": 2, "global_batch": 256}))).batch
    assert (batch.micro, batch.accumulation, batch.replicas, batch.global_batch) == (2, 4, 32, 256)


WIDE = {"dim": 512, "num_layers": 8, "num_heads": 8, "num_kv_heads": 8, "ffn_dim": 1536}


def test_tensor_and_pipeline_ranks_do_not_multiply_the_batch(kind):
    settings = train(model=WIDE, parallel={"tensor": 8, "pipeline": 4}, batch={"micro": 1, "accumulation": 32})
    job = plan(gpu_job(kind, numWorkers=8, train=settings))
    assert str(job.layout) == "pipeline 4 x replicate 2 x tensor 8 = 64 ranks"
    assert (job.batch.replicas, job.batch.global_batch, job.warnings) == (2, 64, [])


def test_a_tensor_group_that_spans_workers_is_refused_at_preview(kind):
    settings = train(model={**WIDE, "num_heads": 16, "num_kv_heads": 16}, parallel={"tensor": 16}, batch={"micro": 1})
    with pytest.raises(JobError) as refused:
        plan(gpu_job(kind, numWorkers=8, train=settings))
    assert (refused.value.path, refused.value.value) == ("train.parallel.tensor", 16)
    assert "a divisor of the 8 ranks of a node" in refused.value.allowed


def test_shard_groups_over_several_workers_are_warned_of(kind):
    settings = train(engine={"kind": "fsdp"}, parallel={"replicate": 2}, batch={"micro": 1})
    job = plan(gpu_job(kind, numWorkers=8, train=settings))
    assert job.warnings == ["parallel.shard = 32: its groups span nodes of 8 ranks, so that their traffic leaves the node"]


def test_the_run_is_named_after_the_job_unless_stated(kind):
    assert plan(cpu_job(kind)).train.name == "pretrain"
    assert plan(cpu_job(kind, train=train(name="other"))).train.name == "other"


@pytest.mark.parametrize(
    ("settings", "path", "allowed"),
    [
        (train(batch={"micro": 3, "global_batch": 256}), "train.batch", "3 x data-parallel replicas 2 = 6"),
        (train(batch={"micro": 1, "accumulation": 3, "global_batch": 9}), "train.batch", "9 is not a multiple of micro batch 1"),
        (train(batch={"micro": 1, "accumulation": 3, "global_batch": 8}), "train.batch", "set accumulation to 4"),
        (train(schedule={"warmup_steps": 20}), "train.schedule.warmup_steps", "fewer than steps = 20"),
        (train(schedule={"warmup": 5}), "train.schedule.warmup", "did you mean warmup_steps?"),
        (train(engine={"kind": "deepspeed"}), "train.engine.zero_stage", "0, 1, 2 or 3"),
        (train(distributed={"backend": "nccl"}), "train.distributed.backend", "gloo"),
        (train(parallel={"tensor": 4}, model={"num_kv_heads": 4}), "train.parallel.tensor", "to divide the world size 2; use 4 ranks"),
        (train(parallel={"tensor": 4}), "train.model.num_kv_heads", "a multiple of parallel.tensor = 4"),
        (train(parallel={"shard": 2}), "train.parallel.shard", "nothing when engine.kind is ddp"),
        (train(checkpoint={"directory": "/tmp/runs"}), "train.checkpoint.directory", "writable mounts: /checkpoints"),
        ({"checkpoint": DIRECTORY}, "train.steps", "required"),
    ],
)
def test_a_run_that_would_fail_in_the_pod_is_refused_before(kind, settings, path, allowed):
    with pytest.raises(JobError) as refused:
        plan(cpu_job(kind, train=settings))
    assert refused.value.path == path
    assert allowed in refused.value.allowed


def test_checkpoints_on_a_read_only_mount_are_refused(kind):
    with pytest.raises(JobError, match="a folder in one of the job's writable mounts"):
        plan(cpu_job(kind, mounts=[{"claim": "checkpoints", "path": "/checkpoints", "readOnly": True}]))


@pytest.mark.parametrize(
    ("changes", "pool", "limit"),
    [
        ({"pool": "p5"}, "p5", 3600),
        ({"pool": "p5-tcp", "efa": False}, "p5-tcp", 1800),
        # Whatever pool offers the type may be the one.
        ({"pool": None, "instanceType": "p5.48xlarge"}, "p5-tcp", 1800),
    ],
)
def test_a_grace_that_the_pool_s_nodes_do_not_have_is_refused_with_both(kind, changes, pool, limit):
    assert plan(gpu_job(kind, terminationGraceSeconds=limit, **changes)).spec.termination_grace_seconds == limit
    with pytest.raises(JobError) as refused:
        plan(gpu_job(kind, terminationGraceSeconds=limit + 1, **changes))
    assert (refused.value.path, refused.value.value) == ("terminationGraceSeconds", limit + 1)
    assert f"at most {limit}, the terminationGracePeriod of pool '{pool}'" in refused.value.allowed
    assert "lower it, or raise that in the platform's settings" in refused.value.allowed


def test_the_launcher_s_pool_counts_only_where_there_is_a_launcher(kind):
    job = cpu_job(kind, launcherPool="p5-tcp", terminationGraceSeconds=1801)
    if kind != "mpi":
        assert plan(job)
        return
    with pytest.raises(JobError, match=r"terminationGraceSeconds: 1801 is refused; allowed: at most 1800, .* of pool 'p5-tcp'"):
        plan(job)


def test_a_pool_that_names_no_grace_limits_none(kind):
    """As managed node groups, and platforms that were brought up before pools said it."""
    assert plan(cpu_job(kind, terminationGraceSeconds=100_000)).drain_seconds == 99_990
    known = platform()
    silent = {name: replace(pool, termination_grace_seconds=None) for name, pool in known.pools.items()}
    assert plan(gpu_job(kind, terminationGraceSeconds=100_000), replace(known, pools=silent))
