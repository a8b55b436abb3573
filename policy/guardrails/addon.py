"""EKS add-ons: pinned, with credentials of their own."""

import re

from guardrails.auto_mode import has_other_nodes, is_auto
from guardrails.chart import version
from guardrails.document import DocumentError, read_yaml
from guardrails.efa import interfaces
from guardrails.facts import load
from guardrails.links import decided
from guardrails.node import Node, Undecided
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.tokens import (
    ADDON,
    CLUSTER,
    LAUNCH_TEMPLATE,
    NODE_CLASS,
    NODE_GROUP,
    NODE_POOL,
    POD_IDENTITY,
    SCALING_GROUP,
)

_RELEASE = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+")
_AGENT = "eks-pod-identity-agent"
_NAMESPACE = "kube-system"
"""Where EKS puts its drivers."""


def _addons(program: Program, report: Report) -> None:
    for addon in program.of(ADDON):
        with report.part():
            _addon(addon, report)
        with report.part():
            _interface_release(program, addon, report)
        with report.part():
            _driver_role(program, addon, report)
    with report.part():
        _agent(program, report)


def _addon(addon: Resource, report: Report) -> None:
    with report.part():
        release = addon.at("addonVersion")
        if not release.text().strip():
            report.refuse(addon, release, allowed="a pinned version", found="unset (whatever is the default that day)")
        elif addon.at("addonName").text() in load("eks")["addonReleases"] and not _RELEASE.fullmatch(release.text()):
            report.refuse(addon, release, allowed="a release as EKS names it, such as v1.22.4-eksbuild.3")
    with report.part():
        _settings(addon, report)
    update = addon.at("resolveConflictsOnUpdate")
    if update.text() == "OVERWRITE":
        report.refuse(addon, update, allowed="PRESERVE or NONE: OVERWRITE undoes changes made in the cluster")


def _settings(addon: Resource, report: Report) -> None:
    place = addon.at("configurationValues")
    if not place.text().strip():
        return
    try:
        values = read_yaml(place.text())
    except DocumentError:
        values = []
    if len(values) != 1 or not isinstance(values[0], dict):
        report.refuse(addon, place, allowed="a mapping in JSON or YAML", found="another text")
    elif addon.at("addonName").text() == "vpc-cni":
        for name, value in Node(values[0]).at("env").entries():
            if not isinstance(value.raw, str):
                report.refuse(
                    addon, place, allowed=f'text for each variable, {name}: "{value.text()}"', found=f"env with {name}: {value.text()}"
                )


def _interface_release(program: Program, addon: Resource, report: Report) -> None:
    if addon.at("addonName").text() != "vpc-cni":
        return
    release, least = addon.at("addonVersion"), load("eks")["cniForEfaOnly"]
    given, needed = version(release.text()), version(least)
    for user in program.of(NODE_CLASS, LAUNCH_TEMPLATE):
        efa_only = any(each.at("interfaceType").text() == "efa-only" for each in interfaces(user).elements())
        if given and needed and given < needed and efa_only:
            report.refuse(addon, release, allowed=f"v{least} or later, because {user.name} has efa-only interfaces")


def _driver_role(program: Program, addon: Resource, report: Report) -> None:
    account = load("eks")["driverAccounts"].get(addon.at("addonName").text())
    if account is None or addon.at("serviceAccountRoleArn").present or list(addon.at("podIdentityAssociations").elements()):
        return
    namespace = addon.at("namespaceConfig", "namespace").text() or _NAMESPACE
    if not decided([_is_of(each, namespace, account) for each in program.of(POD_IDENTITY)]):
        place, owner = addon.at("podIdentityAssociations"), f"{account} in {namespace}"
        report.refuse(addon, place, allowed=f"a role of its own (a Pod Identity association of {owner}): the node's role is not for pods")


def _is_of(identity: Resource, namespace: str, account: str) -> bool | Undecided:
    try:
        return identity.at("serviceAccount").text() == account and identity.at("namespace").text() == namespace
    except Undecided as error:
        return error


def _agent(program: Program, report: Report) -> None:
    users = [*program.of(POD_IDENTITY), *(each for each in program.of(ADDON) if list(each.at("podIdentityAssociations").elements()))]
    if not users or not program.has({CLUSTER}) or not program.whole:
        return
    if not any(addon.at("addonName").text() == _AGENT for addon in program.of(ADDON)):
        place = users[0].at("serviceAccount") if users[0].type == POD_IDENTITY else users[0].at("podIdentityAssociations")
        allowed = f"only beside add-on {_AGENT}, which hands the credentials out"
        if not is_auto(program):
            report.refuse(users[0], place, allowed=allowed, found="without the agent")
        elif has_other_nodes(program):
            # Nodes of EKS Auto Mode have it built in; which nodes the pods will be on, nobody says.
            report.advise(users[0], place, allowed=f"{allowed} on nodes that EKS Auto Mode does not make", found="without the agent")


RULES = (
    StackRule(
        id="EKS06",
        name="addon-require-pinned-and-credentialed",
        title="Add-ons are pinned, keep what was changed, and have credentials of their own",
        types=frozenset({ADDON, POD_IDENTITY, CLUSTER, NODE_CLASS, NODE_GROUP, NODE_POOL, SCALING_GROUP, LAUNCH_TEMPLATE}),
        check=_addons,
        why="EKS refuses a release or settings out of form; an add-on changes on a day nobody chose; without agent or role its pods get no "
        "credentials, and volumes never attach.",
        fix="set addonVersion, PRESERVE, a Pod Identity association for each driver, and the eks-pod-identity-agent add-on.",
        source="botocore 1.44.8 eks model, CreateAddon; EKS guide: EFA (VPC CNI 1.18.5), Auto Mode, Mountpoint for S3 driver; "
        "aws/amazon-vpc-cni-k8s#2272 (schema of its settings)",
        valid=(Example(ADDON, {"addonName": "vpc-cni", "addonVersion": "v1.22.4-eksbuild.3"}, name="cni"),),
        invalid=(Example(ADDON, {"addonName": "vpc-cni"}, name="cni"),),
    ),
)
