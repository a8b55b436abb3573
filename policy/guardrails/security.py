"""Security of the platform: node credentials, disks, IAM documents, buckets, and ports that run anybody's code."""

import re
from collections.abc import Sequence
from typing import Any

from guardrails import iam, internet
from guardrails.chart import CHART_TYPES
from guardrails.disk import disks
from guardrails.facts import load
from guardrails.firewall import GROUP_TYPES, Opening, written
from guardrails.fsx_link import CHECKPOINT
from guardrails.links import decided, demand
from guardrails.lustre import flag
from guardrails.node import Node, Undecided
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.slurm_chart import members, slurm_charts
from guardrails.tokens import (
    BUCKET,
    BUCKET_LIFECYCLE,
    BUCKET_POLICY,
    BUCKET_VERSIONING,
    DEFAULT_SECURITY_GROUP,
    INGRESS,
    LAUNCH_TEMPLATE,
    LOGIN_SET,
    NODE_CLASS,
    NODE_GROUP,
    PUBLIC_ACCESS_BLOCK,
    SERVICE,
    VOLUME,
)

_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_STATUSES = ("Enabled", "Suspended", "Disabled")
_APPS = re.compile(r"(?<![a-z])(ray|hub|jupyter|jupyterhub|proxy-public|slurm|login|argo|argocd)(?![a-z])", re.IGNORECASE)
_SCHEME = "service.beta.kubernetes.io/aws-load-balancer-scheme"
_INTERNAL = "service.beta.kubernetes.io/aws-load-balancer-internal"
_TYPE = "service.beta.kubernetes.io/aws-load-balancer-type"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_CLASSES = frozenset({"service.k8s.aws/nlb", "eks.amazonaws.com/nlb"})
_TYPES = frozenset({"external", "nlb-ip"})
"""What hands a service to the AWS Load Balancer Controller, which EKS Auto Mode has built in."""
_SLURM_LOGIN = "the SSH of Slurm's login"
_INGRESS_SCHEME = "alb.ingress.kubernetes.io/scheme"


def _metadata(resource: Resource, report: Report) -> None:
    own = resource.type == NODE_CLASS
    options = resource.at("spec", "metadataOptions") if own else resource.at("metadataOptions")
    tokens, hops = options.at("httpTokens"), options.at("httpPutResponseHopLimit")
    with report.part():
        # Karpenter fills in required and 1 where a class says nothing; EC2 takes what the account or the image says.
        if tokens.text() != "required" and (tokens.present or not own):
            found = tokens.raw if tokens.present else "unset (what account and image say)"
            report.refuse(resource, tokens, allowed="required", found=found)
    with report.part():
        number = hops.integer()
        if hops.present and number != 1:
            report.refuse(resource, hops, allowed="1: with more, a pod reaches the node's role")


def _buckets(program: Program, report: Report) -> None:
    _moves(program, report)
    for versioning in program.of(BUCKET_VERSIONING):
        with report.part():
            status = versioning.at("versioningConfiguration", "status")
            if status.present and status.text() not in _STATUSES:
                report.refuse(versioning, status, allowed=", ".join(_STATUSES))
    for bucket in program.of(BUCKET):
        with report.part():
            if flag(bucket.at("forceDestroy")) is True:
                report.refuse(bucket, bucket.at("forceDestroy"), allowed="false: a destroy else deletes every object in it")
        for check in (_public, _plain, _versions, _uploads):
            with report.part():
                if program.whole:
                    check(program, bucket, report)


def _of(program: Program, bucket: Resource, kind: str) -> list[Resource]:
    """The resources of a kind that belong to the bucket.

    Raises:
        Undecided: none does yet, and the name of one may come to be the bucket's.
    """
    found = [each for each in program.of(kind) if _belongs(each, bucket)]
    buckets = {each.urn for each in program.of(BUCKET)}
    for each in program.of(kind) if not found else ():
        if buckets.isdisjoint(each.sources.get("bucket", ())):
            for place in (each.at("bucket"), bucket.at("bucket"), bucket.at("id")):
                demand(place)
    return found


def _belongs(each: Resource, bucket: Resource) -> bool:
    place, origins = each.at("bucket"), each.sources.get("bucket", ())
    if bucket.urn in origins:
        return True
    if origins and not place.known:
        return False  # Another bucket's, whatever its name will be.
    return place.present and place.value in (bucket.at("bucket").raw, bucket.at("id").raw)


def _public(program: Program, bucket: Resource, report: Report) -> None:
    blocks = _of(program, bucket, PUBLIC_ACCESS_BLOCK)
    if not blocks:
        place = Node(None, "publicAccessBlock")
        report.refuse(bucket, place, allowed="a BucketPublicAccessBlock with all four settings true", found="without one")
    for block in blocks:
        for key in _BLOCKS:
            if flag(block.at(key)) is not True:
                report.refuse(block, block.at(key), allowed="true")


def _plain(program: Program, bucket: Resource, report: Report) -> None:
    if decided([_attempt(policy) for policy in _policies(program, bucket)]):
        return
    place = Node(None, "policy")
    report.refuse(bucket, place, allowed="a policy that denies what comes without TLS (aws:SecureTransport)", found="without one")


def _attempt(policy: Resource) -> bool | Undecided:
    try:
        return any(_denies_plain(statement) for statement in iam.statements(policy.at("policy")))
    except Undecided as error:
        return error


def _denies_plain(statement: Node) -> bool:
    """Whether the statement denies everybody everything that comes without TLS; what services of AWS do by themselves aside."""
    if statement.at("Effect").text() != "Deny" or not iam.of_everybody(statement):
        return False
    held = {key: (operator, values) for operator, key, values in iam.conditions(statement)}
    operator, values = held.get("aws:securetransport", ("", []))
    return (
        operator in ("bool", "boolifexists")
        and [value.lower() for value in values] == ["false"]
        and held.keys() <= {"aws:securetransport", "aws:principalisawsservice", "aws:viaawsservice"}
        and any(iam.covers(action) and iam.matches(action, "s3:GetObject") for action in iam.texts(statement.at("Action")))
        and _all_objects(iam.texts(statement.at("Resource")))
    )


def _all_objects(resources: Sequence[str]) -> bool:
    """Whether ARNs are of all objects of a bucket: `arn:aws:s3:::store/*`, also where the bucket's own says how far its name goes."""
    starts = [resource.rstrip("*").removesuffix("/") for resource in resources if resource.endswith("*")]
    return any("/" not in start or start in resources for start in starts)


def _policies(program: Program, bucket: Resource) -> list[Resource]:
    """What holds a policy of the bucket: resources beside it, or the bucket itself, of the older kind."""
    return [*_of(program, bucket, BUCKET_POLICY), bucket]


def _versions(program: Program, bucket: Resource, report: Report) -> None:
    names = [bucket.name, *(tag.text() for _, tag in bucket.at("tags").entries())]
    if not any(CHECKPOINT.search(name) for name in names):
        return
    kept = [each.at("versioningConfiguration", "status").text() == "Enabled" for each in _of(program, bucket, BUCKET_VERSIONING)]
    # The second kind of bucket has a list of it.
    kept += [flag(each.at("enabled")) is True for each in (bucket.at("versioning"), *bucket.at("versionings").elements())]
    if not any(kept):
        place = Node(None, "versioning")
        report.refuse(bucket, place, allowed="Enabled: the bucket holds checkpoints", found="off")


def _uploads(program: Program, bucket: Resource, report: Report) -> None:
    rules = [rule for each in _of(program, bucket, BUCKET_LIFECYCLE) for rule in each.at("rules").elements()]
    rules += list(bucket.at("lifecycleRules").elements())
    keys = ("abortIncompleteMultipartUpload", "abortIncompleteMultipartUploadDays")
    if not any(rule.at(key).present for rule in rules for key in keys):
        place = Node(None, "lifecycle")
        report.advise(bucket, place, allowed="a rule that ends incomplete multipart uploads, which cost", found="without one")


def _moves(program: Program, report: Report) -> None:
    """What S3 refuses of the ages at which objects move and expire."""
    for lifecycle in program.of(BUCKET_LIFECYCLE):
        for rule in lifecycle.at("rules").elements():
            with report.part():
                _ages(lifecycle, rule, report)


def _ages(lifecycle: Resource, rule: Node, report: Report) -> None:
    facts, ends = load("security")["leastDays"], rule.at("expiration", "days").integer()
    for move in rule.at("transitions").elements():
        days, kind = move.at("days"), move.at("storageClass").text()
        age = days.integer()
        if age is not None and age < facts.get(kind, 0):
            report.refuse(lifecycle, days, allowed=f"at least {facts[kind]} to {kind}")
        if age is not None and ends and ends <= age:
            report.refuse(lifecycle, rule.at("expiration", "days"), allowed=f"more than {age}, the days to {kind}")


def _exposed(program: Program, report: Report) -> None:
    partial, unplaced = dict[str, list[Opening]](), list[Opening]()
    for opening in written(program, "ingress"):
        with report.part():
            if isinstance(opening, Undecided):
                raise opening
            if not _opening(opening, report):
                (partial.setdefault(opening.group, []) if isinstance(opening.group, str) else unplaced).append(opening)
    for openings in (*partial.values(), []):
        with report.part():
            _together(openings, unplaced, report)
    checks = {
        SERVICE: _balancer,
        LOGIN_SET: _login,
        INGRESS: _ingress,
        NODE_GROUP: _remote_access,
        **dict.fromkeys(CHART_TYPES, _charted_logins),
    }
    for kind, check in checks.items():
        for resource in program.of(kind):
            with report.part():
                check(resource, report)


def _opening(opening: Opening, report: Report) -> bool:
    """Whether the opening alone is to the whole internet."""
    found = internet.all_of_it(opening.cidrs)
    if found:
        ports = load("security")["guardedPorts"]
        _tell(opening.resource, found[0], [port for port in ports if opening.touches(int(port))], report)
    return bool(found)


def _together(openings: Sequence[Opening], unplaced: Sequence[Opening], report: Report) -> None:
    """Several rules of one group may each let in a part of the internet, and all of it together."""
    found = _in_parts(openings)
    for writer, whole, ports in found:
        _tell(writer, whole, ports, report)
    if unplaced and not found and _in_parts([*openings, *unplaced]):
        for opening in unplaced:
            demand(opening.resource.at("securityGroupId"))


def _in_parts(openings: Sequence[Opening]) -> list[tuple[Resource, list[Node], list[str]]]:
    """Ranges that are the whole internet together, the ports that all of them may reach, and what writes the first. Raises `Undecided`."""
    found: dict[int, tuple[Resource, list[Node], list[str]]] = {}
    if not internet.all_of_it(cidr for opening in openings for cidr in opening.cidrs):
        return []
    for port in load("security")["guardedPorts"]:
        touching = [opening for opening in openings if opening.touches(int(port))]
        for whole in internet.all_of_it(cidr for opening in touching for cidr in opening.cidrs)[:1]:
            writer = next(opening.resource for opening in touching if any(cidr is whole[0] for cidr in opening.cidrs))
            found.setdefault(id(whole[0]), (writer, whole, []))[2].append(port)
    return [*found.values()]


def _tell(writer: Resource, whole: Sequence[Node], ports: Sequence[str], report: Report) -> None:
    touched = [f"{port} ({load('security')['guardedPorts'][port]})" for port in ports]
    if touched:
        shown = ", ".join(touched[:3]) + (f" and {len(touched) - 3} more" if len(touched) > 3 else "")
        report.refuse(writer, whole[0], allowed="named ranges or groups", found=f"{internet.words(whole)} to {shown}")


def _remote_access(group: Resource, report: Report) -> None:
    access = group.at("remoteAccess")
    key = access.at("ec2SshKey")
    if key.text() and access.at("sourceSecurityGroupIds").value in (None, []):
        found = "unset (EKS opens SSH, or RDP, to 0.0.0.0/0)"
        report.refuse(group, access.at("sourceSecurityGroupIds"), allowed="the groups that may, beside an ec2SshKey", found=found)


def _balancer(service: Resource, report: Report) -> None:
    _reachable(service, service.properties, "", report)


def _login(login: Resource, report: Report) -> None:
    """Slinky's operator makes a Service of a LoginSet, for the port of its sshd."""
    _reachable(login, login.at("spec", "service"), _SLURM_LOGIN, report)


def _charted_logins(resource: Resource, report: Report) -> None:
    for chart in slurm_charts(resource):
        for member in members(chart, "loginsets"):
            with report.part():
                _reachable(resource, member.merged("service"), _SLURM_LOGIN, report)


def _reachable(resource: Resource, service: Node, serves: str, report: Report) -> None:
    """Judge a Service, or what an operator makes one of; `serves` is what it is known to serve."""
    kind = service.at("spec", "type").text()
    if kind not in ("LoadBalancer", "NodePort") or _is_internal(service) or (kind == "LoadBalancer" and _is_for_ranges(service)):
        return
    guarded = load("security")["guardedPorts"]
    ports = [port.at(key) for port in service.at("spec", "ports").elements() for key in ("port", "targetPort")]
    what = serves or next((guarded[port.text()] for port in ports if port.text() in guarded), None)
    named = _APPS.search(f"{resource.name} {service.at('metadata', 'name').text()}")
    reason = what or (named[0] if named else None)
    if reason:
        place = service.at("spec", "type")
        report.refuse(
            resource, place, allowed=f"ClusterIP, or {_SCHEME}: internal, or loadBalancerSourceRanges, because it serves {reason}"
        )


def _is_internal(service: Node) -> bool:
    """Whether no load balancer of the service faces the internet."""
    notes = service.at("metadata", "annotations")
    scheme, internal = notes.at(_SCHEME), notes.at(_INTERNAL)
    if scheme.text() == "internal" or internal.text() == "true":
        return True
    # The AWS Load Balancer Controller makes internal ones where nothing is said.
    said = scheme.present or internal.present or service.at("spec", "type").text() != "LoadBalancer"
    return not said and (service.at("spec", "loadBalancerClass").text() in _CLASSES or notes.at(_TYPE).text() in _TYPES)


def _is_for_ranges(service: Node) -> bool:
    """Whether the load balancer answers named ranges alone."""
    ranges = list(service.at("spec", "loadBalancerSourceRanges").elements())
    note = service.at("metadata", "annotations", _RANGES).text()
    ranges = ranges or [Node(each) for each in note.split(",") if each.strip()]
    return bool(ranges) and not internet.all_of_it(ranges)


def _ingress(ingress: Resource, report: Report) -> None:
    scheme = ingress.at("metadata", "annotations", _INGRESS_SCHEME)
    if scheme.text() != "internet-facing":
        return
    backends = [ingress.at("spec", "defaultBackend", "service", "name").text(), ingress.name]
    for rule in ingress.at("spec", "rules").elements():
        backends += [path.at("backend", "service", "name").text() for path in rule.at("http", "paths").elements()]
    found = next((matched[0] for name in backends if (matched := _APPS.search(name))), None)
    if found:
        report.refuse(ingress, scheme, allowed=f"internal, because it serves {found}")


def _service(kind: str) -> tuple[Example, ...]:
    return (Example(SERVICE, {"metadata": {"name": "head"}, "spec": {"type": kind, "ports": [{"port": 8265}]}}, name="head"),)


def _store(**bucket: Any) -> tuple[Example, ...]:
    plain = '"Condition": {"Bool": {"aws:SecureTransport": "false"}}'
    deny = f'{{"Statement": [{{"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::store/*", {plain}}}]}}'
    to_store = {"bucket": ["store"]}
    return (
        Example(BUCKET, bucket, name="store"),
        Example(PUBLIC_ACCESS_BLOCK, {"bucket": "store", **dict.fromkeys(_BLOCKS, True)}, name="closed", sources=to_store),
        Example(BUCKET_POLICY, {"bucket": "store", "policy": deny}, name="tls", sources=to_store),
        Example(
            BUCKET_LIFECYCLE,
            {"bucket": "store", "rules": [{"abortIncompleteMultipartUpload": {"daysAfterInitiation": 7}}]},
            name="uploads",
            sources=to_store,
        ),
    )


RULES = (
    Rule(
        id="SEC01",
        name="metadata-require-tokens-and-one-hop",
        title="Instance metadata asks for tokens and is one hop away",
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS}),
        check=_metadata,
        why="any pod can take the node's role, and with it pull, attach and read what the node may.",
        fix="set httpTokens to required and httpPutResponseHopLimit to 1; give pods roles of their own.",
        source="botocore 1.44.8 ec2 model; EKS best practices: restrict access to the instance profile",
        valid=(Example(LAUNCH_TEMPLATE, {"metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1}}, name="nodes"),),
        invalid=(Example(LAUNCH_TEMPLATE, {"metadataOptions": {"httpTokens": "optional", "httpPutResponseHopLimit": 2}}, name="nodes"),),
    ),
    Rule(
        id="SEC02",
        name="disk-require-encryption",
        title="Disks are encrypted, and within the limits of their type",
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS, VOLUME}),
        check=disks,
        why="data and caches lie in the clear on shared disks; outside its limits EC2 refuses the launch.",
        fix="set encrypted to true; gp3 takes 3000 to 80000 IOPS (500 for each GiB), 125 to 2000 MiB/s (1 for 4 IOPS), 65536 GiB; "
        "leave throughput out on other types, and iops where it is none of io1 and io2.",
        source="botocore 1.44.8 ec2 model, CreateVolume; EBS user guide: General Purpose and Provisioned IOPS SSD volumes; "
        "Checkov CKV_AWS_3; terraform-aws-modules/terraform-aws-eks#2403",
        valid=(Example(VOLUME, {"type": "gp3", "encrypted": True, "iops": 10000, "size": 500}, name="data"),),
        invalid=(Example(VOLUME, {"type": "gp3", "encrypted": False, "size": 500}, name="data"),),
    ),
    *iam.RULES,
    StackRule(
        id="SEC04",
        name="bucket-require-closed-and-kept",
        title="A bucket is closed, answers over TLS only, keeps checkpoints, and outlives a destroy; its objects age as S3 lets them",
        types=frozenset({BUCKET, PUBLIC_ACCESS_BLOCK, BUCKET_POLICY, BUCKET_VERSIONING, BUCKET_LIFECYCLE}),
        check=_buckets,
        why="data is read by strangers, or one destroy or one overwrite takes every checkpoint; S3 refuses ages in the wrong order.",
        fix="add a public access block, a policy on aws:SecureTransport and versioning; leave forceDestroy off; let objects expire after "
        "they move.",
        source="Checkov CKV_AWS_53 to 56 and CKV_AWS_21; AWSGuard s3; S3 guide: lifecycle; hashicorp/terraform-provider-aws#6201",
        valid=_store(),
        invalid=_store(forceDestroy=True),
    ),
    StackRule(
        id="SEC05",
        name="port-disallow-public-control",
        title="Ports that run code or move files are not open to the internet",
        types=GROUP_TYPES | CHART_TYPES | {DEFAULT_SECURITY_GROUP, NODE_GROUP, SERVICE, LOGIN_SET, INGRESS},
        check=_exposed,
        why="whoever finds the Ray dashboard, a notebook or a Slurm login runs code on the accelerators, with the pods' credentials.",
        fix="use ClusterIP and port forwarding, an internal load balancer, or named ranges.",
        source="CIS EKS 5.4; Ray documentation: security; field guide: access; AWS Load Balancer Controller 2.10: service annotations; "
        "pulumi-aws 7.51 NodeGroup.remoteAccess; slurm-operator 1.2.1: LoginSet types, values of chart slurm",
        valid=_service("ClusterIP"),
        invalid=_service("LoadBalancer"),
    ),
)
