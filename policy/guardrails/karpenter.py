"""Karpenter: pools that must not move a running gang, classes that must not drift under it, and kinds that exist."""

from guardrails import karpenter_class, karpenter_lifetime, karpenter_place, karpenter_pool
from guardrails.rule import Example, Report, Resource, Rule

_OLD_KINDS = {
    "kubernetes:karpenter.sh/v1alpha5:Provisioner": "karpenter.sh/v1 NodePool",
    "kubernetes:karpenter.sh/v1alpha5:Machine": "karpenter.sh/v1 NodeClaim",
    "kubernetes:karpenter.sh/v1beta1:NodePool": "karpenter.sh/v1 NodePool",
    "kubernetes:karpenter.sh/v1beta1:NodeClaim": "karpenter.sh/v1 NodeClaim",
    "kubernetes:karpenter.sh/v1:Provisioner": "karpenter.sh/v1 NodePool",
    "kubernetes:karpenter.k8s.aws/v1alpha1:AWSNodeTemplate": "karpenter.k8s.aws/v1 EC2NodeClass",
    "kubernetes:karpenter.k8s.aws/v1beta1:EC2NodeClass": "karpenter.k8s.aws/v1 EC2NodeClass",
    "kubernetes:karpenter.k8s.aws/v1:AWSNodeTemplate": "karpenter.k8s.aws/v1 EC2NodeClass",
}


def _old_kind(resource: Resource, report: Report) -> None:
    version, _, kind = resource.type.removeprefix("kubernetes:").rpartition(":")
    served, today = _OLD_KINDS[resource.type].split()
    if kind == today:
        report.refuse(resource, resource.at("apiVersion"), allowed=served, found=version)
    else:
        report.refuse(resource, resource.at("kind"), allowed=f"{today} of {served}", found=f"{kind} of {version}")


RULES = (
    Rule(
        id="KRP01",
        name="karpenter-require-v1",
        title="Karpenter's objects are of its v1 API",
        types=frozenset(_OLD_KINDS),
        check=_old_kind,
        why="the API server knows no such kind since Karpenter 1.1, so the object is never made.",
        fix="write the object as karpenter.sh/v1 NodePool or karpenter.k8s.aws/v1 EC2NodeClass.",
        source="karpenter-provider-aws 1.14.1 upgrading/v1-migration",
        valid=(Example("kubernetes:karpenter.sh/v1:NodePool", {"metadata": {"name": "p5"}, "spec": {}}, name="p5"),),
        invalid=(Example("kubernetes:karpenter.sh/v1beta1:NodePool", {"metadata": {"name": "p5"}, "spec": {}}, name="p5"),),
    ),
    *karpenter_pool.RULES,
    *karpenter_lifetime.RULES,
    *karpenter_class.RULES,
    *karpenter_place.RULES,
)
