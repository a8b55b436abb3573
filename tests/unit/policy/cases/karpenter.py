"""Karpenter: pools, classes, lifetimes, and pods on their pools."""

import base64
from dataclasses import replace
from typing import Any

from guardrails import tokens
from guardrails.template import NEURON
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid

REQUIREMENTS = "spec/template/spec/requirements"
BUDGETS = "spec/disruption/budgets"
BUDGET = "spec/disruption/budgets/0"
TERMS = "spec/amiSelectorTerms"
EXPIRE = "spec/template/spec/expireAfter"
GRACE = "spec/template/spec/terminationGracePeriod"
AUTO = {"spec/template/spec/nodeClassRef/group": "eks.amazonaws.com", "spec/template/spec/nodeClassRef/kind": "NodeClass"}
TAINTS = "spec/template/spec/taints"
POLICY = "spec/disruption/consolidationPolicy"
KINDS = f"{REQUIREMENTS}/2/values"
FIRST, KIND = f"{REQUIREMENTS}/0", f"{REQUIREMENTS}/2"
CAPACITY, CATEGORY = "karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-category"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
GPU_MAKER = "karpenter.k8s.aws/instance-gpu-manufacturer"
AFTER = "spec/disruption/consolidateAfter"
WORKING = {POLICY: "WhenEmptyOrUnderutilized"}
NEURON_CORES = "aws.amazon.com/neuroncore"
UNTAINTED: dict[str, Any] = {TAINTS: [], "spec/limits": b.DELETE}


def by_argo(helm: dict[str, Any]) -> Thing:
    return b.application_of("karpenter", helm)


def old(version: str, kind: str) -> Thing:
    return Thing(type=f"kubernetes:{version}:{kind}", name="old", properties={"metadata": {"name": "old"}, "spec": {"role": "x"}})


def require(key: str, operator: str, *values: Any, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values), **more}


def adds(*requirements: dict[str, Any]) -> Thing:
    plain = b.node_pool().properties["spec"]["template"]["spec"]["requirements"]
    return b.node_pool({REQUIREMENTS: [*plain, *requirements]})


def budgets(*members: dict[str, Any], policy: str = "WhenEmpty") -> Thing:
    return b.node_pool({BUDGETS: list(members), POLICY: policy})


ZERO = {"nodes": "0"}
DAY = {"schedule": "0 8 * * *", "duration": "12h"}
NIGHT = {"schedule": "0 20 * * *", "duration": "12h"}
EMPTY_BY_DAY = {"reasons": ["Empty"], **DAY}
TRN, P5_AND_TRN = {f"{FIRST}/values": ["trn1.32xlarge"]}, {f"{FIRST}/values": ["p5.48xlarge", "trn1.32xlarge"]}
FLOOD = "9" * 5000


OPTIMIZED = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard"


def imaged(term: dict[str, Any]) -> Thing:
    """A class whose images are those of this term."""
    return node_class({TERMS: [term], "spec/amiFamily": "AL2023"})


def starting(*taints: dict[str, str]) -> dict[str, Any]:
    """The pool's start-up taints."""
    return {"spec/template/spec/startupTaints": list(taints)}


def labelled(key: str, value: Any = "x") -> Thing:
    return b.node_pool({"spec/template/metadata/labels": {key: value}})


GPU_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
AGENT = {"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"}

# 252 characters of a domain, a slash and 63 of a name.
LONGEST = f"{'d' * 248}.com/{'n' * 63}"

POOLS = (
    valid("KRP01", b.node_pool()),
    valid("KRP01", b.node_class()),
    valid("KRP01", b.cpu_pool()),
    valid("KRP01", Thing(type="kubernetes:karpenter.sh/v1:NodeClaim", name="claim", properties={"metadata": {"name": "claim"}})),
    valid("KRP01", old("karpenter.sh/v2", "NodePool"), edge=True),
    invalid("KRP01", old("karpenter.sh/v1beta1", "NodePool"), says="apiVersion is karpenter.sh/v1beta1; allowed: karpenter.sh/v1."),
    invalid(
        "KRP01",
        old("karpenter.sh/v1alpha5", "Provisioner"),
        says="kind is Provisioner of karpenter.sh/v1alpha5; allowed: NodePool of karpenter.sh/v1.",
    ),
    invalid("KRP01", old("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"), says="allowed: EC2NodeClass of karpenter.k8s.aws/v1"),
    invalid("KRP01", old("karpenter.k8s.aws/v1beta1", "EC2NodeClass"), says="apiVersion is karpenter.k8s.aws/v1beta1"),
    invalid("KRP01", old("karpenter.sh/v1beta1", "NodeClaim"), says="apiVersion is karpenter.sh/v1beta1"),
    valid("KRP02", b.node_pool()),
    valid("KRP02", b.cpu_pool({POLICY: "WhenEmptyOrUnderutilized"})),
    valid("KRP02", b.node_pool({"spec/disruption/consolidateAfter": "Never"})),
    valid("KRP02", b.cpu_pool({POLICY: "Balanced"})),
    valid("KRP02", b.node_pool({"spec/disruption/consolidateAfter": "0s"}), edge=True),
    valid("KRP02", b.node_pool({"spec/disruption/consolidateAfter": "1h30m15s"}), edge=True),
    invalid("KRP02", b.node_pool({POLICY: "WhenUnderutilized"}), says="WhenEmpty, WhenEmptyOrUnderutilized, Balanced"),
    invalid("KRP02", b.node_pool({POLICY: "WhenEmptyOrUnderutilized"}), says="WhenEmpty on a pool of accelerators"),
    invalid("KRP02", b.node_pool({"spec/disruption": b.DELETE}), says="unset (Karpenter then uses WhenEmptyOrUnderutilized)"),
    invalid("KRP02", b.cpu_pool({"spec/disruption/consolidateAfter": "10 minutes"}), says="consolidateAfter is 10 minutes"),
    invalid("KRP02", b.cpu_pool({"spec/disruption/consolidateAfter": "1d"}), says="consolidateAfter is 1d", edge=True),
    valid("KRP02", b.node_pool({**WORKING, "spec/replicas": 4}), edge=True),
    valid("KRP02", b.node_pool({"spec/disruption": b.DELETE, "spec/replicas": 0}), edge=True),
    invalid("KRP02", b.node_pool({POLICY: "WhenUnderutilized", "spec/replicas": 4}), says="WhenEmpty, WhenEmptyOrUnderutilized, Balanced"),
    invalid("KRP02", b.node_pool({AFTER: "1d", "spec/replicas": 4}), says="consolidateAfter is 1d"),
    valid("KRP02", b.node_pool({**WORKING, AFTER: "Never"}), edge=True),
    valid("KRP02", b.node_pool({POLICY: b.DELETE, AFTER: "Never"})),
    invalid("KRP02", b.node_pool({**WORKING, AFTER: "999h"}), says="WhenEmpty on a pool of accelerators", edge=True),
    invalid("KRP02", b.node_pool({POLICY: "Balanced", AFTER: "10m"}), says="WhenEmpty on a pool of accelerators"),
    # What is a pool of accelerators.
    *(
        invalid("KRP02", b.node_pool({**WORKING, **UNTAINTED, FIRST: named}), says="WhenEmpty on a pool of accelerators")
        for named in (
            require(CATEGORY, "In", "p"),
            require(CATEGORY, "In", "c", "m", "trn"),
            require("beta.kubernetes.io/instance-type", "In", "p5.48xlarge"),
            require("node.kubernetes.io/instance-type", "In", "m7i.large", "g4ad.xlarge"),
            require("karpenter.k8s.aws/instance-family", "In", "p6e-gb200"),
            require(GPU_MAKER, "Exists"),
        )
    ),
    *(
        valid("KRP02", b.node_pool({**WORKING, **UNTAINTED, FIRST: named}), edge=True)
        for named in (
            require(CATEGORY, "In", "c", "m", "im"),
            require(CATEGORY, "NotIn", "p", "g"),
            require("karpenter.k8s.aws/instance-family", "In", "im4gn", "gd"),
            require("beta.kubernetes.io/instance-type", "In", "m7i.large"),
            require(GPU_MAKER, "NotIn", "nvidia", "amd"),
            require("karpenter.k8s.aws/instance-accelerator-count", "DoesNotExist"),
        )
    ),
    valid(
        "KRP02", b.node_pool({**WORKING, FIRST: require(CATEGORY, "In", "c"), TAINTS: [], "spec/limits": {"nvidia.com/gpu": 0}}), edge=True
    ),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}})),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": "99%"}})),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": "3"}})),
    valid("KRP03", b.node_pool({BUDGETS: b.DELETE})),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": "100%"}}), edge=True),
    valid("KRP03", b.node_pool({BUDGETS: [{"nodes": "1"}] * 50}), edge=True),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "@daily", "duration": "1h30m0s"}}), edge=True),
    invalid("KRP03", b.node_pool({f"{BUDGET}/schedule": "@daily"}), says="budgets[0].duration is unset"),
    invalid("KRP03", b.node_pool({f"{BUDGET}/duration": "8h"}), says="budgets[0].schedule is unset"),
    invalid("KRP03", b.node_pool({f"{BUDGET}/nodes": "150%"}), says="150%"),
    invalid("KRP03", b.node_pool({f"{BUDGET}/nodes": "101%"}), says="101%", edge=True),
    invalid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "@daily", "duration": "90s"}}), says="hours and minutes only"),
    invalid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "@daily", "duration": "1h1h"}}), says="1h1h", edge=True),
    invalid("KRP03", b.node_pool({f"{BUDGET}/reasons": ["Consolidated"]}), says="Underutilized, Empty, Drifted"),
    invalid("KRP03", b.node_pool({BUDGETS: [{"nodes": "1"}] * 51}), says="51 budgets", edge=True),
    invalid("KRP03", b.node_pool({f"{BUDGET}/reasons": []}), says="budgets[0].reasons is empty; allowed: at least one reason", edge=True),
    valid("KRP03", b.node_pool({f"{BUDGET}/reasons": b.DELETE})),
    *(
        invalid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": schedule, "duration": "1h"}}), says=says)
        for schedule, says in (
            (f"*/{FLOOD} * * * *", "minute between 0 and 59"),
            (f"0-{FLOOD} * * * *", "minute between 0 and 59"),
            (f"0 {FLOOD}/2 * * *", "hour between 0 and 23"),
            (f"0 0 1-5/{FLOOD} * *", "day of month between 1 and 31"),
        )
    ),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": f"00005 */{'9' * 18} * * *", "duration": "1h"}}), edge=True),
    invalid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "0 25 * * *", "duration": "1h"}}), says="hour between 0 and 23"),
    valid("KRP08", b.node_pool()),
    valid("KRP08", b.cpu_pool({"spec/limits": b.DELETE})),
    valid("KRP08", b.node_pool({"spec/limits": {"cpu": "768"}})),
    valid("KRP08", b.node_pool({"spec/limits": {"nodes": 4}})),
    valid("KRP08", b.node_pool({"spec/replicas": 4, "spec/limits": {"nodes": 4}}), edge=True),
    valid("KRP08", b.node_pool({"spec/replicas": 4, "spec/limits": b.DELETE}), edge=True),
    invalid("KRP08", b.node_pool({"spec/limits": b.DELETE}), says="spec.limits is unset"),
    # A limit of what the pool's types do not have never binds.
    invalid("KRP08", b.node_pool({**TRN, "spec/limits": {"nvidia.com/gpu": 64}}), says="allowed: aws.amazon.com/neuron, cpu or nodes"),
    invalid("KRP08", b.node_pool({"spec/limits": {NEURON: 64, NEURON_CORES: 128}}), says="allowed: nvidia.com/gpu, cpu or nodes"),
    invalid("KRP08", b.node_pool({**P5_AND_TRN, "spec/limits": {NEURON: 64}}), says="allowed: nvidia.com/gpu, cpu or nodes", edge=True),
    valid("KRP08", b.node_pool({**P5_AND_TRN, "spec/limits": {"nvidia.com/gpu": 64, NEURON_CORES: 128}}), edge=True),
    valid("KRP08", b.node_pool({**P5_AND_TRN, "spec/limits": {"nvidia.com/gpu": 64, "nodes": 8}})),
    valid("KRP08", b.node_pool({**TRN, "spec/limits": {NEURON_CORES: 512}}), edge=True),
    valid("KRP08", b.node_pool({f"{FIRST}/values": ["g4ad.xlarge"], "spec/limits": {"amd.com/gpu": 8}})),
    invalid(
        "KRP08", b.node_pool({f"{FIRST}/values": ["g4ad.xlarge"], "spec/limits": {}}), says="nvidia.com/gpu, aws.amazon.com/neuron, cpu"
    ),
    invalid(
        "KRP08",
        b.node_pool({FIRST: require(CATEGORY, "In", "inf", "p"), "spec/limits": {NEURON: 64}}),
        says="allowed: nvidia.com/gpu, cpu or nodes",
    ),
    valid(
        "KRP08",
        b.node_pool(
            {
                REQUIREMENTS: [require(CATEGORY, "In", "trn", "p"), require("karpenter.k8s.aws/instance-generation", "Lt", "3")],
                "spec/limits": {NEURON: 64},
            }
        ),
        edge=True,
    ),
    invalid("KRP08", b.node_pool({"spec/limits": {}}), says="each with a number", edge=True),
    invalid("KRP08", b.node_pool({"spec/limits": {"memory": "1000Gi"}}), says="spec.limits is {memory: 1000Gi}"),
    invalid("KRP08", b.node_pool({"spec/replicas": 4}), says="only nodes, because replicas"),
    invalid("KRP08", b.node_pool({"spec/replicas": 4, "spec/limits": b.DELETE, "spec/weight": 10}), says="spec.weight is 10"),
    invalid("KRP08", b.cpu_pool({"spec/replicas": 0, "spec/limits": {"cpu": 8}}), says="spec.limits.cpu is 8", edge=True),
    valid("KRP09", b.node_pool()),
    valid("KRP09", adds(require("karpenter.k8s.aws/instance-gpu-count", "Gte", "8"))),
    valid("KRP09", adds(require("company.example/team", "Exists"))),
    valid("KRP09", adds(require("kubernetes.io/arch", "In", "amd64", "arm64", minValues=2)), edge=True),
    valid("KRP09", adds(require("karpenter.k8s.aws/instance-gpu-count", "Gt", "0")), edge=True),
    valid("KRP09", b.node_pool({f"{REQUIREMENTS}/1/values": ["us-west-2-lax-1a"]}), edge=True),
    valid("KRP09", b.node_pool({KINDS: ["reserved", "on-demand", "spot"]})),
    invalid("KRP09", b.node_pool({KINDS: ["ondemand"]}), says="is ondemand; allowed: reserved, spot, on-demand"),
    invalid("KRP09", b.node_pool({KINDS: ["on-demand", "Spot"]}), says="values[1] is Spot", edge=True),
    invalid("KRP09", b.node_pool({f"{REQUIREMENTS}/1/values": []}), says="at least one value with In", edge=True),
    invalid("KRP09", b.node_pool({f"{REQUIREMENTS}/1/operator": "in"}), says="operator is in; allowed: In, NotIn"),
    invalid("KRP09", b.node_pool({f"{REQUIREMENTS}/1/values": ["use1-az1"]}), says="the name of a zone"),
    invalid("KRP09", b.node_pool({f"{REQUIREMENTS}/0/values": ["p5"]}), says="the name of an instance type"),
    invalid("KRP09", adds(require("karpenter.k8s.aws/instance-gpu-count", "Gt", "4", "8")), says="one whole number from 0 with Gt"),
    invalid("KRP09", adds(require("karpenter.k8s.aws/instance-gpu-count", "Lt", "-1")), says="with Lt", edge=True),
    invalid("KRP09", adds(require("kubernetes.io/arch", "In", "amd64", minValues=2)), says="at most 1, the number of values", edge=True),
    invalid("KRP09", adds(require("kubernetes.io/arch", "In", "amd64", minValues=0)), says="1 to 50", edge=True),
    invalid("KRP09", adds(require("kubernetes.io/hostname", "Exists")), says="Karpenter sets this one"),
    invalid("KRP09", adds(require("karpenter.k8s.aws/instance-gpus", "Exists")), says="a key that Karpenter knows"),
    valid("KRP09", adds(require("topology.k8s.aws/zone-id", "In", "use1-az1")), edge=True),
    invalid("KRP09", adds(require("topology.ebs.csi.aws.com/zone", "In", "us-east-1a")), says="no other key pins a zone"),
    invalid("KRP09", adds(require("topology.gke.io/zone", "In", "us-east-1a")), says="topology.gke.io/zone; allowed: topology.kubernetes"),
    invalid("KRP09", adds(require("zone", "In", "us-east-1a")), says="zone; allowed: topology.kubernetes.io/zone", edge=True),
    valid("KRP09", adds(require("failure-domain.beta.kubernetes.io/zone", "In", "us-east-1a")), edge=True),
    invalid("KRP09", adds(require("failure-domain.beta.kubernetes.io/zone", "In", "use1-az1")), says="the name of a zone"),
    valid("KRP09", b.node_pool({"spec/template/metadata/labels": {"security.example.com/zone": "dmz"}}), edge=True),
    *(
        valid("KRP09", b.node_pool({f"{REQUIREMENTS}/1/values": [zone]}), edge=True)
        for zone in ("eusc-de-east-1a", "us-gov-west-1b", "us-isob-east-1a", "us-east-1-wl1-bos-wlz-1")
    ),
    invalid("KRP09", b.node_pool({f"{REQUIREMENTS}/1/values": ["europe-de-east-1a"]}), says="the name of a zone", edge=True),
    invalid("KRP09", adds(require("karpenter.k8s.aws/ec2nodeclass", "Exists")), says="ec2nodeclass; allowed: a key that Karpenter knows"),
    invalid("KRP09", adds(require("karpenter.k8s.aws/nitro-sandbox", "Exists")), says="nitro-sandbox; allowed: a key that Karpenter knows"),
    invalid("KRP09", adds(require("karpenter.sh", "Exists")), says="key is karpenter.sh; allowed: a key that Karpenter knows", edge=True),
    valid("KRP09", adds(require("karpenter", "Exists")), edge=True),
    invalid(
        "KRP09", adds(require("example.com/zones", "In", "us-east-1a")), says="example.com/zones; allowed: topology.kubernetes.io/zone"
    ),
    invalid(
        "KRP09", b.node_pool({"spec/template/metadata/labels": {"topology.ebs.csi.aws.com/zone": "us-east-1a"}}), says="no other key pins"
    ),
    invalid("KRP09", b.node_pool({"spec/template/metadata/labels": {"karpenter.sh/team": "x"}}), says="a label karpenter.sh/team"),
    invalid("KRP09", adds(*(require(f"example.com/{n}", "Exists") for n in range(98))), says="101 requirements", edge=True),
    valid("KRP15", b.node_pool()),
    valid("KRP15", budgets(ZERO)),
    valid("KRP15", b.node_pool({BUDGETS: b.DELETE})),
    valid("KRP15", budgets({**ZERO, **DAY}, {**ZERO, **NIGHT})),
    valid("KRP15", budgets({**ZERO, "schedule": "@daily", "duration": "24h"}), edge=True),
    valid("KRP15", budgets({**ZERO, "reasons": ["Drifted"]}, {"nodes": "20%", "reasons": ["Empty"], **DAY}, {"nodes": "1", **NIGHT})),
    valid("KRP15", b.cpu_pool({BUDGETS: [{**ZERO, **DAY}]})),
    valid("KRP15", budgets({**ZERO, "reasons": ["Underutilized", "Drifted"]}, policy="WhenEmptyOrUnderutilized")),
    valid("KRP15", budgets({"nodes": "100%", "reasons": ["Empty"]}, {**ZERO, "reasons": ["Drifted"]})),
    valid("KRP15", budgets({"nodes": "99%"}), edge=True),
    valid("KRP15", budgets({"nodes": "100%", **DAY}, {**ZERO, **NIGHT})),
    invalid("KRP15", budgets({"nodes": "100%"}), says="without a limit for Drifted: every hour of the week", edge=True),
    invalid("KRP15", budgets({"nodes": "100%", "reasons": ["Drifted", "Empty"]}), says="for Drifted: every hour of the week"),
    invalid("KRP15", budgets({"nodes": "100%"}, {**ZERO, **DAY}), says="without a limit for Drifted: daily 20:00-08:00 UTC"),
    invalid("KRP15", budgets({**ZERO, **DAY}), says="without a limit for Drifted: daily 20:00-08:00 UTC"),
    invalid("KRP15", budgets(), says="without a limit for Drifted: every hour of the week", edge=True),
    invalid("KRP15", budgets({**ZERO, "schedule": "@daily", "duration": "23h59m"}), says="daily 23:59-00:00 UTC", edge=True),
    invalid("KRP15", budgets({**ZERO, "schedule": "0 0 * * sat", "duration": "48h"}), says="Mon 00:00-Sat 00:00 UTC"),
    invalid("KRP15", budgets({**ZERO, "reasons": ["Drifted"]}, policy="WhenEmptyOrUnderutilized"), says="for Underutilized: every hour"),
    # Empty was meant to be allowed by day, underutilization never: the budgets leave the second open by day.
    invalid(
        "KRP15",
        budgets(
            {"nodes": "20%", "reasons": ["Empty"], "schedule": "0 6 * * *", "duration": "20h"},
            {"nodes": "20%", "reasons": ["Underutilized", "Empty"], "schedule": "0 2 * * *", "duration": "4h"},
            policy="WhenEmptyOrUnderutilized",
        ),
        says="without a limit for Underutilized: daily 06:00-02:00 UTC",
    ),
    invalid(
        "KRP15",
        budgets({**ZERO, "reasons": ["Drifted"]}, {"nodes": "20%", "reasons": ["Empty"], **DAY}),
        says="without a limit for Empty: daily 20:00-08:00 UTC",
    ),
    valid("KRP09", adds(*(require(f"example.com/{n}", "Exists") for n in range(97))), edge=True),
    valid("KRP09", adds(require("kubernetes.io/arch", "In", "amd64", minValues=1)), edge=True),
    valid("KRP09", adds(require("karpenter.k8s.aws/instance-family", "Exists", minValues=50)), edge=True),
    valid("KRP09", adds(require(LONGEST, "Exists")), edge=True),
    invalid("KRP09", adds(require(f"{LONGEST}a", "Exists")), says="a label name", edge=True),
    # What Karpenter itself refuses, and the API server does not.
    valid("KRP09", adds(require("n" * 63, "Exists"), require(f"{'d' * 253}/{'n' * 62}", "Exists")), edge=True),
    invalid("KRP09", adds(require("n" * 64, "Exists")), says="a label name", edge=True),
    invalid("KRP09", adds(require(f"{'d' * 254}/n", "Exists")), says="a label name", edge=True),
    valid("KRP09", adds(require("example.com/x", "In", "", "A_b-c.9", "v" * 63)), edge=True),
    *(
        invalid("KRP09", adds(require("example.com/x", "NotIn", value)), says="values[0] is", edge=True)
        for value in ("a b", "-a", "a.", "a/b", "v" * 64)
    ),
    valid("KRP09", labelled("example.com/team", "ml"), edge=True),
    invalid("KRP09", labelled("my team"), says="is a label my team; allowed: a label name"),
    invalid("KRP09", labelled("example.com/a/b"), says="allowed: a label name", edge=True),
    invalid("KRP09", labelled("karpenter.k8s.aws/ec2nodeclass"), says="a key that Karpenter knows"),
    valid("KRP09", adds(require("karpenter.k8s.aws/instance-tenancy", "In", "default", "dedicated")), edge=True),
    invalid("KRP09", adds(require("karpenter.k8s.aws/instance-tenancy", "In", "dedicted")), says="dedicted; allowed: default, dedicated"),
    invalid("KRP09", adds(require("karpenter.k8s.aws/instance-tenancy", "In", "default", "host")), says="values[1] is host", edge=True),
    valid("KRP09", b.node_pool({TAINTS: [GPU_TAINT, {**GPU_TAINT, "effect": "NoExecute"}], **starting(AGENT)}), edge=True),
    invalid("KRP09", b.node_pool({TAINTS: [GPU_TAINT, {**GPU_TAINT, "value": "x"}]}), says="taints[1] is nvidia.com/gpu:NoSchedule again"),
    invalid("KRP09", b.node_pool(starting(GPU_TAINT)), says="startupTaints[0] is nvidia.com/gpu:NoSchedule again", edge=True),
    invalid("KRP09", b.node_pool(starting(AGENT, AGENT)), says="startupTaints[1] is ebs.csi.aws.com/agent-not-ready:NoExecute again"),
    invalid("KRP09", b.node_pool({TAINTS: [UNKNOWN, AGENT], **starting(AGENT)}), says="startupTaints[0] is ebs.csi.aws.com"),
    invalid("KRP09", adds(require("my team", "Exists")), says="key is my team; allowed: a label name"),
    invalid("KRP09", adds(require("karpenter.sh/nodepool", "In", "p5")), says="karpenter.sh/nodepool; allowed: a label of your own"),
    invalid(
        "KRP09", b.node_pool({"spec/template/metadata/labels": {"kubernetes.io/hostname": "x"}}), says="a label kubernetes.io/hostname"
    ),
    # KRP03 refuses these windows; where Karpenter can't read one, it leaves all nodes alone.
    valid("KRP15", budgets({**ZERO, "duration": "8h"})),
    valid("KRP15", budgets({**ZERO, "schedule": "@daily"})),
    valid("KRP15", budgets({**ZERO, "schedule": "0 25 * * *", "duration": "8h"}), edge=True),
    valid("KRP15", budgets({**ZERO, **DAY}, {"nodes": "1", "schedule": "never", "duration": "8h"}), edge=True),
    # An empty list of reasons is not the same as none.
    invalid("KRP15", budgets({**ZERO, "reasons": []}), says="without a limit for Drifted: every hour of the week", edge=True),
    invalid("KRP15", budgets({**ZERO, **DAY}, {**ZERO, **NIGHT, "reasons": []}), says="for Drifted: daily 20:00-08:00 UTC"),
    valid("KRP15", budgets(ZERO, {**ZERO, "reasons": []})),
    # Karpenter consolidates no static pool, and none with consolidateAfter: Never.
    valid("KRP15", b.node_pool({**WORKING, AFTER: "Never"}), edge=True),
    valid("KRP15", b.node_pool({**WORKING, "spec/replicas": 4, BUDGETS: [{**ZERO, "reasons": ["Drifted"]}]}), edge=True),
    valid(
        "KRP15", b.node_pool({**WORKING, "spec/replicas": 0, BUDGETS: [{**ZERO, "reasons": ["Drifted"]}, {"nodes": "1", **EMPTY_BY_DAY}]})
    ),
    valid("KRP15", b.node_pool({AFTER: "Never", BUDGETS: [{**ZERO, "reasons": ["Drifted"]}, {"nodes": "1", **EMPTY_BY_DAY}]}), edge=True),
    invalid("KRP15", b.node_pool({**WORKING, AFTER: "never"}), says="without a limit for Underutilized", edge=True),
    invalid("KRP15", b.node_pool({"spec/replicas": 4, BUDGETS: [{**ZERO, **DAY}]}), says="for Drifted: daily 20:00-08:00 UTC"),
)


EIGHT = {"nvidia.com/gpu": 8}


def pod(changes: dict[str, Any] | None = None, *, name: str = "trainer", annotations: dict[str, str] | None = None) -> Thing:
    spec = {
        "nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [{"name": "trainer", "command": ["torchrun", "train.py"], "resources": {"limits": EIGHT, "requests": EIGHT}}],
    }
    properties = {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}
    return Thing(type=tokens.POD, name=name, properties=b.changed(properties, changes or {}))


def gang(grace: Any = None, replicas: int = 4) -> Thing:
    template = dict(pod().properties["spec"])
    if grace is not None:
        template["terminationGracePeriodSeconds"] = grace
    spec = {"minAvailable": replicas, "tasks": [{"name": "worker", "replicas": replicas, "template": {"spec": template}}]}
    return Thing(type=tokens.VOLCANO_JOB, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": spec})


def chart(version: Any, values: dict[str, Any] | None = None, name: str = "karpenter") -> Thing:
    properties = {"chart": f"oci://public.ecr.aws/karpenter/{name}", "version": version, "values": values or {}}
    return Thing(type=tokens.RELEASE, name=name, properties=properties)


def groups(**annotations: dict[str, str]) -> Thing:
    """A LeaderWorkerSet whose leader and workers carry these annotations."""
    templates = {
        role: {"metadata": {"annotations": annotations.get(role, {})}, "spec": pod().properties["spec"]} for role in ("leader", "worker")
    }
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, **{f"{role}Template": each for role, each in templates.items()}}}
    return Thing(type=tokens.LEADER_WORKER_SET, name="serve", properties={"metadata": {"name": "serve"}, "spec": spec})


def submitting(annotations: dict[str, str]) -> Thing:
    """A RayJob on a cluster that is there, whose submitter runs on a node without GPUs."""
    pods = {"nodeSelector": {"node.kubernetes.io/instance-type": "m7i.2xlarge"}, "containers": [{"name": "submit"}]}
    spec = {
        "clusterSelector": {"ray.io/cluster": "shared"},
        "submitterPodTemplate": {"metadata": {"annotations": annotations}, "spec": pods},
    }
    return Thing(type=tokens.RAY_JOB, name="tune", properties={"metadata": {"name": "tune"}, "spec": spec})


PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}
SPOT = {KINDS: ["spot"], BUDGETS: [{"nodes": "1"}]}
QUEUE = {"settings": {"interruptionQueue": "karpenter"}}

CPU_SPOT = b.cpu_pool({f"{REQUIREMENTS}/0": require("karpenter.sh/capacity-type", "In", "spot")})


def working(pods: int, limits: dict[str, Any] | None = None) -> Thing:
    """A Job of so many pods at once."""
    template = pod({"spec/containers/0/resources": {"limits": limits or {"nvidia.com/gpu": 8}}}).properties
    spec = {"parallelism": pods, "template": {"spec": template["spec"]}}
    return Thing(type=tokens.JOB, name="sweep", properties={"metadata": {"name": "sweep"}, "spec": spec})


def started(first: str, *flags: str) -> Thing:
    """A Volcano job with the mpi plug-in: a task without devices, and one worker."""
    worker = gang(600, replicas=1).properties["spec"]["tasks"][0]
    launcher = {"name": first, "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "command": ["mpirun", "true"]}]}}}
    spec = {"minAvailable": 2, "plugins": {"mpi": list(flags)}, "tasks": [launcher, worker]}
    return Thing(type=tokens.VOLCANO_JOB, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": spec})


def set_of(*limits: dict[str, Any]) -> Thing:
    """A JobSet of Jobs of one pod each."""
    jobs = [{"name": f"job-{index}", "template": {"spec": working(1, each).properties["spec"]}} for index, each in enumerate(limits)]
    return Thing(type=tokens.JOB_SET, name="sweep", properties={"metadata": {"name": "sweep"}, "spec": {"replicatedJobs": jobs}})


def on_cpus(grace: int | None) -> Thing:
    selector = {"node.kubernetes.io/instance-type": "m7i.2xlarge"}
    return pod({"spec/nodeSelector": selector, "spec/terminationGracePeriodSeconds": b.DELETE if grace is None else grace})


def filed(*files: Any, **properties: Any) -> Thing:
    """Karpenter's chart with YAML files of values."""
    return replace(chart("1.14.1"), properties={**chart("1.14.1").properties, "valueYamlFiles": list(files), **properties})


def text_asset(text: str) -> dict[str, str]:
    return {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", "text": text}


IN_FILE, NO_QUEUE = text_asset("settings:\n  interruptionQueue: karpenter\n"), text_asset("settings:\n  interruptionQueue: ''\n")

LIFETIMES = (
    valid("KRP04", b.node_pool()),
    valid("KRP04", b.cpu_pool({EXPIRE: "720h"})),
    valid("KRP04", b.cpu_pool({BUDGETS: [{"nodes": "1"}], EXPIRE: "24h"})),
    valid("KRP04", b.cpu_pool({f"{REQUIREMENTS}/0": require("karpenter.sh/capacity-type", "In", "spot")})),
    valid("KRP04", b.cpu_pool({BUDGETS: [{**ZERO, **DAY}], EXPIRE: "720h"}), edge=True),
    valid("KRP04", b.node_pool({KINDS: ["spot"], BUDGETS: [{"nodes": "1"}]}), edge=True),
    invalid("KRP04", b.node_pool({EXPIRE: b.DELETE}), says="unset (Karpenter then uses 720h)"),
    invalid("KRP04", b.node_pool({EXPIRE: "24h"}), says="expireAfter is 24h; allowed: Never"),
    invalid("KRP04", b.node_pool({EXPIRE: "never"}), says="expireAfter is never", edge=True),
    invalid("KRP04", b.node_pool({KINDS: ["spot", "on-demand"]}), says="capacity type spot, on-demand"),
    *(
        invalid("KRP04", b.node_pool({KIND: open_to}), says="requirements is without one that keeps spot out")
        for open_to in (require(CAPACITY, "NotIn", "on-demand"), require(CAPACITY, "Exists"), require("kubernetes.io/arch", "In", "amd64"))
    ),
    *(
        valid("KRP04", b.node_pool({KIND: closed_to}), edge=True)
        for closed_to in (require(CAPACITY, "NotIn", "spot"), require(CAPACITY, "DoesNotExist"))
    ),
    valid("KRP04", b.node_pool({KIND: require(CAPACITY, "Exists"), "spec/template/metadata/labels": {CAPACITY: "on-demand"}}), edge=True),
    valid("KRP04", adds(require(CAPACITY, "NotIn", "spot"), require(CAPACITY, "In", "spot", "on-demand")), edge=True),
    invalid("KRP04", b.cpu_pool({BUDGETS: [ZERO]}), says="requirements is without one that keeps spot out"),
    invalid("KRP04", b.cpu_pool({"spec/limits": {"nvidia.com/gpu": 8}, EXPIRE: "720h"}), says="expireAfter is 720h"),
    invalid("KRP04", b.cpu_pool({BUDGETS: [ZERO], EXPIRE: "720h"}), says="which does not stop expiry"),
    # EKS Auto Mode takes a shorter life of its nodes, and no longer one.
    valid("KRP04", b.cpu_pool({**AUTO, EXPIRE: "480h"})),
    invalid("KRP04", b.node_pool(AUTO), says="expireAfter is Never; allowed: 504h or less: EKS Auto Mode replaces"),
    invalid("KRP04", b.node_pool({**AUTO, EXPIRE: "504h1m"}), says="is 504h1m; allowed: 504h or less", edge=True),
    invalid("KRP04", b.node_pool({**AUTO, EXPIRE: "504h"}), says="is 504h; allowed: checkpoints that training goes on from", edge=True),
    invalid("KRP04", b.node_pool({**AUTO, EXPIRE: b.DELETE}), says="unset (EKS Auto Mode then uses 336h); allowed: checkpoints"),
    invalid("KRP04", b.cpu_pool({**AUTO, BUDGETS: [ZERO]}), says="allowed: 504h or less"),
    invalid("KRP04", b.node_pool({**AUTO, EXPIRE: "24h", KINDS: ["spot"]}), says="capacity type spot"),
    valid("KRP05", b.node_pool()),
    valid("KRP05", b.node_pool({GRACE: "1h"}), pod({"spec/terminationGracePeriodSeconds": 600})),
    valid("KRP05", b.node_pool({GRACE: "600s"}), pod({"spec/terminationGracePeriodSeconds": 600}, annotations=PROTECTED), edge=True),
    valid("KRP05", b.node_pool({GRACE: "120s", EXPIRE: "24h"}), edge=True),
    valid("KRP05", b.node_pool(), pod()),
    valid("KRP05", b.cpu_pool({GRACE: "30s"})),
    invalid("KRP05", b.node_pool({EXPIRE: "24h"}), says="terminationGracePeriod is unset"),
    invalid("KRP05", b.node_pool({EXPIRE: b.DELETE}), says="for ever, half drained"),
    invalid("KRP05", b.node_pool(), pod(annotations=PROTECTED), says="because pods of trainer carry karpenter.sh/do-not-disrupt"),
    invalid("KRP05", b.node_pool(), groups(leader=PROTECTED), says="because pods of serve carry karpenter.sh/do-not-disrupt"),
    invalid("KRP05", b.node_pool(), groups(worker=PROTECTED), says="because pods of serve carry karpenter.sh/do-not-disrupt"),
    invalid("KRP05", b.cpu_pool(), submitting(PROTECTED), says="because pods of tune carry karpenter.sh/do-not-disrupt"),
    valid("KRP05", b.node_pool(), groups(leader={}, worker={})),
    invalid("KRP05", b.node_pool({GRACE: "5m"}), pod({"spec/terminationGracePeriodSeconds": 3600}), says="is 5m; allowed: 3600s or more"),
    invalid("KRP05", b.node_pool({GRACE: "119s"}), says="120s or more", edge=True),
    invalid("KRP05", b.node_pool({GRACE: "599s"}), pod({"spec/terminationGracePeriodSeconds": 600}), says="600s or more", edge=True),
    invalid("KRP05", b.node_pool({GRACE: "2 hours"}), says="a duration such as 30m"),
    # A pod that is ended at once needs no time.
    valid("KRP05", b.cpu_pool({GRACE: "0s"}), on_cpus(0), edge=True),
    valid("KRP05", b.cpu_pool({GRACE: "20s"}), on_cpus(0)),
    invalid("KRP05", b.cpu_pool({GRACE: "0s"}), on_cpus(1), says="1s or more", edge=True),
    invalid("KRP05", b.cpu_pool({GRACE: "29s"}), on_cpus(None), says="30s or more", edge=True),
    valid("KRP10", b.node_pool(), gang()),
    valid("KRP10", b.node_pool(SPOT), gang(100)),
    valid("KRP10", b.node_pool(SPOT), gang(120), edge=True),
    valid("KRP10", b.node_pool({KINDS: ["spot"]})),
    valid("KRP10", b.node_pool({KINDS: ["spot"]}), b.application_of("karpenter", None, chart=None, path="apps/karpenter")),
    valid("KRP10", b.node_pool({KINDS: ["spot"]}), by_argo({"valuesObject": {"settings": {"interruptionQueue": "q"}}})),
    valid(
        "KRP10",
        b.node_pool({KINDS: ["spot"]}),
        by_argo({"parameters": [{"name": "settings.interruptionQueue", "value": "q"}]}),
    ),
    invalid(
        "KRP10",
        b.node_pool({KINDS: ["spot"]}),
        by_argo({"values": "settings: {}"}),
        says="app: spec.source.helm.valuesObject.settings.interruptionQueue is unset",
    ),
    valid("KRP10", b.cpu_pool({f"{REQUIREMENTS}/0": require("karpenter.sh/capacity-type", "In", "spot")}), chart("1.14.1", QUEUE)),
    valid("KRP10", b.node_pool({KINDS: ["on-demand"]}), chart("1.14.1"), gang()),
    invalid("KRP10", b.node_pool(SPOT), gang(), says="pretrain has a grace of 30 (the default) s"),
    invalid("KRP10", b.node_pool(SPOT), gang(600), says="a grace of 600 s"),
    invalid("KRP10", b.node_pool(SPOT), gang(121), says="a grace of 121 s", edge=True),
    invalid("KRP10", b.node_pool(SPOT), gang(30), says="a grace of 30 s", edge=True),
    invalid("KRP10", b.node_pool(SPOT), gang(0), says="a grace of 0 s", edge=True),
    # The queue may be in the chart's YAML files; the last one counts, and values count more.
    valid("KRP10", b.node_pool(), filed(IN_FILE)),
    valid("KRP10", b.node_pool(), filed(text_asset("replicas: 2\n"), IN_FILE, text_asset("settings:\n  clusterName: x\n")), edge=True),
    valid("KRP10", b.node_pool(), filed(NO_QUEUE, IN_FILE), edge=True),
    valid("KRP10", b.node_pool(), filed(UNKNOWN, values=QUEUE), edge=True),
    invalid("KRP10", b.node_pool(), filed(IN_FILE, NO_QUEUE), says='settings.interruptionQueue is ""', edge=True),
    invalid(
        "KRP10", b.node_pool(), filed(IN_FILE, values={"settings": {"interruptionQueue": ""}}), says="values.settings.interruptionQueue"
    ),
    invalid("KRP10", b.node_pool(), filed(text_asset(""), text_asset("- settings")), says="values.settings.interruptionQueue is unset"),
    invalid("KRP10", b.node_pool(), replace(filed(UNKNOWN), name="first"), chart("1.14.1"), says="settings.interruptionQueue is unset"),
    invalid("KRP10", b.node_pool({KINDS: ["spot", "on-demand"]}), gang(600), says="no spot, which Karpenter takes before on-demand"),
    invalid("KRP10", b.node_pool({KIND: require(CAPACITY, "NotIn", "on-demand")}), gang(600), says="keeps spot out, and pretrain"),
    invalid("KRP10", b.node_pool({KIND: require(CAPACITY, "Exists")}), gang(600), says="keeps spot out, and pretrain", edge=True),
    invalid("KRP10", b.node_pool({KIND: require("kubernetes.io/arch", "In", "amd64")}), gang(600), says="keeps spot out, and pretrain"),
    valid("KRP10", b.node_pool({KIND: require(CAPACITY, "NotIn", "spot")}), chart("1.14.1"), gang(600), edge=True),
    invalid("KRP10", b.cpu_pool(), chart("1.14.1"), says="cpu uses spot or reserved capacity"),
    invalid(
        "KRP10",
        b.node_class({"spec/capacityReservationSelectorTerms": [{"id": "cr-1"}]}),
        b.node_pool({KIND: require(CAPACITY, "NotIn", "spot")}),
        chart("1.14.1"),
        says="p5 uses spot or reserved capacity",
        edge=True,
    ),
    invalid("KRP10", b.node_pool({REQUIREMENTS: UNKNOWN}), CPU_SPOT, chart("1.14.1"), says="cpu uses spot or reserved capacity"),
    invalid("KRP10", b.node_pool(), chart("1.14.1"), says="settings.interruptionQueue is unset"),
    invalid("KRP04", b.cpu_pool({BUDGETS: [{"nodes": "0%"}], EXPIRE: "720h"}), says="which does not stop expiry"),
    valid("KRP10", b.node_pool(SPOT), working(1)),
    valid("KRP10", b.node_pool(SPOT), working(4, {"cpu": 8})),
    invalid("KRP10", b.node_pool(SPOT), working(2), says="sweep has a grace of 30 (the default) s", edge=True),
    invalid("KRP10", b.node_pool(SPOT), working(2, {NEURON: 16}), says="sweep has a grace of 30 (the default) s"),
    # One pod is no gang, whatever the kind; an MPIJob's launcher is no rank, nor is the task that Volcano's mpi plug-in starts ranks from.
    valid("KRP10", b.node_pool(SPOT), gang(600, replicas=1), edge=True),
    invalid("KRP10", b.node_pool(SPOT), gang(600, replicas=2), says="a grace of 600 s", edge=True),
    valid("KRP10", b.node_pool(SPOT), b.pytorch_job({f"{b.TORCH_ROLES}/Worker": b.DELETE}), edge=True),
    valid("KRP10", b.node_pool(SPOT), b.pytorch_job({f"{b.TORCH_ROLES}/Worker/replicas": 0}), edge=True),
    valid("KRP10", b.node_pool(SPOT), b.pytorch_job({f"{b.TORCH_ROLES}/Master": b.DELETE, f"{b.TORCH_ROLES}/Worker/replicas": 1})),
    invalid("KRP10", b.node_pool(SPOT), b.pytorch_job({f"{b.TORCH_ROLES}/Worker/replicas": 1}), says="align has a grace of 30", edge=True),
    valid("KRP10", b.node_pool(SPOT), b.mpi_job({f"{b.WORKER}/replicas": 1}), edge=True),
    invalid("KRP10", b.node_pool(SPOT), b.mpi_job({f"{b.WORKER}/replicas": 2}), says="pretrain has a grace of 30", edge=True),
    invalid(
        "KRP10",
        b.node_pool(SPOT),
        b.mpi_job({f"{b.WORKER}/replicas": 1, "spec/runLauncherAsWorker": True}),
        says="pretrain has a grace of 30",
        edge=True,
    ),
    valid("KRP10", b.node_pool(SPOT), started("master"), edge=True),
    valid("KRP10", b.node_pool(SPOT), started("head", "--master=head"), edge=True),
    invalid("KRP10", b.node_pool(SPOT), started("head"), says="pretrain has a grace of 600 s", edge=True),
    valid("KRP10", b.node_pool(SPOT), set_of({"cpu": 8}, {"nvidia.com/gpu": 8}), edge=True),
    invalid("KRP10", b.node_pool(SPOT), set_of({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 8}), says="sweep has a grace of 30", edge=True),
    invalid("KRP10", CPU_SPOT, chart("1.14.1"), says="cpu uses spot or reserved capacity"),
)


def node_class(changes: dict[str, Any] | None = None) -> Thing:
    terms = {
        "spec/subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}],
        "spec/securityGroupSelectorTerms": [{"id": "sg-0123456789abcdef0"}],
    }
    return b.node_class({**terms, **(changes or {})})


def template(script: str) -> Thing:
    data = base64.b64encode(script.encode()).decode()
    return Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties={"userData": data})


def cluster(version: Any) -> Thing:
    return Thing(type=tokens.CLUSTER, name="cluster", properties={"version": version})


EFA_ONLY = [
    {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
    {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
]
DISKS = "spec/blockDeviceMappings"
CLASS = "spec/template/spec/nodeClassRef"
SCRATCH = "spec/containers/0/resources/requests/ephemeral-storage"

SCRATCHING = {"name": "trainer", "resources": {"requests": {"nvidia.com/gpu": 8, "ephemeral-storage": "20Gi"}}}
DATA, ROOT = {"ebs": {"volumeSize": "500Gi"}}, {"ebs": {"volumeSize": "50Gi"}, "rootVolume": True}
BOTTLEROCKET = [{"alias": "bottlerocket@v1.40.0"}]
ASKING = (b.node_pool(), pod({SCRATCH: "100Gi"}))
COPIED = {"deviceName": "/dev/xvda", "ebs": {"snapshotID": "snap-0123456789abcdef0"}, "rootVolume": True}
PIPED = "curl -sL https://example.com/install.sh | sudo bash\n"


def disk(device: str, size: str) -> dict[str, Any]:
    return {"deviceName": f"/dev/{device}", "ebs": {"volumeSize": size}}


def encoded(data: bytes) -> Thing:
    return Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties={"userData": data.decode()})


CLASSES = (
    valid("KRP06", node_class()),
    valid("KRP06", node_class({TERMS: [{"id": "ami-0123456789abcdef0"}], "spec/amiFamily": "AL2023"})),
    valid("KRP06", node_class({TERMS: [{"alias": "bottlerocket@v1.40.0"}]})),
    valid("KRP06", node_class({TERMS: [{"id": "ami-1"}, {"id": "ami-2"}], "spec/amiFamily": "AL2023"})),
    valid("KRP06", node_class({TERMS: [{"alias": "windows2022@latest"}]}), edge=True),
    valid("KRP06", node_class({"spec/amiFamily": "Custom"}), edge=True),
    invalid("KRP06", node_class({TERMS: []}), says="amiSelectorTerms is empty"),
    invalid("KRP06", node_class({TERMS: [{"alias": "al2023@latest"}]}), says="al2023@latest"),
    invalid("KRP06", node_class({TERMS: [{"alias": "al2023"}]}), says="family@version", edge=True),
    invalid("KRP06", node_class({TERMS: [{"alias": "al2@v20260101"}]}), says="Amazon Linux 2 ends"),
    invalid("KRP06", node_class({TERMS: [{"alias": "ubuntu@v1"}]}), says="ubuntu@v1"),
    invalid("KRP06", node_class({TERMS: [{"alias": "al2023@v20261120"}, {"id": "ami-1"}]}), says="an alias alone"),
    invalid("KRP06", node_class({TERMS: b.DELETE, "spec/amiFamily": "AL2"}), says="at least one term"),
    invalid("KRP06", node_class({TERMS: [{"id": "ami-1"}]}), says="amiFamily is unset"),
    invalid(
        "KRP06",
        node_class({TERMS: [{"alias": "al2@v20240807"}], "spec/amiFamily": "AL2023"}),
        says="amiFamily is AL2023; allowed: AL2, Custom or unset beside alias al2@v20240807",
    ),
    invalid(
        "KRP06",
        node_class({TERMS: [{"alias": "al2023@latest"}], "spec/amiFamily": "Bottlerocket"}),
        says="allowed: AL2023, Custom or unset beside alias al2023@latest",
    ),
    invalid("KRP06", node_class({TERMS: [{"id": "ami-1", "name": "x"}], "spec/amiFamily": "AL2023"}), says="id beside name"),
    invalid("KRP06", node_class({TERMS: [{"owner": "self"}], "spec/amiFamily": "AL2023"}), says="an id, alias, name, tags"),
    # What moves to the next image by itself.
    *(
        invalid("KRP06", imaged({"name": name}), says=f"name is {name}; allowed: the name of one release", edge=True)
        for name in (
            "*amazon-eks-node-al2023*",
            "amazon-eks-node-al2023-x86_64-nvidia-1.33-v2026112?",
            "bottlerocket-aws-k8s-1.33-*-v1.40.*",
        )
    ),
    invalid("KRP06", imaged({"name": "trainyard-*", "owner": "self", "tags": {"team": "ml"}}), says="the name of one release"),
    *(
        valid("KRP06", imaged({"name": name}), edge=True)
        for name in (
            *("amazon-eks-node-al2023-*-nvidia-1.33-v20261120", "bottlerocket-aws-k8s-1.33-*-v1.40.0-*", "al2023-ami-2023.6.20261120.0-*"),
            *("amazon-eks-node-al2023-x86_64-standard-1.33-v20261120", r"odd\*name"),
        )
    ),
    *(
        invalid("KRP06", imaged({"ssmParameter": path}), says=f"ssmParameter is {path}; allowed: an image id, an alias with a release")
        for path in (
            f"{OPTIMIZED}/recommended/image_id",
            "/aws/service/bottlerocket/aws-k8s-1.33/x86_64/latest/image_id",
            "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.33/image_id",
        )
    ),
    valid("KRP06", imaged({"ssmParameter": f"{OPTIMIZED}/amazon-eks-node-al2023-x86_64-standard-1.33-v20261120/image_id"}), edge=True),
    valid("KRP06", imaged({"ssmParameter": "/acme/latest-but-one"}), edge=True),
    invalid("KRP06", imaged({"tags": {"team": "ml"}}), says="is tags alone; allowed: an image id or name"),
    invalid("KRP06", imaged({"tags": {"team": "ml"}, "owner": "self"}), says="is tags alone", edge=True),
    valid("KRP06", imaged({"tags": {"team": "ml"}, "name": "trainyard-7"}), edge=True),
    # Karpenter takes these and passes over a part of them.
    invalid(
        "KRP06", node_class({TERMS: [{"alias": "al2023@v20261120", "ssmParameter": "/x"}]}), says="unset beside alias: Karpenter ignores"
    ),
    invalid(
        "KRP06", node_class({TERMS: [{"id": "ami-1", "ssmParameter": "/x"}], "spec/amiFamily": "AL2023"}), says="unset beside id: Karpen"
    ),
    invalid(
        "KRP06",
        node_class({TERMS: [{"name": "x", "ssmParameter": "/x"}], "spec/amiFamily": "AL2023"}),
        says="amiSelectorTerms[0].name is x; allowed: unset beside ssmParameter",
        edge=True,
    ),
    invalid(
        "KRP06", node_class({TERMS: [{"id": "ami-1", "owner": "self", "ssmParameter": "/x"}], "spec/amiFamily": "AL2023"}), says="id alone"
    ),
    valid("KRP06", node_class({TERMS: [{"ssmParameter": "/x"}, {"id": "ami-1"}], "spec/amiFamily": "AL2023"}), edge=True),
    invalid("KRP06", node_class({"spec/amiFamily": "Bottlerocket"}), says="AL2023, Custom or unset beside alias"),
    valid("KRP07", node_class()),
    valid("KRP07", node_class({"spec/role": b.DELETE, "spec/instanceProfile": "profile"})),
    valid("KRP07", node_class({"spec/subnetSelectorTerms": [{"tags": {"team": "ml"}}], "spec/tags": {"team": "ml"}})),
    valid("KRP07", node_class({DISKS: [{"ebs": {"volumeSize": "200Gi", "volumeType": "gp3"}}]})),
    valid("KRP07", node_class({DISKS: [{"ebs": {"snapshotID": "snap-1"}, "rootVolume": True}]}), edge=True),
    valid("KRP07", node_class({"spec/securityGroupSelectorTerms": [{"id": f"sg-{n}"} for n in range(30)]}), edge=True),
    invalid("KRP07", node_class({"spec/instanceProfile": "profile"}), says="both role and instanceProfile"),
    invalid("KRP07", node_class({"spec/role": b.DELETE}), says="without role and instanceProfile"),
    invalid("KRP07", node_class({"spec/subnetSelectorTerms": []}), says="subnetSelectorTerms is 0 terms", edge=True),
    invalid("KRP07", node_class({"spec/securityGroupSelectorTerms": b.DELETE}), says="securityGroupSelectorTerms is 0 terms"),
    invalid("KRP07", node_class({"spec/securityGroupSelectorTerms": [{"id": f"sg-{n}"} for n in range(31)]}), says="31 terms", edge=True),
    invalid("KRP07", node_class({"spec/subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}]}), says="id beside tags"),
    invalid("KRP07", node_class({"spec/subnetSelectorTerms": [{}]}), says="one of id, tags"),
    invalid("KRP07", node_class({"spec/tags": {"kubernetes.io/cluster/x": "owned"}}), says="a tag kubernetes.io/cluster/x"),
    invalid("KRP07", node_class({"spec/tags": {"karpenter.sh/nodepool": "x"}}), says="Karpenter sets this one"),
    invalid("KRP07", node_class({DISKS: [{"ebs": {"volumeType": "gp3"}}]}), says="a size such as 200Gi"),
    invalid("KRP07", node_class({DISKS: [{"rootVolume": True}, {"rootVolume": True}]}), says="2 root volumes"),
    valid("KRP12", node_class()),
    valid("KRP12", node_class({"spec/userData": "#!/bin/sh\nsysctl -w vm.max_map_count=262144\n"})),
    valid("KRP12", template("#!/bin/sh\ncurl -O https://example.com/aws-efa-installer-1.43.2.tar.gz\n")),
    valid("KRP12", Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties={})),
    # What an instance reads of itself floats no installer.
    valid("KRP12", node_class({"spec/userData": "TOKEN=$(curl -X PUT http://169.254.169.254/latest/api/token)"}), edge=True),
    valid("KRP12", template("curl http://[fd00:ec2::254]/latest/meta-data/instance-id\n"), edge=True),
    valid("KRP12", template("curl http://169.254.169.254:80/latest/user-data\n"), edge=True),
    *(
        invalid("KRP12", template(f"curl -O http://{host}/latest/tool\n"), says=f"a script with http://{host}/latest/tool", edge=True)
        for host in ("169.254.169.254.example.com", "169.254.169.254@example.com", "1169.254.169.254", "169.254.169.25", "[fd00:ec2::255]")
    ),
    invalid(
        "KRP12",
        template("curl http://169.254.169.254/latest/api/token;curl -O http://example.com/latest/tool\n"),
        says="a script with http://example.com/latest/tool",
    ),
    valid("KRP12", template("curl -s http://169.254.169.254/latest/user-data | bash\n"), edge=True),
    valid("KRP12", template('eval "$(curl -s http://169.254.169.254/latest/user-data)"\n'), edge=True),
    valid("KRP12", template("curl -sL https://example.com/run-1.2.3.txt | sh-lint\n"), edge=True),
    valid("KRP12", template("curl -sL https://example.com/a-1.2.3.tgz | tee a.tgz | tar -xz\n"), edge=True),
    invalid("KRP12", template("curl -s http://169.254.169.25/i.sh | bash\n"), says="curl -s http://169", edge=True),
    # Another command than the one that gets the download.
    *(
        valid("KRP12", template(f"{line}\n"), edge=True)
        for line in (
            "curl -fsSL -o /opt/a.rpm https://example.com/a-1.2.3.rpm || sh -c 'shutdown -h now'",
            "curl -sf http://localhost:8080/health || bash /opt/restart.sh",
            "curl -s https://example.com/a-1.2.3.tgz | tar xz && cat b | bash",
            'V=$(curl -s https://example.com/v.json | jq -r .tag); echo $V | sudo bash -c "cat > /etc/v"',
            "curl -s https://example.com/k.gpg | gpg --dearmor | sudo tee k.gpg; cat pinned.sh | bash",
        )
    ),
    *(
        invalid("KRP12", template(f"{line}\n"), says=f"a script with {line}")
        for line in (
            "curl -sL https://example.com/i.sh | /usr/bin/env bash",
            "curl -sL https://example.com/i.sh | env A=1 B= bash",
            "curl -sL https://example.com/i.sh |& bash",
            "curl -sL 'https://example.com/i.sh?a=1&b=2' | bash",
            'curl -sL -H "X: a|b" https://example.com/i.sh | bash',
            "curl -sL https://example.com/$(uname -m).sh | FOO=1 bash",
            "curl -sL https://example.com/i.sh | nohup bash",
            "curl -sL https://example.com/i.sh | xargs -0 bash",
            "curl -sL https://example.com/i.sh | (bash",
            'source /dev/stdin <<< "$(curl',
            "curl -sL https://example.com/i.sh | exec sudo -E bash",
            "curl -sL https://example.com/i.sh | tee i.log | bash",
            ". <(curl",
            'bash <<< "$(curl',
        )
    ),
    valid("KRP12", node_class({"spec/userData": "curl https://example.com/greatestlatests/tool.sh -o tool.sh"}), edge=True),
    invalid("KRP12", node_class({"spec/userData": "curl -O https://example.com/aws-efa-installer-latest.tar.gz"}), says="installer-latest"),
    invalid("KRP12", template("#!/bin/sh\nwget https://example.com/releases/latest/download/tool\n"), says="pinned releases"),
    invalid("KRP12", template("#!/bin/sh\ncurl -sL https://example.com/install.sh | sudo bash\n"), says="curl -sL"),
    invalid("KRP12", node_class({"spec/userData": "git clone x; curl https://raw.example/org/repo/main/setup.sh"}), says="/main/setup.sh"),
    invalid("KRP12", node_class({"spec/userData": "nvidia-smi -ac 1593,1410"}), says="no fixed clocks"),
    *(
        invalid("KRP12", template(f"#!/bin/bash\n{line}\n"), says=f"a script with {line}; allowed: pinned releases")
        for line in (
            "yum install -y aws-neuronx-runtime-lib aws-neuronx-collectives",
            "dnf install -y nvidia-driver",
            "apt-get install -y nvidia-driver-535=535.1*",
            "apt-get install -y nvidia-driver-535=535.183.*",
            "apt-get install -y nvidia-driver-pinning-580 cuda-drivers",
            "yum install -y --enablerepo=frozen aws-neuronx-tools",
            "git clone --bare https://github.com/aws/aws-ofi-nccl",
            "sudo -E apt-get -y install nvidia-driver-550",
            "DEBIAN_FRONTEND=noninteractive apt-get install -y nvidia-driver-550-server",
            "dnf install -y aws-neuronx-dkms",
            "apt-get install aws-neuronx-dkms=2.* -y",
            "dnf upgrade -y --releasever=latest",
            "dnf --releasever latest update",
            "apt-get dist-upgrade -y",
            "aws s3 cp s3://ec2-linux-nvidia-drivers/latest/ . --recursive",
            "git clone https://github.com/aws/aws-ofi-nccl",
            "git clone --depth 1 https://github.com/aws/aws-ofi-nccl.git /opt/ofi",
        )
    ),
    invalid("KRP12", template("yum update -y\n"), says="a script with yum update -y; allowed: a newer image"),
    invalid("KRP12", template("if true; then sudo dnf upgrade; fi\n"), says="sudo dnf upgrade", edge=True),
    invalid(
        "KRP12", node_class({"spec/userData": "runcmd:\n  - yum -y install \\\n    aws-neuronx-dkms\n"}), says="aws-neuronx-dkms; allowed"
    ),
    *(
        valid("KRP12", template(f"{line}\n"), edge=True)
        for line in (
            "yum install -y aws-neuronx-dkms-2.18.12.0",
            "apt-get install -y aws-neuronx-dkms=2.18.12.0 nvidia-driver-550=550.127.05-0ubuntu1",
            "dnf install -y nvidia-driver-550.127.05-1.amzn2023",
            "dnf install -y nvidia-driver-$DRIVER",
            "dnf install -y nvidia-driver-560.35.03*",
            "apt-get install -y nvidia-driver-570-server=570.86.15*",
            "apt-get install -y aws-neuronx-dkms=2.18.20.0*",
            "apt-get install -y nvidia-driver-pinning-580.65.06\napt-get install -y cuda-drivers",
            "yum --disablerepo='*' --enablerepo=frozen install -y aws-neuronx-tools",
            "git clone -bv1.13.0 https://github.com/aws/aws-ofi-nccl",
            "yum versionlock add aws-neuronx-dkms-2.18.12.0\nyum install -y aws-neuronx-dkms",
            "yum install -y htop nvidia-container-toolkit amazon-efs-utils",
            "yum update -y amazon-ssm-agent",
            "apt-get update -y",
            "# yum update -y",
            "echo yum update",
            "pip install -U torch",
            "aws s3 cp s3://ec2-linux-nvidia-drivers/g5-550.127.05/ . --recursive",
            "aws s3 cp boot.log s3://ours/latest/boot.log",
            "git clone -b v1.14.0 https://github.com/aws/aws-ofi-nccl",
            "git clone https://github.com/aws/aws-ofi-nccl /opt/ofi\ngit -C /opt/ofi checkout 0123abc",
            "git clone https://github.com/aws/aws-ofi-nccl-notes",
        )
    ),
    valid("KRP13", node_class({"spec/placementGroupSelector": {"name": "p5"}}), chart("1.14.1")),
    valid("KRP13", node_class({"spec/networkInterfaces": EFA_ONLY}), chart("1.11.0"), edge=True),
    valid("KRP13", node_class(), chart("1.8.2")),
    valid("KRP13", chart("1.13.0"), cluster("1.36"), edge=True),
    valid("KRP13", node_class({"spec/placementGroupSelector": {"id": "pg-1"}})),
    valid("KRP13", b.cpu_pool({POLICY: "Balanced"}), chart("1.14.0"), edge=True),
    invalid("KRP13", node_class({"spec/placementGroupSelector": {"name": "p5"}}), chart("1.8.2"), says="Karpenter 1.8.2 does not know"),
    invalid("KRP13", node_class({"spec/networkInterfaces": EFA_ONLY}), chart("1.10.9"), says="1.11 or later", edge=True),
    invalid("KRP13", node_class({"spec/networkInterfaces": EFA_ONLY}), chart("1.10.0", name="karpenter-crd"), says="karpenter-crd"),
    invalid("KRP13", b.cpu_pool({POLICY: "Balanced"}), chart("1.13.4"), says="1.14 or later for Balanced", edge=True),
    valid("KRP13", chart("1.9.0"), cluster("1.35")),
    invalid("KRP13", chart("1.12.3"), cluster("1.36"), says="1.13 or later for Kubernetes 1.36", edge=True),
    invalid("KRP13", chart("v1.5.2"), cluster("1.34"), says="1.6 or later for Kubernetes 1.34"),
    invalid("KRP13", node_class({"spec/placementGroupSelector": {"name": "p5", "id": "pg-1"}}), says="exactly one of name and id"),
    valid("KRP14", node_class()),
    valid("KRP14", node_class({"spec/instanceStorePolicy": "RAID0"})),
    valid("KRP14", node_class({"spec/subnetSelectorTerms": [{"tags": {"team": "cafeteria"}}]}), edge=True),
    valid("KRP14", node_class({"spec/subnetSelectorTerms": [{"tags": {"efa": "true"}}], "spec/networkInterfaces": EFA_ONLY})),
    valid("KRP14", node_class({DISKS: [{"ebs": {"volumeSize": "200Gi"}}]}), b.node_pool(), pod({SCRATCH: "200Gi"}), edge=True),
    valid("KRP14", node_class({"spec/instanceStorePolicy": "RAID0"}), b.node_pool(), pod({SCRATCH: "2Ti"})),
    invalid("KRP14", node_class({"spec/subnetSelectorTerms": [{"tags": {"efa-enabled": "true"}}]}), says="a tag attaches nothing"),
    invalid("KRP14", node_class({"spec/subnetSelectorTerms": [{"tags": {"network": "efa"}}]}), says="network: efa"),
    invalid("KRP14", node_class({"metadata/name": "p5-efa", "spec/instanceStorePolicy": "RAID0"}), says="RAID0 only joins the local disks"),
    invalid("KRP14", node_class(), b.node_pool(), pod({SCRATCH.replace("requests", "limits"): "21Gi"}), says="ask for 21 GiB", edge=True),
    invalid("KRP14", node_class(), b.node_pool(), pod({SCRATCH: "21Gi"}), says="a root volume of 20 GiB", edge=True),
    # The pool's class is one of EKS Auto Mode, and only called the same.
    valid(
        "KRP14",
        node_class(),
        b.node_pool({CLASS: {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "p5"}}),
        pod({SCRATCH: "21Gi"}),
    ),
    invalid("KRP14", node_class(), b.node_pool({CLASS: {"name": "p5"}}), pod({SCRATCH: "21Gi"}), says="a root volume of 20 GiB", edge=True),
    invalid(
        "KRP14",
        node_class({DISKS: [{"ebs": {"volumeSize": "200Gi"}}]}),
        b.node_pool(),
        pod({SCRATCH: "500Gi"}),
        says="ask for 500 GiB of ephemeral storage",
    ),
    valid("KRP06", node_class({TERMS: [{"alias": "windows2022@latest"}], "spec/amiFamily": "Windows2022"})),
    invalid("KRP06", node_class({TERMS: [{"alias": "windows2022@v1"}]}), says="windows2022@v1; allowed: windows2022@latest", edge=True),
    invalid("KRP06", node_class({TERMS: [{"alias": "al2023@v20261120", "name": "x", "tags": {"a": "b"}}]}), says="alias beside name, tags"),
    # That the role is empty is another rule's matter.
    valid("KRP07", node_class({"spec/role": "", "spec/instanceProfile": "profile"}), edge=True),
    invalid(
        "KRP07",
        node_class({"spec/securityGroupSelectorTerms": [{"id": "sg-1", "name": "nodes", "tags": {"a": "b"}}]}),
        says="id beside name, tags; allowed: id alone",
    ),
    invalid("KRP07", node_class({"spec/securityGroupSelectorTerms": [{"name": "nodes", "tags": {"a": "b"}}]}), says="name beside tags"),
    invalid("KRP12", encoded(base64.encodebytes(PIPED.encode())), says="curl -sL"),
    valid("KRP12", node_class({"spec/userData": base64.b64encode(PIPED.encode()).decode()}), edge=True),
    invalid("KRP12", encoded(base64.b64encode(f"# r\xe9seau\n{PIPED}".encode("latin-1"))), says="curl -sL"),
    invalid("KRP13", node_class({"spec/placementGroupSelector": {}}), says="placementGroupSelector is empty"),
    # What is not known of one resource hides nothing of another.
    invalid(
        "KRP13",
        node_class({"spec/placementGroupSelector": UNKNOWN}),
        replace(node_class({"spec/placementGroupSelector": {}}), name="other"),
        says="other: spec.placementGroupSelector is empty",
    ),
    invalid(
        "KRP13",
        replace(node_class({"spec": UNKNOWN}), name="other"),
        node_class({"spec/networkInterfaces": EFA_ONLY}),
        b.cpu_pool({POLICY: UNKNOWN}),
        chart("1.10.0"),
        says="networkInterfaces, which Karpenter 1.10.0 does not know",
    ),
    invalid("KRP13", replace(cluster(UNKNOWN), name="other"), cluster("1.36"), chart("1.12.3"), says="1.13 or later for Kubernetes 1.36"),
    invalid(
        "KRP13",
        node_class({"spec/networkInterfaces": EFA_ONLY}),
        chart("latest"),
        chart("1.10.0", name="karpenter-crd"),
        says="karpenter-crd installs it",
    ),
    valid("KRP14", node_class(), b.node_pool(), pod({"spec/containers": [SCRATCHING, {"name": "logs"}]}), edge=True),
    invalid("KRP14", node_class(), b.cpu_pool(), b.node_pool(), pod({SCRATCH: "21Gi"}), says="pods of trainer that ask for 21 GiB"),
    # Karpenter counts the volume that the family's pods write to.
    valid("KRP14", node_class({TERMS: BOTTLEROCKET, DISKS: [disk("xvda", "4Gi"), disk("xvdb", "100Gi")]}), *ASKING, edge=True),
    valid("KRP14", node_class({DISKS: [disk("xvdb", "10Gi"), disk("xvda", "100Gi")]}), *ASKING, edge=True),
    valid("KRP14", node_class({"spec/amiFamily": "Custom", DISKS: [disk("sda1", "4Gi"), disk("sdb", "100Gi")]}), *ASKING, edge=True),
    invalid(
        "KRP14",
        node_class({TERMS: BOTTLEROCKET, DISKS: [disk("xvda", "200Gi"), disk("xvdb", "99Gi")]}),
        *ASKING,
        says="a data volume of 99 GiB, and pods of trainer that ask for 100 GiB",
        edge=True,
    ),
    invalid("KRP14", node_class({DISKS: [disk("xvdb", "200Gi")]}), *ASKING, says="a root volume of 20 GiB"),
    invalid("KRP14", node_class({DISKS: [DATA, ROOT]}), b.node_pool(), pod({SCRATCH: "100Gi"}), says="a root volume of 50 GiB"),
    invalid(
        "KRP14",
        node_class({"spec/subnetSelectorTerms": [{"tags": {"efa": "true"}}], "spec/networkInterfaces": EFA_ONLY[:1]}),
        says="a tag attaches nothing",
    ),
    # An id names one image, whatever stands beside it.
    invalid(
        "KRP06",
        node_class({TERMS: [{"id": "ami-1", "name": "trainyard-*"}], "spec/amiFamily": "AL2023"}),
        says="amiSelectorTerms[0] is id beside name; allowed: id alone",
    ),
    valid("KRP14", node_class({"metadata/labels": {"network": "efa"}, "spec/instanceStorePolicy": "RAID0"}), edge=True),
    # Of a custom image the last volume counts, and one that is called the root volume before any other, if it has a size.
    valid(
        "KRP14",
        node_class({"spec/amiFamily": "Custom", DISKS: [disk("sda1", "4Gi"), disk("sdb", "4Gi"), disk("sdc", "100Gi")]}),
        *ASKING,
        edge=True,
    ),
    invalid(
        "KRP14",
        node_class({TERMS: BOTTLEROCKET, DISKS: [{**disk("xvda", "50Gi"), "rootVolume": True}, disk("xvdb", "200Gi")]}),
        *ASKING,
        says="a root volume of 50 GiB, and pods of trainer that ask for 100 GiB",
    ),
    valid("KRP14", node_class({TERMS: BOTTLEROCKET, DISKS: [COPIED, disk("xvdb", "100Gi")]}), *ASKING, edge=True),
    invalid(
        "KRP14",
        node_class({TERMS: BOTTLEROCKET, DISKS: [COPIED, disk("xvdb", "99Gi")]}),
        *ASKING,
        says="a data volume of 99 GiB, and pods of trainer that ask for 100 GiB",
        edge=True,
    ),
    invalid("KRP14", node_class({DISKS: [COPIED]}), *ASKING, says="a root volume of 20 GiB, and pods of trainer that ask for 100 GiB"),
    # What a shell reads from the network may come to it in other ways.
    *(
        invalid("KRP12", template(f"{script}\n"), says=f"a script with {says}")
        for script, says in (
            ("curl -fsSL https://example.com/setup | sudo -E bash -", "curl -fsSL https://example.com/setup | sudo -E bash"),
            ("curl -fsSL https://example.com/setup | sudo -u root /bin/sh", "curl -fsSL https://example.com/setup | sudo -u root /bin/sh"),
            ("wget -qO- https://example.com/setup |/usr/bin/bash -s", "wget -qO- https://example.com/setup |/usr/bin/bash"),
            ("wget -qO- https://example.com/setup | dash", "wget -qO- https://example.com/setup | dash"),
            ("curl -fsSL \\\n  https://example.com/setup \\\n  | bash", "curl -fsSL"),
            ("bash <(curl -fsSL https://example.com/setup)", "bash <(curl"),
            ('sudo bash -c "$(wget -qO- https://example.com/setup)"', 'bash -c "$(wget'),
            ("sh -ec '`curl -fsSL https://example.com/setup`'", "sh -ec '`curl"),
            ("source <(curl -fsSL https://example.com/environment)", "source <(curl"),
            ('eval "$(curl -fsSL https://example.com/environment)"', 'eval "$(curl'),
        )
    ),
    *(
        valid("KRP12", template(f"{script}\n"), edge=True)
        for script in (
            "curl -fsSL https://example.com/tool-1.2.tar.gz | sudo tar -xzC /opt",
            "curl -fsSL https://example.com/key.asc | sudo -E tee /etc/apt/keyrings/example.asc",
            "curl -fsSL https://example.com/setup-1.2.sh -o setup.sh\nsha256sum -c setup.sha256 | sh -c cat",
            "/opt/setup.sh $(curl -s http://169.254.169.254/latest/meta-data/instance-id)",
            "bash /opt/setup.sh < <(curl -s https://example.com/hosts)",
            "curl -fsSL https://example.com/hosts \\\n  -o hosts\ncat hosts | sh",
        )
    ),
)

SELECTOR, TOLERATIONS = "spec/nodeSelector", "spec/tolerations"


def asking_nothing(selector: dict[str, str]) -> Thing:
    """A pod without devices."""
    return pod({SELECTOR: selector, "spec/containers": [{"name": "web"}], TOLERATIONS: b.DELETE}, name="web")


def anywhere(kind: str, line: str, count: dict[str, int] | None = None) -> Thing:
    """One or more pods that ask for devices and say nothing of their nodes."""
    template = {"spec": {"containers": [{"name": "main", "command": line.split(), "resources": {"limits": EIGHT}}]}}
    jobs = {tokens.CRON_JOB: {"jobTemplate": {"spec": {"template": template}}}}
    specs = {**jobs, tokens.POD: template["spec"], tokens.LEADER_WORKER_SET: {"leaderWorkerTemplate": {"workerTemplate": template}}}
    spec = {**specs.get(kind, {"template": template}), **(count or {})}
    return Thing(type=kind, name="one", properties={"metadata": {"name": "one"}, "spec": spec})


QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "team-a"}}


def queued(
    kind: str, *, job: dict[str, Any] | None = None, made: dict[str, Any] | None = None, pods: dict[str, Any] | None = None
) -> Thing:
    """A kind that makes pods which name no nodes, with this metadata of its own, of the jobs that it makes and of the pods."""
    template = {"metadata": pods or {}, "spec": pod({SELECTOR: b.DELETE, TOLERATIONS: b.DELETE}).properties["spec"]}
    spec: dict[str, Any] = {"parallelism": 4, "replicas": 4, "template": template}
    if kind == tokens.CRON_JOB:
        spec = {"jobTemplate": {"metadata": made or {}, "spec": spec}}
    elif kind == tokens.VOLCANO_JOB:
        spec = {"tasks": [{"name": "rank", **spec}]}
    return Thing(type=kind, name="embed", properties={"metadata": {"name": "embed", **(job or {})}, "spec": spec})


def preferring(expression: dict[str, Any]) -> dict[str, Any]:
    """A pod that would rather have nodes of which the expression holds."""
    preferred = [{"weight": 1, "preference": {"matchExpressions": [expression]}}]
    return {"spec/affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


P5 = require("node.kubernetes.io/instance-type", "In", "p5.48xlarge")


def either(*expressions: dict[str, Any]) -> dict[str, Any]:
    """A pod that wants nodes of which one of the expressions holds."""
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    return {"spec/affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}


HELD = b.node_pool({TAINTS: [GPU_TAINT, {"key": "team", "value": "ml", "effect": "NoSchedule"}]}, name="held")
KEPT = b.node_pool({TAINTS: [GPU_TAINT, {"key": "maintenance", "effect": "NoExecute"}]}, name="kept")

PLACES = (
    valid("KRP11", b.node_pool(), pod()),
    valid("KRP11", b.node_pool(), b.cpu_pool()),
    valid("KRP11", b.node_pool(), pod({SELECTOR: b.DELETE, **either(require("node.kubernetes.io/instance-type", "In", "p5.48xlarge"))})),
    valid("KRP11", pod()),
    valid("KRP11", b.node_pool(), pod({TOLERATIONS: [{"operator": "Exists"}]}), edge=True),
    valid("KRP11", b.node_pool(), pod({SELECTOR: {"karpenter.sh/nodepool": "p5"}})),
    valid("KRP11", b.node_pool({TAINTS: [{"key": "nvidia.com/gpu", "effect": "PreferNoSchedule"}, {"key": "x", "effect": "NoExecute"}]})),
    valid("KRP11", b.node_pool(), pod({SELECTOR: {"topology.kubernetes.io/zone": "us-east-1a"}})),
    valid("KRP11", pod(either(require("topology.k8s.aws/zone-id", "In", "use1-az1"))), edge=True),
    valid("KRP11", pod(either(require("topology.ebs.csi.aws.com/zone", "DoesNotExist"))), edge=True),
    invalid("KRP11", pod({SELECTOR: {"topology.ebs.csi.aws.com/zone": "us-east-1a"}}), says="no other key pins a zone"),
    invalid("KRP11", pod(either(require(EBS_ZONE, "Exists"))), says="matchExpressions[0].key is topology.ebs.csi.aws.com/zone; allowed"),
    invalid(
        "KRP11",
        pod(either(require("node.kubernetes.io/instance-type", "Exists"), require("example.com/zone", "In", "dmz", "us-east-1a"))),
        says="nodeSelectorTerms[1].matchExpressions[0].key is example.com/zone",
    ),
    # Karpenter reads the old name of the key as the one of today.
    valid("KRP11", pod(either(require("failure-domain.beta.kubernetes.io/zone", "In", "us-east-1a"))), edge=True),
    invalid(
        "KRP11",
        b.node_pool(),
        pod({SELECTOR: {"beta.kubernetes.io/instance-type": "p5.48xlarge"}, TOLERATIONS: b.DELETE}),
        says="the taint of p5 that it selects",
    ),
    # Zones of a firewall are no availability zones.
    valid("KRP11", asking_nothing({"security.example.com/zone": "dmz"})),
    valid("KRP11", pod(either(require("security.example.com/zone", "Exists"))), edge=True),
    invalid("KRP11", asking_nothing({"security.example.com/zone": "eusc-de-east-1a"}), says="no other key pins a zone", edge=True),
    invalid("KRP11", b.node_pool(), pod({SELECTOR: b.DELETE, **preferring(P5)}), says="nodeSelector is unset, with tolerations", edge=True),
    invalid("KRP11", pod({SELECTOR: b.DELETE, **preferring(P5), TOLERATIONS: b.DELETE}), says="a selector of the pool or instance type"),
    valid("KRP11", b.node_pool(), pod({SELECTOR: b.DELETE, **either(P5, require("example.com/pool", "Exists"))}), edge=True),
    # A pool that bars what the pod wants is not the pod's.
    valid("KRP11", b.node_pool({KIND: require(CAPACITY, "NotIn", "spot")}), pod({SELECTOR: {CAPACITY: "spot"}, TOLERATIONS: b.DELETE})),
    invalid(
        "KRP11",
        b.node_pool({KIND: require(CAPACITY, "Exists")}),
        pod({SELECTOR: {CAPACITY: "spot"}, TOLERATIONS: b.DELETE}),
        says="the taint of p5",
        edge=True,
    ),
    invalid("KRP11", b.node_pool({**UNTAINTED, FIRST: require(CATEGORY, "In", "p")}), says="fill the accelerators' nodes"),
    invalid("KRP11", b.node_pool(), pod({SELECTOR: b.DELETE}), says="takes the pod too (a toleration only permits)"),
    # One pod that does not train may take whatever node has devices.
    *(
        valid("KRP11", b.node_pool(), anywhere(kind, "nvidia-smi", count), edge=True)
        for kind, count in ((tokens.POD, {}), (tokens.JOB, {"parallelism": 1}), (tokens.CRON_JOB, {}), (tokens.DEPLOYMENT, {"replicas": 1}))
    ),
    valid("KRP11", anywhere(tokens.JOB, "python3 prepare_training.py")),
    valid("KRP11", anywhere(tokens.STATEFUL_SET, "vllm serve model", {"replicas": 0}), edge=True),
    invalid(
        "KRP11", anywhere(tokens.JOB, "nvidia-smi", {"parallelism": 2}), says="type: any other that has such devices takes the pod too."
    ),
    invalid("KRP11", anywhere(tokens.DEPLOYMENT, "vllm serve model", {"replicas": 2}), says="spec.template.spec.nodeSelector is unset;"),
    invalid("KRP11", anywhere(tokens.JOB, "python3 train.py"), says="nodeSelector is unset;", edge=True),
    invalid("KRP11", anywhere(tokens.POD, "accelerate launch run.py"), says="nodeSelector is unset;"),
    invalid("KRP11", anywhere(tokens.LEADER_WORKER_SET, "vllm serve model"), says="workerTemplate.spec.nodeSelector is unset;", edge=True),
    invalid("KRP11", pod({SELECTOR: {}, TOLERATIONS: b.DELETE}), says="nodeSelector is unset; allowed: a selector", edge=True),
    invalid("KRP11", b.node_pool(), pod({TOLERATIONS: b.DELETE}), says="a toleration of nvidia.com/gpu:NoSchedule, the taint of p5"),
    invalid("KRP11", b.node_pool(), pod({f"{TOLERATIONS}/0/key": "amd.com/gpu"}), says="the taint of p5"),
    invalid("KRP11", b.node_pool(), pod({f"{TOLERATIONS}/0/effect": "NoExecute"}), says="the taint of p5", edge=True),
    # Kueue gives the pods the labels and tolerations of a ResourceFlavor.
    valid("KRP11", b.node_pool(), pod({SELECTOR: b.DELETE, "metadata/labels": QUEUED["labels"]})),
    valid("KRP11", b.node_pool(), pod({TOLERATIONS: b.DELETE, "metadata/labels": QUEUED["labels"]})),
    *(valid("KRP11", queued(kind, job=QUEUED)) for kind in (tokens.JOB, tokens.DEPLOYMENT, tokens.STATEFUL_SET)),
    valid("KRP11", queued(tokens.CRON_JOB, made=QUEUED), edge=True),
    valid("KRP11", queued(tokens.VOLCANO_JOB, pods=QUEUED), edge=True),
    invalid("KRP11", queued(tokens.CRON_JOB, job=QUEUED), says="jobTemplate.spec.template.spec.nodeSelector is unset", edge=True),
    invalid("KRP11", queued(tokens.VOLCANO_JOB, job=QUEUED), says="spec.tasks[0].template.spec.nodeSelector is unset", edge=True),
    invalid("KRP11", queued(tokens.JOB, job={"labels": {"kueue.x-k8s.io/queue-name": ""}}), says="nodeSelector is unset", edge=True),
    invalid(
        "KRP11",
        pod({SELECTOR: {"topology.ebs.csi.aws.com/zone": "a"}, "metadata/labels": QUEUED["labels"]}),
        says="no other key pins a zone",
    ),
    invalid("KRP11", b.node_pool({TAINTS: []}), says="taints is []"),
    invalid("KRP11", b.node_pool({f"{TAINTS}/0/effect": "PreferNoSchedule"}), says="fill the accelerators' nodes", edge=True),
    invalid(
        "KRP11",
        b.cpu_pool({TAINTS: [{"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"}]}),
        says="under startupTaints",
    ),
    # One pool that takes the pod is enough.
    valid("KRP11", HELD, b.node_pool(), pod(), edge=True),
    valid("KRP11", b.node_pool(), HELD, pod()),
    valid("KRP11", HELD, pod({TOLERATIONS: [{"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": "team", "value": "ml"}]}), edge=True),
    invalid("KRP11", HELD, pod(), says="a toleration of team:NoSchedule, the taint of held that it selects"),
    invalid("KRP11", HELD, KEPT, pod(), says="a toleration of team:NoSchedule, the taint of held that it selects", edge=True),
    invalid("KRP11", KEPT, HELD, pod(), says="a toleration of maintenance:NoExecute, the taint of kept that it selects"),
    invalid("KRP11", HELD, pod({TOLERATIONS: b.DELETE}), says="a toleration of nvidia.com/gpu:NoSchedule, team:NoSchedule, the taint"),
    invalid(
        "KRP11",
        HELD,
        pod({TOLERATIONS: [{"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": "team", "value": "vision"}]}),
        says="a toleration of team:NoSchedule, the taint of held",
        edge=True,
    ),
)


def by_argo(helm: dict[str, Any]) -> Thing:
    return b.application_of("karpenter", helm)


CASES = (*POOLS, *LIFETIMES, *CLASSES, *PLACES)

GPU, TEMPLATE = "nvidia.com/gpu", "spec/template/spec"


def limited(key: str, amount: Any, *types: str) -> Thing:
    """A pool of these types with a limit."""
    changes = {f"{TEMPLATE}/requirements/0/values": list(types)} if types else {}
    return b.node_pool({"spec/limits": {GPU: 64, key: amount}, **changes})


def asking_also(key: str, comparison: str, *values: str, types: tuple[str, ...] = ("p5.48xlarge",)) -> Thing:
    """A pool with one more requirement."""
    own = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}
    return b.node_pool({f"{TEMPLATE}/requirements": [own, {"key": key, "operator": comparison, "values": list(values)}]})


def of_family(*families: str, key: str = "karpenter.k8s.aws/instance-family", more: tuple[Any, ...] = (), auto: bool = False) -> Thing:
    """A pool that names families."""
    return b.node_pool(
        {f"{TEMPLATE}/requirements": [{"key": key, "operator": "In", "values": list(families)}, *more], **(AUTO if auto else {})}
    )


ARM = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}

CASES += (
    # A limit that no node keeps within.
    invalid("KRP08", limited(GPU, 7), says="is 7; allowed: at least 8, what the smallest node", edge=True),
    valid("KRP08", limited(GPU, 8), edge=True),
    invalid("KRP08", limited("cpu", 191), says="is 191; allowed: at least 192", edge=True),
    valid("KRP08", limited("cpu", "192"), edge=True),
    invalid("KRP08", limited("memory", "1000Gi"), says="is 1000Gi; allowed: at least"),
    valid("KRP08", limited("memory", "2Ti")),
    valid("KRP08", limited(GPU, 4, "g5.48xlarge", "g5.12xlarge"), edge=True),
    invalid("KRP08", limited(GPU, 3, "g5.48xlarge", "g5.12xlarge"), says="at least 4", edge=True),
    valid("KRP08", limited(GPU, 1, "p9.48xlarge")),
    # A limit of none switches a pool off.
    valid("KRP08", limited("cpu", 0), edge=True),
    # Requirements that leave no type.
    invalid("KRP09", asking_also("kubernetes.io/arch", "In", "arm64"), says="kubernetes.io/arch at odds with p5.48xlarge"),
    valid("KRP09", asking_also("kubernetes.io/arch", "In", "amd64"), edge=True),
    valid("KRP09", asking_also("kubernetes.io/arch", "In", "arm64", types=("p5.48xlarge", "g5g.16xlarge")), edge=True),
    valid("KRP09", asking_also("kubernetes.io/arch", "In", "arm64", types=("p6e-gb200.36xlarge",)), edge=True),
    valid("KRP09", asking_also("beta.kubernetes.io/arch", "NotIn", "arm64", types=("g6e.48xlarge",)), edge=True),
    invalid("KRP09", asking_also("kubernetes.io/arch", "NotIn", "arm64", types=("c7gn.16xlarge",)), says="at odds with c7gn.16xlarge"),
    invalid("KRP09", asking_also("karpenter.k8s.aws/instance-category", "In", "g"), says="instance-category at odds with"),
    invalid("KRP09", asking_also("karpenter.k8s.aws/instance-gpu-count", "Gt", "8"), says="instance-gpu-count at odds", edge=True),
    valid("KRP09", asking_also("karpenter.k8s.aws/instance-gpu-count", "Gt", "7"), edge=True),
    invalid("KRP09", asking_also("node.kubernetes.io/instance-type", "In", "p4d.24xlarge"), says="several of node.kubernetes.io"),
    valid("KRP09", of_family("p5")),
    invalid("KRP09", of_family("p5.48xlarge"), says="instance-family at odds with p5.48xlarge"),
    invalid("KRP09", of_family("p5", more=(ARM,)), says="kubernetes.io/arch at odds with p5"),
    valid("KRP09", of_family("g5g", more=(ARM,)), edge=True),
    invalid(
        "KRP09",
        of_family("p5", more=({"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["5"]},)),
        says="instance-generation at odds with p5",
    ),
    # Keys that tell types apart elsewhere.
    invalid("KRP09", of_family("p5", key="node.kubernetes.io/instance-family"), says="a label of your own, which keeps no type out"),
    invalid("KRP09", of_family("p5", key="eks.amazonaws.com/instance-family"), says="karpenter.k8s.aws/instance-family: Karpenter takes"),
    valid("KRP09", of_family("p5", key="eks.amazonaws.com/instance-family", auto=True), edge=True),
    valid("KRP09", of_family("p5", key="example.com/instance-family"), edge=True),
    # Values in the case in which Karpenter writes them.
    invalid("KRP09", of_family("H100", key="karpenter.k8s.aws/instance-gpu-name"), says="is H100; allowed: h100"),
    valid("KRP09", of_family("h100", key="karpenter.k8s.aws/instance-gpu-name"), edge=True),
    invalid("KRP09", of_family("NVIDIA", key="karpenter.k8s.aws/instance-gpu-manufacturer"), says="is NVIDIA; allowed: nvidia"),
    # A device that pods do not use.
    invalid("KRP14", node_class({TERMS: BOTTLEROCKET, DISKS: [disk("xvda", "500Gi")]}), says="/dev/xvda, of 500 GiB; allowed: /dev/xvdb"),
    valid("KRP14", node_class({TERMS: BOTTLEROCKET, DISKS: [disk("xvda", "20Gi")]}), edge=True),
    invalid("KRP14", node_class({TERMS: BOTTLEROCKET, DISKS: [disk("xvda", "21Gi")]}), says="of 21 GiB", edge=True),
    valid("KRP14", node_class({TERMS: BOTTLEROCKET, DISKS: [disk("xvda", "500Gi")], "spec/instanceStorePolicy": "RAID0"})),
    invalid("KRP14", node_class({DISKS: [disk("sda1", "500Gi")]}), says="/dev/sda1, of 500 GiB; allowed: /dev/xvda, where AL2023"),
    valid("KRP14", node_class({DISKS: [disk("xvda", "500Gi"), disk("sdb", "500Gi")]})),
    valid("KRP14", node_class({DISKS: [disk("sdb", "500Gi")], "spec/userData": "#!/bin/sh\nmkfs.xfs /dev/nvme1n1\n"}), edge=True),
)
