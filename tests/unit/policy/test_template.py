"""How many pods a resource makes of each of its templates."""

from typing import Any

import pytest

from guardrails import tokens
from guardrails.node import Node
from guardrails.rule import Resource
from guardrails.template import pod_templates

pytestmark = pytest.mark.policy

_TEMPLATE = {"template": {"spec": {"containers": [{"name": "main"}]}}}


def counts(kind: str, spec: dict[str, Any]) -> list[int]:
    resource = Resource(type=kind, name="it", urn="urn", properties=Node({"spec": spec}, owner="it"))
    return [template.replicas for template in pod_templates(resource)]


@pytest.mark.parametrize(
    ("kind", "spec", "pods"),
    [
        (tokens.POD, {}, [1]),
        (tokens.JOB, _TEMPLATE, [1]),
        (tokens.JOB, {**_TEMPLATE, "parallelism": 4}, [4]),
        (tokens.CRON_JOB, {"jobTemplate": {"spec": {**_TEMPLATE, "parallelism": 3}}}, [3]),
        (tokens.STATEFUL_SET, _TEMPLATE, [1]),
        (tokens.DEPLOYMENT, {**_TEMPLATE, "replicas": 0}, [0]),
        (tokens.MPI_JOB, {"mpiReplicaSpecs": {"Launcher": _TEMPLATE, "Worker": _TEMPLATE}}, [1, 0]),
        (tokens.MPI_JOB, {"mpiReplicaSpecs": {"Worker": {**_TEMPLATE, "replicas": 8}}}, [8]),
        (tokens.VOLCANO_JOB, {"tasks": [_TEMPLATE, {**_TEMPLATE, "replicas": 2}]}, [0, 2]),
        (tokens.HYPERPOD_JOB, {"replicaSpecs": [{**_TEMPLATE, "replicas": 4, "spares": 2}, _TEMPLATE]}, [4, 0]),
        (tokens.TRAIN_JOB, {"trainer": {"numNodes": 4}}, [4]),
        (tokens.TRAIN_JOB, {}, [1]),
        (tokens.RAY_CLUSTER, {"headGroupSpec": _TEMPLATE, "workerGroupSpecs": [_TEMPLATE]}, [1, 1]),
        (tokens.RAY_CLUSTER, {"headGroupSpec": _TEMPLATE, "workerGroupSpecs": [{"replicas": 2, "numOfHosts": 4}]}, [1, 8]),
        (tokens.RAY_CLUSTER, {"headGroupSpec": _TEMPLATE, "workerGroupSpecs": [{"replicas": 1, "minReplicas": 3}]}, [1, 3]),
        (tokens.RAY_CLUSTER, {"headGroupSpec": _TEMPLATE, "workerGroupSpecs": [{"replicas": 0}]}, [1, 0]),
        (tokens.RAY_SERVICE, {"rayClusterConfig": {"headGroupSpec": _TEMPLATE, "workerGroupSpecs": [{"replicas": 3}]}}, [1, 3]),
        (tokens.RAY_JOB, {"rayClusterSpec": {"headGroupSpec": _TEMPLATE}, "submitterPodTemplate": {"spec": {}}}, [1, 1]),
        (tokens.REPLICA_SET, {**_TEMPLATE, "replicas": 2}, [2]),
        (tokens.REPLICATION_CONTROLLER, _TEMPLATE, [1]),
        (tokens.JOB_SET, {"replicatedJobs": [{"template": {"spec": {**_TEMPLATE, "parallelism": 4}}}]}, [4]),
        (tokens.JOB_SET, {"replicatedJobs": [{"replicas": 3, "template": {"spec": {**_TEMPLATE, "parallelism": 4}}}]}, [12]),
        (tokens.LEADER_WORKER_SET, {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": {}}}, [8]),
        (
            tokens.LEADER_WORKER_SET,
            {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "leaderTemplate": {}, "workerTemplate": {}}},
            [2, 6],
        ),
        (tokens.LEADER_WORKER_SET, {"leaderWorkerTemplate": {"workerTemplate": {}}}, [1]),
        (tokens.NODE_SET, {"slurmd": {}, "replicas": 5}, [5]),
        (tokens.RAY_JOB, {"rayClusterSpec": {"headGroupSpec": _TEMPLATE, "workerGroupSpecs": [{"replicas": 5}]}}, [1, 5]),
    ],
)
def test_a_count_that_is_left_out_is_what_the_controller_takes_for_it(kind: str, spec: dict[str, Any], pods: list[int]) -> None:
    assert counts(kind, spec) == pods
