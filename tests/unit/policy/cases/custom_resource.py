"""Custom resources against their definitions."""

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid

REQUIREMENT = "spec/template/spec/requirements/0"
QUEUE = "kubernetes:scheduling.volcano.sh/v1beta1:Queue"


def queue(**spec: object) -> Thing:
    return Thing(type=QUEUE, name="queue", properties={"metadata": {"name": "queue"}, "spec": spec})


CASES = (
    invalid("KUB01", b.node_pool({"metadata/name": "a" * 254}), says="at most 253 lower-case letters", edge=True),
    valid("KUB01", b.node_pool({"apiVersion": "karpenter.sh/v1", "kind": "NodePool"})),
    valid("KUB01", b.node_pool({"metadata/name": "a" * 253}), edge=True),
    valid("KUB01", b.node_pool()),
    valid("KUB01", b.mpi_job()),
    valid("KUB01", b.volcano_job()),
    valid("KUB01", queue(weight=1, capability={"cpu": "4", "nvidia.com/gpu": 8})),
    valid("KUB01", b.node_pool({"metadata/labels": {"team": "a_b.c-1"}, "spec/weight": None})),
    valid("KUB01", b.node_pool({"spec/weight": 100}), edge=True),
    valid("KUB01", b.node_pool({"metadata/labels": {"team": "a" * 63}}), edge=True),
    valid("KUB01", b.node_pool({f"{REQUIREMENT}/minValues": 50}), edge=True),
    invalid("KUB01", b.node_pool({"spec/weight": 101}), says="spec.weight is 101; allowed: at most 100", edge=True),
    invalid("KUB01", b.node_pool({"metadata/labels": {"team": "a" * 64}}), says="at most 63", edge=True),
    invalid("KUB01", b.node_pool({f"{REQUIREMENT}/minValues": 51}), says="at most 50", edge=True),
    invalid("KUB01", b.node_pool({f"{REQUIREMENT}/minValues": 0}), says="at least 1", edge=True),
    invalid("KUB01", b.node_pool({f"{REQUIREMENT}/operator": "in"}), says="operator is in; allowed: one of Gte, Lte, In"),
    invalid("KUB01", b.node_pool({f"{REQUIREMENT}/operator": b.DELETE}), says="requirements[0].operator is unset; allowed: set"),
    invalid("KUB01", b.node_pool({"spec/disruption/budgets": [{"nodes": 1}]}), says="budgets[0].nodes is 1 (integer); allowed: a string"),
    invalid("KUB01", b.node_pool({"spec/template/spec/taints/0/effect": "NoSchedul"}), says="effect is NoSchedul"),
    invalid("KUB01", b.node_pool({"spec/template/spec/expireAfter": "soon"}), says="text of the form"),
    invalid("KUB01", b.node_pool({"spec/limits": {"cpu": True}}), says="limits.cpu is true (boolean)"),
    invalid("KUB01", b.node_pool({"spec/template/spec/expireafter": "Never"}), says="expireafter is Never; allowed: one of expireAfter"),
    invalid("KUB01", b.node_pool({"metadata/name": "P5"}), says="metadata.name is P5"),
    invalid("KUB01", b.node_pool({"metadata/labels": {"team": 3}}), says="metadata.labels.team is 3"),
    invalid("KUB01", b.mpi_job({"spec/slotsPerWorker": "8"}), says="slotsPerWorker is 8 (string); allowed: an integer"),
    invalid("KUB01", b.volcano_job({"spec/tasks/0/replicas": 1.5}), says="replicas is 1.5 (number); allowed: an integer"),
    invalid("KUB01", queue(weight=2**31), says="a whole number that int32 holds", edge=True),
    invalid("KUB01", b.node_pool({"spec/template/spec/taints": [{"key": UNKNOWN}]}), says="taints[0].effect is unset"),
    invalid("KUB01", Thing(type=tokens.NODE_CLASS, properties={"spec": {"amiSelectorTerms": []}}), says="amiSelectorTerms is []"),
)
