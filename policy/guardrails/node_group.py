"""Managed node groups: a type, an image with its drivers, and each thing said once."""

from collections.abc import Sequence

from guardrails.chart import version
from guardrails.facts import instance_types, load
from guardrails.launch import groups_with
from guardrails.managed_template import encoded, template_suits_group
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.tokens import (
    CLUSTER,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
)

_NEURON = ("trainium", "inferentia")


_FOR_NEURON = ("_NEURON", "AL2_x86_64_GPU", "BOTTLEROCKET_x86_64", "BOTTLEROCKET_x86_64_FIPS")
_FOR_GPU = ("_NVIDIA_FIPS", "_NVIDIA", "_GPU")
"""How images end that have the drivers; the plain Bottlerocket has those of Neuron, and AL2's one image has both."""


_DEFAULT_AMI = "AL2023_x86_64_STANDARD"


def _node_groups(program: Program, report: Report) -> None:
    templates = {group.urn: each for each in program.of(LAUNCH_TEMPLATE) for group in groups_with(program, each)}
    for group in program.of(NODE_GROUP):
        template = templates.get(group.urn)
        for check in (_beside_template, _types, template_suits_group):
            with report.part():
                check(group, template, report)
        for check in (_sizes, _taints, _labels, _words):
            with report.part():
                check(group, report)
        with report.part():
            _image(program, group, template, report)
    for template in program.of(LAUNCH_TEMPLATE):
        with report.part():
            encoded(template, report)


def _beside_template(group: Resource, template: Resource | None, report: Report) -> None:
    if not group.at("launchTemplate").present:
        return
    for key in ("diskSize", "remoteAccess"):
        place = group.at(key)
        if place.present:
            report.refuse(group, place, allowed="unset, because there is a launch template, which says it")
    if template is not None:
        _beside_image(group, template, report)


def _beside_image(group: Resource, template: Resource, report: Report) -> None:
    """What says which of EKS's images the nodes get, where the template has one of its own."""
    if template.at("imageId").raw in (None, ""):
        return
    allowed = f"unset, because template {template.name} names an image"
    if group.at("amiType").text() not in ("", "CUSTOM"):
        report.refuse(group, group.at("amiType"), allowed=allowed)
    for key in ("version", "releaseVersion"):
        with report.part():
            if group.at(key).text():
                report.refuse(group, group.at(key), allowed=allowed)


def _sizes(group: Resource, report: Report) -> None:
    scaling = group.at("scalingConfig")
    least, wanted, most = (scaling.at(key).integer() for key in ("minSize", "desiredSize", "maxSize"))
    if most is not None and most < 1:
        report.refuse(group, scaling.at("maxSize"), allowed="at least 1; a group without nodes has minSize and desiredSize 0")
    elif wanted is not None and most is not None and wanted > most:
        report.refuse(group, scaling.at("desiredSize"), allowed=f"at most maxSize, {most}")
    if wanted is not None and least is not None and wanted < least:
        report.refuse(group, scaling.at("desiredSize"), allowed=f"at least minSize, {least}")


def _taints(group: Resource, report: Report) -> None:
    effects = load("eks")["taintEffects"]
    for taint in group.at("taints").elements():
        with report.part():
            effect = taint.at("effect")
            meant = next((own for own, kubernetes in effects.items() if kubernetes == effect.text()), None)
            if effect.text() not in effects:
                report.refuse(group, effect, allowed=f"{meant}, as EKS writes it" if meant else ", ".join(effects))


def _labels(group: Resource, report: Report) -> None:
    for key, label in group.at("labels").entries():
        if _is_kept_from_kubelets(key):
            allowed = "a label outside kubernetes.io and k8s.io, such as one of your own domain"
            report.refuse(group, label, allowed=allowed, found="set, and a kubelet told to set it does not start")


def _is_kept_from_kubelets(key: str) -> bool:
    """Whether a label is Kubernetes' own, and none of those that a kubelet may give its node."""
    facts, domain = load("eks"), key.rpartition("/")[0]
    return (
        _is_in(domain, ("kubernetes.io", "k8s.io"))
        and key not in facts["kubeletLabels"]
        and not _is_in(domain, facts["kubeletLabelDomains"])
    )


def _is_in(domain: str, parents: Sequence[str]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


def _words(group: Resource, report: Report) -> None:
    kind, known = group.at("capacityType"), load("eks")["capacityTypes"]
    with report.part():
        if kind.present and kind.text() not in known:
            report.refuse(group, kind, allowed=", ".join(known))
    update = group.at("updateConfig")
    if update.at("maxUnavailable").present and update.at("maxUnavailablePercentage").present:
        report.refuse(group, update.at("maxUnavailablePercentage"), allowed="unset beside maxUnavailable: EKS takes one of the two")


def _types(group: Resource, template: Resource | None, report: Report) -> None:
    place = group.at("instanceTypes")
    named = list(place.elements())
    if template is not None and template.at("instanceType").present:
        if named:
            report.refuse(group, place, allowed=f"unset, because template {template.name} names {template.at('instanceType').text()}")
    elif not named and not _says_types(group, template):
        report.refuse(group, place, allowed="an instance type", found="unset (EKS takes t3.medium)")


def _says_types(group: Resource, template: Resource | None) -> bool:
    """Whether a template says by requirements which types it takes, or may: one that isn't in the program."""
    return template.at("instanceRequirements").present if template is not None else group.at("launchTemplate").present


def _image(program: Program, group: Resource, template: Resource | None, report: Report) -> None:
    if _own_image(group, template):
        return
    place, known = group.at("amiType"), load("eks")["amiTypes"]
    image = place.text() or _DEFAULT_AMI
    if image not in known:
        meant = next((name for name in known if name.lower() == image.lower()), None)
        report.refuse(group, place, allowed=meant or f"one of {', '.join(known)}")
        return
    names = [each.text() for each in group.at("instanceTypes").elements()]
    names += [template.at("instanceType").text()] if template is not None and template.at("instanceType").present else []
    arm = load("fleet")["arm"]
    shown = place.raw if place.present else f"unset (EKS takes {_DEFAULT_AMI})"
    for name in names:
        wanted = _drivers(name)
        if wanted and not image.endswith(wanted):
            report.refuse(
                group, place, allowed=f"an image that ends in {' or '.join(wanted)}, because {name} has accelerators", found=shown
            )
        if name and (name.partition(".")[0] in arm) != ("ARM_64" in image):
            report.refuse(group, place, allowed=f"an image for the processor of {name}", found=shown)
    if image.startswith("AL2_"):
        _old_linux(program, group, place, report)


def _own_image(group: Resource, template: Resource | None) -> bool:
    """Whether the image is the template's own, or may be: of one that isn't in the program."""
    if template is not None and template.at("imageId").raw not in (None, ""):
        return True
    given = group.at("amiType")
    return given.text() == "CUSTOM" or (template is None and group.at("launchTemplate").present and not given.present)


def _drivers(name: str) -> tuple[str, ...]:
    instance = instance_types().get(name)
    if instance is None:
        return ()
    return _FOR_NEURON if instance.accelerator.lower().startswith(_NEURON) else _FOR_GPU


def _old_linux(program: Program, group: Resource, place: Node, report: Report) -> None:
    last = load("eks")["al2Until"]
    own = group.at("version")
    releases = [own.text()] if own.present else [cluster.at("version").text() for cluster in program.of(CLUSTER)]
    for release in releases:
        given, until = version(release), version(last)
        if given and until and given > until:
            report.refuse(group, place, allowed=f"AL2023 or Bottlerocket: Amazon Linux 2 ends with {last}, and this is {release}")


def _group(image: str) -> tuple[Example, ...]:
    return (Example(NODE_GROUP, {"instanceTypes": ["p5.48xlarge"], "amiType": image, "subnetIds": ["subnet-1"]}, name="gpu"),)


RULES = (
    StackRule(
        id="EKS08",
        name="node-group-require-fitting-image",
        title="A node group has a type, sizes in order, an image with its drivers, and nothing that its template says already",
        types=frozenset({NODE_GROUP, LAUNCH_TEMPLATE, CLUSTER}),
        check=_node_groups,
        why="EKS refuses the group, or it ends in CREATE_FAILED, or nodes without drivers join and offer no devices.",
        fix="choose an amiType that ends in _NVIDIA, or _NEURON, for accelerators, say each thing in one place, and leave the rest to EKS.",
        source="botocore 1.44.8 eks model, CreateNodegroup, LaunchTemplateSpecification and AMITypes; Karpenter 1.14.0 "
        "pkg/providers/amifamily: variants of images; terraform-aws-modules/terraform-aws-eks#3346, #3521; pulumi/pulumi-aws#2284",
        valid=_group("AL2023_x86_64_NVIDIA"),
        invalid=_group("AL2023_x86_64_STANDARD"),
    ),
)
