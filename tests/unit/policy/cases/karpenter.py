"""Karpenter pools and classes."""

from tests.unit.policy import builders as b
from tests.unit.policy.case import invalid, valid

REQUIREMENTS = "spec/template/spec/requirements"
BUDGET = "spec/disruption/budgets/0"
TERMS = "spec/amiSelectorTerms"

CASES = (
    valid("KRP02", b.node_pool()),
    valid("KRP02", b.cpu_pool({"spec/disruption/consolidationPolicy": "WhenEmptyOrUnderutilized"})),
    valid("KRP02", b.node_pool({"spec/disruption/consolidateAfter": "Never"})),
    valid("KRP02", b.cpu_pool({"spec/disruption/consolidationPolicy": "Balanced"})),
    invalid(
        "KRP02",
        b.node_pool({"spec/disruption/consolidationPolicy": "WhenUnderutilized"}),
        says="WhenEmpty, WhenEmptyOrUnderutilized, Balanced",
    ),
    invalid(
        "KRP02",
        b.node_pool({"spec/disruption/consolidationPolicy": "WhenEmptyOrUnderutilized"}),
        says="WhenEmpty on a pool of accelerators",
    ),
    invalid("KRP02", b.node_pool({"spec/disruption": b.DELETE}), says="unset (Karpenter then uses WhenEmptyOrUnderutilized)"),
    invalid("KRP02", b.cpu_pool({"spec/disruption/consolidateAfter": "10 minutes"}), says="consolidateAfter is 10 minutes"),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}})),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": "100%"}})),
    valid("KRP03", b.node_pool({BUDGET: {"nodes": 3}})),
    valid("KRP03", b.node_pool({"spec/disruption/budgets": b.DELETE})),
    invalid("KRP03", b.node_pool({f"{BUDGET}/schedule": "@daily"}), says="budgets[0].duration is unset"),
    invalid("KRP03", b.node_pool({f"{BUDGET}/duration": "8h"}), says="budgets[0].schedule is unset"),
    invalid("KRP03", b.node_pool({f"{BUDGET}/nodes": "150%"}), says="150%"),
    invalid("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "@daily", "duration": "90s"}}), says="hours and minutes only"),
    invalid("KRP03", b.node_pool({f"{BUDGET}/reasons": ["Consolidated"]}), says="Underutilized, Empty, Drifted"),
    invalid("KRP03", b.node_pool({"spec/disruption/budgets": [{"nodes": "1"}] * 51}), says="51 budgets"),
    valid("KRP04", b.node_pool()),
    valid("KRP04", b.cpu_pool({"spec/template/spec/expireAfter": "720h"})),
    valid("KRP04", b.cpu_pool({f"{REQUIREMENTS}/0": {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}})),
    invalid("KRP04", b.node_pool({"spec/template/spec/expireAfter": b.DELETE}), says="unset (Karpenter then uses 720h)"),
    invalid("KRP04", b.node_pool({"spec/template/spec/expireAfter": "24h"}), says="expireAfter is 24h; allowed: Never"),
    invalid("KRP04", b.node_pool({f"{REQUIREMENTS}/2/values": ["spot", "on-demand"]}), says="spot"),
    invalid(
        "KRP04", b.cpu_pool({"spec/limits": {"nvidia.com/gpu": 8}, "spec/template/spec/expireAfter": "720h"}), says="expireAfter is 720h"
    ),
    valid("KRP06", b.node_class()),
    valid("KRP06", b.node_class({TERMS: [{"id": "ami-0123456789abcdef0"}], "spec/amiFamily": "AL2023"})),
    valid("KRP06", b.node_class({TERMS: [{"alias": "bottlerocket@v1.40.0"}]})),
    invalid("KRP06", b.node_class({TERMS: []}), says="amiSelectorTerms is empty"),
    invalid("KRP06", b.node_class({TERMS: [{"alias": "al2023@latest"}]}), says="al2023@latest"),
    invalid("KRP06", b.node_class({TERMS: [{"alias": "al2@v20260101"}]}), says="Amazon Linux 2 ends"),
    invalid("KRP06", b.node_class({TERMS: [{"alias": "al2023@v20261120"}, {"id": "ami-1"}]}), says="an alias alone"),
    invalid("KRP06", b.node_class({TERMS: b.DELETE, "spec/amiFamily": "AL2"}), says="at least one term"),
    invalid("KRP06", b.node_class({TERMS: [{"id": "ami-1"}]}), says="amiFamily is unset"),
)
