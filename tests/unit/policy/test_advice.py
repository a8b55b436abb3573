"""Parts of a mandatory rule that are only advice, beside what the same rule refuses."""

from collections.abc import Sequence

import pytest

from guardrails import RULES, tokens
from guardrails.judge import by_id
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing, analyze
from tests.unit.policy.cases import (
    batch_job,
    checkpointing,
    csi,
    custom_resource,
    deepspeed,
    eks,
    mpi,
    network,
    pod,
    pod_memory,
    ray,
    volcano,
)

pytestmark = pytest.mark.policy

RULE_BY_ID = by_id(RULES)
CLOSED_FABRIC = (
    network.group("nodes", **network.CLOSED, **network.ML),
    network.carrying(network.ML, interfaces=0),
    b.node_pool({"spec/template/metadata/labels": {"pool": "p5"}}),
)
ADVICE: Sequence[tuple[str, tuple[Thing, ...]]] = (
    ("CSI05", (csi.BARE_EFS,)),
    ("EFA04", CLOSED_FABRIC),
    ("DSP05", (deepspeed.zero(2, cpu_offload=True),)),
    ("DSP05", (deepspeed.zero(3, **{deepspeed.OLD_GATHER: True}),)),
    ("CSI04", (csi.volume(csi.OF_SHARED), csi.claim("1Gi", {**csi.NAMING, **csi.NO_CLASS}))),
    ("CSI04", (csi.lustre(), csi.volume(csi.OF_SHARED), csi.claim("1Gi"))),
    ("DSP06", (deepspeed.checkpointed(number_checkpoints=None),)),
    ("DSP06", (deepspeed.checkpointed(partition_activations=False),)),
    ("JOB03", (batch_job.torchrun("--nnodes=4", "--nproc-per-node=musa", *batch_job.C10D),)),
    ("EKS09", (eks.trusting(eks.EC2), eks.taking(eks.IDENTITY, "roleArn", eks.PODS_ROLE))),
    ("KRP08", (b.node_pool({"spec/limits": {"nvidia.com/gpu": 8, "memory": "1000Gi"}}),)),
    ("MPI01", (b.mpi_job({mpi.WORKER_COMMAND: ["python3", "agent.py"]}),)),
    ("EFA06", (pod.efa_on(16, "p5.48xlarge"),)),
    ("POD07", (pod_memory.working(),)),
    ("POD07", (pod_memory.working(pod_memory.SMALL, "/dev/shm"),)),
    ("POD07", (pod_memory.working(pod_memory.SMALL, sizeLimit="1Gi"),)),
    ("POD07", (pod_memory.shm(),)),
    ("POD09", (pod_memory.trainer(pod_memory.KEPT),)),
    ("POD09", (pod_memory.trainer(terminationGracePeriodSeconds=300, nodeSelector={"eks.amazonaws.com/nodegroup": "gpu"}),)),
    ("CKP01", (checkpointing.ray(tokens.RAY_CLUSTER, "python train.py"), checkpointing.trainer_code("/tmp/x"))),
    ("CKP02", (checkpointing.gang("--output_dir /state/run --save_strategy=no"),)),
    ("DSP07", (deepspeed.schedule("CosineAnnealingWarmRestarts", T_0=100),)),
    ("DSP05", (deepspeed.ds(checkpoint={"auto_resume": True}),)),
    ("ENV01", (network.pod(env={"NCCL_EFA_ENABLE": "1"}),)),
    ("RAY04", (ray.ending(),)),
    ("VOL01", (b.mpi_job({volcano.GANG: {"queue": "training"}}),)),
    ("VOL01", (volcano.steps(3, volcano.SERVERS),)),
    ("VOL03", (volcano.policies(volcano.EVICTED, **{"spec/maxRetry": 2}),)),
)
REFUSED: Sequence[tuple[str, tuple[Thing, ...]]] = (
    ("CSI05", (csi.efs_only(uid="1000"), csi.STATIC_EFS)),
    ("EFA04", (*CLOSED_FABRIC, network.pod({"pool": "p5"}, efa=32))),
    ("DSP05", (deepspeed.zero(2, cpu_offload=True, offload_optimizer=None),)),
    ("CSI04", (csi.volume(csi.OF_SHARED), csi.claim("1Gi", csi.STATIC))),
    ("EKS09", (eks.of_account("123456789012"), eks.taking(eks.IDENTITY, "roleArn", eks.PODS_ROLE))),
    ("KRP08", (b.node_pool({"spec/limits": {"nvidia.com/gpu": 4}}),)),
    ("MPI01", (b.mpi_job({mpi.WORKER_COMMAND: ["sleep", "infinity"]}),)),
    ("JOB03", (batch_job.torchrun("--nnodes=4", "--nproc-per-node=gpus", *batch_job.C10D),)),
    ("DSP05", (deepspeed.zero(3, cpu_offload_use_pin_memory=True),)),
    ("KUB01", (custom_resource.fault_tolerant(),)),
    ("POD07", (pod_memory.shm(limits={GPU: 8}),)),
    ("POD07", (pod_memory.shm(sizeLimit="500Gi"),)),
    ("POD07", (pod_memory.working(None, "/dev/shm"),)),
    ("POD07", (pod_memory.working(pod_memory.SMALL, "/dev/shm", sizeLimit="1Gi"),)),
    ("POD09", (pod_memory.trainer(terminationGracePeriodSeconds=300),)),
    ("POD09", (pod_memory.trainer(terminationGracePeriodSeconds=300, nodeSelector={"role": "gpu"}),)),
    ("CKP01", (checkpointing.ray(tokens.RAY_CLUSTER), checkpointing.trainer_code("/tmp/x"))),
    ("CKP02", (checkpointing.gang("--output_dir /state/run --save_on_each_node"),)),
    ("DSP07", (deepspeed.schedule("CosineAnnealingLR"),)),
    ("ENV01", (network.pod(env={"NCCL_NET": "efa"}),)),
    ("RAY04", (ray.ending({ray.TTL: 600}),)),
    ("VOL01", (b.mpi_job({volcano.GANG: {"minAvailable": 5}}),)),
    ("VOL01", (b.volcano_job({"spec/minAvailable": 3}),)),
    ("VOL03", (volcano.policies(volcano.EVICTED, volcano.FAILED_ENDS),)),
)


@pytest.mark.parametrize(("rule", "things", "mandatory"), [(*case, False) for case in ADVICE] + [(*case, True) for case in REFUSED])
def test_only_what_fails_for_certain_is_refused(rule: str, things: tuple[Thing, ...], mandatory: bool) -> None:
    assert {each.mandatory for each in analyze(*things, rules=[RULE_BY_ID[rule]])} == {mandatory}
