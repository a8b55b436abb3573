"""EKS: who gets in, from where, on which version, and node groups that get drivers."""

import datetime
import ipaddress
import re
from typing import Any

from guardrails import addon, clock, internet, node_group, role_trust
from guardrails.chart import version
from guardrails.facts import load
from guardrails.links import decided, demand, targets
from guardrails.lustre import flag
from guardrails.node import Node, Undecided
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.tokens import (
    ACCESS_ENTRY,
    ACCESS_POLICY,
    CLUSTER,
    IAM_ROLE,
    NODE_CLASS,
    NODE_GROUP,
    SUBNET,
    VPC,
)

_CLUSTER = frozenset({CLUSTER})
_NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}")
_RELEASE = re.compile(r"[1-9]\.(0|[1-9][0-9]{0,2})")
_PRIVATE = tuple(ipaddress.IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_PRODUCTION = re.compile(r"(?<![a-z])prod(uction)?(?![a-z])", re.IGNORECASE)
_NODE_ENTRIES = frozenset({"EC2_LINUX", "EC2_WINDOWS", "HYBRID_LINUX", "HYPERPOD_LINUX"})
_NO_PRINCIPAL = re.compile(r"(?!arn:).*|arn:[a-z-]+:(sts:.*|iam::[0-9]*:(?!role/|user/).*)", re.DOTALL)
_ACCESS_POLICY = re.compile(r"arn:[a-z-]+:eks::aws:cluster-access-policy/[A-Za-z0-9]+")
_SCOPES = ("cluster", "namespace")
_JOINING = frozenset({"EC2_LINUX", "EC2_WINDOWS", "EC2"})


def _access(resource: Resource, report: Report) -> None:
    config = resource.at("accessConfig")
    with report.part():
        mode = config.at("authenticationMode")
        if mode.text() not in ("API", "API_AND_CONFIG_MAP"):
            found = mode.raw if mode.present else "unset (EKS takes CONFIG_MAP)"
            report.refuse(resource, mode, allowed="API", found=found)
    with report.part():
        creator = config.at("bootstrapClusterCreatorAdminPermissions")
        if flag(creator) is not False:
            found = creator.raw if creator.present else "unset (EKS takes true)"
            report.refuse(resource, creator, allowed="false, and access entries for those who administer", found=found)


def _entries(program: Program, report: Report) -> None:
    known = load("eks")["entryTypes"]
    for entry in program.of(ACCESS_ENTRY):
        with report.part():
            _principal(entry, report)
        with report.part():
            kind = entry.at("type")
            if kind.present and kind.text() not in known:
                report.refuse(entry, kind, allowed=", ".join(known))
            if kind.text() in _NODE_ENTRIES:
                _node_entry(program, entry, report)
                continue
            for group in entry.at("kubernetesGroups").elements():
                if group.text().startswith("system:"):
                    report.refuse(entry, group, allowed="no group of Kubernetes itself (system:); an access policy gives such rights")
    _access_policies(program, report)
    with report.part():
        _nodes_join(program, report)


def _access_policies(program: Program, report: Report) -> None:
    for policy in program.of(ACCESS_POLICY):
        with report.part():
            arn = policy.at("policyArn")
            if arn.present and not _ACCESS_POLICY.fullmatch(arn.text()):
                allowed = "an access policy of EKS, such as arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
                report.refuse(policy, arn, allowed=allowed)
        with report.part():
            scope = policy.at("accessScope")
            if scope.at("type").text() not in _SCOPES:
                report.refuse(policy, scope.at("type"), allowed=" or ".join(_SCOPES))
            if scope.at("type").text() == "namespace" and not list(scope.at("namespaces").elements()):
                report.refuse(policy, scope.at("namespaces"), allowed="at least one namespace, because the scope is namespace")


def _principal(entry: Resource, report: Report) -> None:
    principal = entry.at("principalArn")
    if not principal.known and entry.sources.get("principalArn"):
        return  # What is made beside it is a role or a user.
    if principal.present and _NO_PRINCIPAL.fullmatch(principal.text()):
        report.refuse(entry, principal, allowed="the ARN of an IAM role or user; a session or an account is none")


def _node_entry(program: Program, entry: Resource, report: Report) -> None:
    groups, kind = entry.at("kubernetesGroups"), entry.at("type").text()
    with report.part():
        if list(groups.elements()):
            report.refuse(entry, groups, allowed=f"unset, because type is {kind}")
    for policy in program.of(ACCESS_POLICY):
        with report.part():
            if _is_for(program, policy, entry):
                report.refuse(policy, policy.at("policyArn"), allowed=f"no policy for {entry.name}, which is of type {kind}")


def _is_for(program: Program, policy: Resource, entry: Resource) -> bool:
    """Whether a policy is for the principal of an entry, in the same cluster."""
    checks = [_differ(program, policy, entry, "clusterName", CLUSTER)]
    named = program.source(policy, "principalArn", ACCESS_ENTRY)
    if named is not entry:
        taken = policy if named is None or policy.at("principalArn").known else named
        checks.append(_differ(program, taken, entry, "principalArn", IAM_ROLE))
    return not decided(checks)


def _differ(program: Program, one: Resource, other: Resource, key: str, kind: str) -> bool | Undecided:
    """Whether two resources have different values of `key`: by the values, or by the resources of `kind` that these come from."""
    first, second = one.at(key), other.at(key)
    if first.known and second.known:
        return first.value != second.value
    makers, others = ([made for made in program.of(kind) if made.urn in each.sources.get(key, ())] for each in (one, other))
    if first.known or second.known:
        text, makers = (first.text(), others) if first.known else (second.text(), makers)
        # What is made here has a name of its own, or one that nobody knows before.
        proven = bool(makers) and not any(_may_be_called(made, text) for made in makers)
    else:
        if any(made is each for made in makers for each in others):
            return False
        proven = bool(makers and others)
    return proven or Undecided((second if first.known else first).place)


def _may_be_called(made: Resource, text: str) -> bool:
    name = made.at("name")
    return not name.known or (name.present and name.text() == text.rpartition("/")[2])


def _nodes_join(program: Program, report: Report) -> None:
    clusters = [each for each in program.of(CLUSTER) if each.at("accessConfig", "authenticationMode").text() == "API"]
    if not clusters or any(entry.at("type").text() in _JOINING for entry in program.of(ACCESS_ENTRY)):
        return
    for node_class in program.of(NODE_CLASS):
        with report.part():
            if _joins_as_group(program, node_class):
                continue
            place = node_class.at("spec", "role") if node_class.at("spec", "role").present else node_class.at("spec", "instanceProfile")
            allowed = f"a role with an access entry of type EC2_LINUX: {clusters[0].name} lets nobody in by aws-auth"
            report.refuse(node_class, place, allowed=allowed, found="a role without an entry")


def _joins_as_group(program: Program, node_class: Resource) -> bool:
    """Whether nodes of the class have, or may have, the role of a managed node group, for which EKS makes the entry itself."""
    groups = list(program.of(NODE_GROUP))
    if not groups or not node_class.at("spec", "role").present:
        return bool(groups)  # The role of an instance profile is not seen here.
    return decided([_same_role(program, node_class, group) for group in groups])


def _same_role(program: Program, node_class: Resource, group: Resource) -> bool | Undecided:
    roles = {role.urn for role in program.of(IAM_ROLE)}
    if roles & {*node_class.sources.get("spec", ())} & {*group.sources.get("nodeRoleArn", ())}:
        return True
    try:
        return group.at("nodeRoleArn").text().rpartition("/")[2] == node_class.at("spec", "role").text().rpartition("/")[2]
    except Undecided as error:
        return error


def _endpoint(resource: Resource, report: Report) -> None:
    config = resource.at("vpcConfig")
    private, public, ranges = (config.at(key) for key in ("endpointPrivateAccess", "endpointPublicAccess", "publicAccessCidrs"))
    with report.part():
        if flag(private) is not True:
            found = private.raw if private.present else "unset (EKS takes false)"
            report.refuse(resource, private, allowed="true, so that nodes reach the API inside the VPC", found=found)
    with report.part():
        if flag(public) is False:
            return
        if ranges.value in (None, []):
            found = "unset (EKS takes 0.0.0.0/0)"
            report.refuse(resource, ranges, allowed="the ranges of those who administer, or endpointPublicAccess false", found=found)
        for whole in internet.all_of_it(ranges.elements()):
            allowed = "the ranges of those who administer, or endpointPublicAccess false"
            report.refuse(resource, whole[0], allowed=allowed, found=internet.words(whole))


def _release(resource: Resource, report: Report) -> None:
    with report.part():
        place, until = resource.at("version"), load("eks")["standardUntil"]
        if not place.present:
            report.refuse(
                resource, place, allowed="a version in standard support, such as 1.36", found="unset (whatever EKS takes that day)"
            )
        else:
            _supported(resource, place, until, report)
    with report.part():
        support = resource.at("upgradePolicy", "supportType")
        if support.text() not in ("STANDARD", "EXTENDED"):
            found = support.raw if support.present else "unset (EKS takes EXTENDED, at a surcharge)"
            report.refuse(resource, support, allowed="STANDARD, or EXTENDED on purpose", found=found)


def _supported(resource: Resource, place: Node, until: dict[str, str], report: Report) -> None:
    named = _RELEASE.fullmatch(place.text())
    given, oldest = version(place.text()) if named else None, min(version(name) or () for name in until)
    end = until.get(place.text())
    if given is None:
        report.refuse(resource, place, allowed="major and minor alone, such as 1.36")
    elif given < oldest or (end and clock.now().date() >= datetime.date.fromisoformat(end)):
        left = [name for name, day in until.items() if datetime.date.fromisoformat(day) > clock.now().date()]
        ended = f", whose standard support ended {end}" if end else ""
        allowed = f"{', '.join(left)} or later" if left else "a version in standard support"
        report.refuse(resource, place, allowed=allowed, found=f"{place.text()}{ended}")


def _logs(resource: Resource, report: Report) -> None:
    known = load("eks")["logTypes"]
    with report.part():
        place = resource.at("enabledClusterLogTypes")
        given = [each.text() for each in place.elements()]
        for each in place.elements():
            if each.text() not in known:
                report.refuse(resource, each, allowed=", ".join(known))
        if "audit" not in given:
            report.refuse(resource, place, allowed="audit among them")
        missing = [name for name in ("api", "authenticator") if name not in given]
        if missing and "audit" in given:
            report.advise(resource, place, allowed=f"{' and '.join(missing)} too")
    with report.part():
        config = resource.at("encryptionConfig")
        covered = [each.text() for each in config.at("resources").elements()]
        if config.present and covered != ["secrets"]:
            report.refuse(resource, config.at("resources"), allowed="[secrets]")
    with report.part():
        names = [resource.name, resource.at("name").text(), *(tag.text() for _, tag in resource.at("tags").entries())]
        if any(_PRODUCTION.search(name) for name in names) and flag(resource.at("deletionProtection")) is not True:
            report.advise(resource, resource.at("deletionProtection"), allowed="true for a cluster in production")


def _network(program: Program, report: Report) -> None:
    for cluster in program.of(CLUSTER):
        with report.part():
            name = cluster.at("name")
            if name.present and not _NAME.fullmatch(name.text()):
                report.refuse(cluster, name, allowed="up to 100 letters, digits, - and _, with a letter or digit first")
        with report.part():
            _subnets(program, cluster, report)
        with report.part():
            groups = cluster.at("vpcConfig", "securityGroupIds")
            most = load("eks")["securityGroupsMost"]
            if len(list(groups.elements())) > most:
                report.refuse(cluster, groups, allowed=f"at most {most}", found=f"{len(list(groups.elements()))} groups")
        for check in (_service_range, _open_zones, _names_of_hosts):
            with report.part():
                check(program, cluster, report)


def _open_zones(program: Program, cluster: Resource, report: Report) -> None:
    place, closed = cluster.at("vpcConfig", "subnetIds"), load("eks")["closedZones"]
    for subnet in targets(program, cluster, "vpcConfig", SUBNET, place=place):
        with report.part():
            zone = subnet.at("availabilityZoneId").text()
            if zone in closed:
                found = f"{subnet.name} in {zone} among them"
                report.refuse(cluster, place, allowed=f"subnets outside {', '.join(closed)}, where EKS has no control plane", found=found)


def _names_of_hosts(program: Program, cluster: Resource, report: Report) -> None:
    for vpc in _vpcs(program, cluster):
        with report.part():
            support, hosts = vpc.at("enableDnsSupport"), vpc.at("enableDnsHostnames")
            if flag(support) is False:
                report.refuse(vpc, support, allowed=f"true: nothing in the VPC resolves the endpoint of {cluster.name} otherwise")
            elif flag(hosts) is not True:
                found = hosts.raw if hosts.present else "unset (EC2 takes false)"
                allowed = f"true, as EKS asks of the VPC of {cluster.name}, and as private names of endpoints and EFS need"
                report.advise(vpc, hosts, allowed=allowed, found=found)


def _subnets(program: Program, cluster: Resource, report: Report) -> None:
    place = cluster.at("vpcConfig", "subnetIds")
    count = len(list(place.elements()))
    if count < 2:
        report.refuse(cluster, place, allowed="subnets in at least two zones", found=f"{count} subnets")
        return
    made = targets(program, cluster, "vpcConfig", SUBNET, place=place)
    zones = {subnet.at("availabilityZone").text() or subnet.at("availabilityZoneId").text() for subnet in made}
    if len(zones) > 1:
        return
    if len(made) < count:
        # One that is not seen here may be in another zone.
        for unseen in (place, *(subnet.at("id") for subnet in program.of(SUBNET))):
            demand(unseen)
    # A subnet that names no zone is in one that AWS chooses.
    elif zone := zones.pop():
        report.refuse(cluster, place, allowed="subnets in at least two zones", found=f"subnets in {zone} only")


def _service_range(program: Program, cluster: Resource, report: Report) -> None:
    place = cluster.at("kubernetesNetworkConfig", "serviceIpv4Cidr")
    if not place.present:
        return
    if cluster.at("kubernetesNetworkConfig", "ipFamily").text() == "ipv6":
        report.refuse(cluster, place, allowed="unset, because ipFamily is ipv6")
        return
    try:
        block = ipaddress.IPv4Network(place.text())
    except ValueError:
        report.refuse(cluster, place, allowed="a block such as 172.20.0.0/16")
        return
    if not 12 <= block.prefixlen <= 24 or not any(block.subnet_of(each) for each in _PRIVATE):
        report.refuse(cluster, place, allowed="a private block between /12 and /24, such as 172.20.0.0/16")
    own_vpcs = _vpcs(program, cluster)
    for vpc in own_vpcs or program.of(VPC):
        own = vpc.at("cidrBlock")
        try:
            overlaps = block.overlaps(ipaddress.IPv4Network(own.text(), strict=False))
        except ValueError:
            continue
        if overlaps:
            if not own_vpcs:
                demand(cluster.at("vpcConfig", "subnetIds"))
            # Where the cluster's subnets are is not seen here: it may be another VPC's range.
            tell = report.refuse if own_vpcs else report.advise
            tell(cluster, place, allowed=f"a block outside {own.text()}, the range of {vpc.name}")


def _vpcs(program: Program, cluster: Resource) -> list[Resource]:
    """The VPCs of the cluster's subnets, as far as they are of this program."""
    subnets = targets(program, cluster, "vpcConfig", SUBNET, place=cluster.at("vpcConfig", "subnetIds"))
    found = {vpc.urn: vpc for subnet in subnets for vpc in targets(program, subnet, "vpcId", VPC)}
    return list(found.values())


def _example(**changes: Any) -> tuple[Example, ...]:
    properties = {
        "name": "training",
        "version": "1.36",
        "upgradePolicy": {"supportType": "STANDARD"},
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False},
        "vpcConfig": {"endpointPrivateAccess": True, "endpointPublicAccess": False, "subnetIds": ["subnet-1", "subnet-2"]},
        "enabledClusterLogTypes": ["api", "audit", "authenticator"],
        **changes,
    }
    return (Example(CLUSTER, {key: value for key, value in properties.items() if value is not None}, name="cluster"),)


def _entry(**properties: Any) -> tuple[Example, ...]:
    return (Example(ACCESS_ENTRY, {"principalArn": "arn:aws:iam::123456789012:role/node", **properties}, name="node"),)


RULES = (
    Rule(
        id="EKS01",
        name="cluster-require-access-entries",
        title="Access entries alone open the cluster, and its creator gets no standing rights",
        types=_CLUSTER,
        check=_access,
        why="whoever ran the first up stays administrator unseen, and aws-auth locks everybody out by one typing error.",
        fix="set authenticationMode to API (moves go one way) and bootstrapClusterCreatorAdminPermissions to false.",
        source="botocore 1.44.8 eks model, CreateAccessConfigRequest",
        valid=_example(),
        invalid=_example(accessConfig=None),
    ),
    StackRule(
        id="EKS02",
        name="access-entry-require-node-role",
        title="Node roles have an access entry of their type, without groups and policies; no entry has groups of Kubernetes itself",
        types=frozenset({ACCESS_ENTRY, ACCESS_POLICY, CLUSTER, NODE_CLASS, NODE_GROUP, IAM_ROLE}),
        check=_entries,
        why="without one nodes never join; with groups or policies EKS refuses the entry; a namespace scope without any opens nothing.",
        fix="make an entry of type EC2_LINUX for the role of Karpenter's nodes, name the namespaces, and roles by their own ARNs.",
        source="botocore 1.44.8 eks model, CreateAccessEntry and AssociateAccessPolicy; CDK AccessEntryType; "
        "what EKS says of groups that begin with system:",
        valid=_entry(type="EC2_LINUX"),
        invalid=_entry(type="EC2_LINUX", kubernetesGroups=["admins"]),
    ),
    Rule(
        id="EKS03",
        name="cluster-require-private-endpoint",
        title="The API endpoint is private; a public one is for named ranges",
        types=_CLUSTER,
        check=_endpoint,
        why="the API server answers the whole internet, or nodes reach it over the internet, or nobody does.",
        fix="set endpointPrivateAccess to true, and endpointPublicAccess to false or publicAccessCidrs to your ranges.",
        source="botocore 1.44.8 eks model, VpcConfigRequest; CIS EKS 5.4",
        valid=_example(),
        invalid=_example(vpcConfig={"endpointPublicAccess": True, "subnetIds": ["subnet-1", "subnet-2"]}),
    ),
    Rule(
        id="EKS04",
        name="cluster-require-supported-version",
        title="The Kubernetes version is named, in standard support, and what follows is chosen",
        types=_CLUSTER,
        check=_release,
        why="EKS upgrades the control plane by itself, or charges for extended support, which is the default.",
        fix="set a version in standard support and upgradePolicy.supportType.",
        source="EKS user guide: Kubernetes version lifecycle; botocore 1.44.8 eks model, UpgradePolicyRequest",
        valid=_example(),
        invalid=_example(version="1.32"),
    ),
    Rule(
        id="EKS05",
        name="cluster-require-audit-log",
        title="The cluster writes its audit log, and encrypts what can be encrypted",
        types=_CLUSTER,
        check=_logs,
        why="after an incident nobody can say who did what; EKS refuses log types and resources that it does not know.",
        fix="set enabledClusterLogTypes to api, audit and authenticator at least.",
        source="botocore 1.44.8 eks model; CIS EKS 2.1",
        valid=_example(),
        invalid=_example(enabledClusterLogTypes=["kubelet"]),
    ),
    StackRule(
        id="EKS07",
        name="cluster-require-legal-network",
        title="The cluster has subnets in two zones that EKS serves, a VPC that resolves names, at most five groups, a legal name and "
        "service range",
        types=frozenset({CLUSTER, SUBNET, VPC}),
        check=_network,
        why="EKS refuses the cluster after network and roles are made, or services can't be reached from the VPC.",
        fix="name two private subnets in two zones that EKS serves, a service range outside the VPC, and let the VPC resolve names.",
        source="botocore 1.44.8 eks model, VpcConfigRequest and KubernetesNetworkConfigRequest; EKS guide: VPC and subnets; "
        "pulumi/pulumi-eks#1401",
        valid=_example(kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"}),
        invalid=_example(kubernetesNetworkConfig={"serviceIpv4Cidr": "8.8.0.0/16"}),
    ),
    *addon.RULES,
    *node_group.RULES,
    *role_trust.RULES,
)
