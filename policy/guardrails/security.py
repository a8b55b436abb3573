"""Security of the platform: node credentials, disks, IAM documents, buckets, and ports that run anybody's code."""

import re
from collections.abc import Iterator
from typing import Any

from guardrails.document import DocumentError, read_json
from guardrails.facts import load
from guardrails.firewall import ANYWHERE, GROUP_TYPES, Opening, openings
from guardrails.fsx_link import CHECKPOINT
from guardrails.lustre import flag
from guardrails.node import Node, Undecided
from guardrails.program import Program
from guardrails.quantity import gibibytes
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.tokens import (
    BUCKET,
    BUCKET_LIFECYCLE,
    BUCKET_POLICY,
    BUCKET_VERSIONING,
    IAM_ATTACHMENT,
    IAM_POLICY,
    IAM_ROLE,
    IAM_ROLE_POLICY,
    INGRESS,
    LAUNCH_TEMPLATE,
    NODE_CLASS,
    PUBLIC_ACCESS_BLOCK,
    SECURITY_GROUP,
    SERVICE,
    VOLUME,
)

_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_ADMINISTRATOR = "AdministratorAccess"
_FEDERATED = "sts:AssumeRoleWithWebIdentity"
_APPS = re.compile(r"(?<![a-z])(ray|hub|jupyter|jupyterhub|proxy-public|slurm|login|argo|argocd)(?![a-z])", re.IGNORECASE)
_SCHEME = "service.beta.kubernetes.io/aws-load-balancer-scheme"
_INTERNAL = "service.beta.kubernetes.io/aws-load-balancer-internal"
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


def _disks(resource: Resource, report: Report) -> None:
    if resource.type == VOLUME:
        _disk(resource, resource.properties, ("type", "size"), report)
        return
    place = resource.at("spec", "blockDeviceMappings") if resource.type == NODE_CLASS else resource.at("blockDeviceMappings")
    for mapping in place.elements():
        with report.part():
            if mapping.at("ebs").present:
                _disk(resource, mapping.at("ebs"), ("volumeType", "volumeSize"), report)


def _disk(resource: Resource, ebs: Node, keys: tuple[str, str], report: Report) -> None:
    kind, size = ebs.at(keys[0]), ebs.at(keys[1])
    with report.part():
        if flag(ebs.at("encrypted")) is not True:
            report.refuse(resource, ebs.at("encrypted"), allowed="true")
    with report.part():
        if kind.text() == "gp3":
            _gp3(resource, ebs, size, report)


def _gp3(resource: Resource, ebs: Node, size: Node, report: Report) -> None:
    facts = load("security")["gp3"]
    for key in ("iops", "throughput"):
        place, (least, most) = ebs.at(key), facts[key]
        number = place.integer()
        if place.present and (number is None or not least <= number <= most):
            report.refuse(resource, place, allowed=f"{least} to {most} on gp3")
    # A class writes 200Gi, the others write GiB.
    gib = gibibytes(size.text()) if isinstance(size.raw, str) and not size.text().isdigit() else size.integer()
    if gib is not None and gib > facts["gibibytes"]:
        report.refuse(resource, size, allowed=f"at most {facts['gibibytes']} GiB on gp3")


def _documents(resource: Resource, report: Report) -> None:
    if resource.type == IAM_ATTACHMENT:
        place = resource.at("policyArn")
        if place.text().rpartition("/")[2] == _ADMINISTRATOR:
            report.refuse(resource, place, allowed="a policy of what it needs")
        return
    if resource.type == IAM_ROLE:
        with report.part():
            _trust(resource, resource.at("assumeRolePolicy"), report)
        for arn in resource.at("managedPolicyArns").elements():
            with report.part():
                if arn.text().rpartition("/")[2] == _ADMINISTRATOR:
                    report.refuse(resource, arn, allowed="a policy of what it needs")
        for inline in resource.at("inlinePolicies").elements():
            with report.part():
                _rights(resource, inline.at("policy"), report)
        return
    _rights(resource, resource.at("policy"), report)


def _statements(place: Node) -> Iterator[dict[str, Any]]:
    """The statements of a document in text; nothing where it can't be read."""
    if not place.text():
        return
    try:
        document = read_json(place.text())
    except DocumentError:
        return
    statements = document.get("Statement") if isinstance(document, dict) else None
    for statement in statements if isinstance(statements, list) else [statements]:
        if isinstance(statement, dict):
            yield statement


def _listed(statement: dict[str, Any], key: str) -> list[str]:
    value = statement.get(key)
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _rights(resource: Resource, place: Node, report: Report) -> None:
    for statement in _statements(place):
        if statement.get("Effect") != "Allow" or "*" not in _listed(statement, "Resource"):
            continue
        for action in _listed(statement, "Action"):
            if action == "*" or action.endswith(":*"):
                report.refuse(resource, place, allowed="named actions, or named resources", found=f"{action} on *")
            elif action.lower() == "iam:passrole":
                report.refuse(resource, place, allowed="the ARN of the role that is passed", found=f"{action} on *")
        if "NotAction" in statement:
            report.refuse(resource, place, allowed="named actions", found="NotAction on *")


def _trust(resource: Resource, place: Node, report: Report) -> None:
    for statement in _statements(place):
        principal = statement.get("Principal")
        if statement.get("Effect") != "Allow":
            continue
        if principal == "*" or (isinstance(principal, dict) and "*" in _listed(principal, "AWS")):
            report.refuse(resource, place, allowed="a named principal", found="a trust of everybody")
        if _FEDERATED in _listed(statement, "Action") and isinstance(principal, dict) and "Federated" in principal:
            _subject(resource, place, statement, report)


def _subject(resource: Resource, place: Node, statement: dict[str, Any], report: Report) -> None:
    conditions = statement.get("Condition")
    pairs = [
        (key, value)
        for operator in (conditions.values() if isinstance(conditions, dict) else ())
        if isinstance(operator, dict)
        for key, value in operator.items()
    ]
    for ending in (":sub", ":aud"):
        if not any(key.endswith(ending) for key, _ in pairs):
            report.refuse(resource, place, allowed=f"a condition on {ending}", found=f"a trust of an OIDC provider without {ending}")
    for key, value in pairs:
        subjects = value if isinstance(value, list) else [value]
        if key.endswith(":sub") and any(isinstance(each, str) and "*" in each for each in subjects):
            shown = ", ".join(str(each) for each in subjects)
            report.refuse(resource, place, allowed="one namespace and service account", found=f"a trust of {shown}")


def _buckets(program: Program, report: Report) -> None:
    for bucket in program.of(BUCKET):
        with report.part():
            if flag(bucket.at("forceDestroy")) is True:
                report.refuse(bucket, bucket.at("forceDestroy"), allowed="false: a destroy else deletes every object in it")
        for check in (_public, _plain, _versions, _uploads):
            with report.part():
                if program.whole:
                    check(program, bucket, report)


def _of(program: Program, bucket: Resource, kind: str) -> list[Resource]:
    """The resources of a kind that belong to the bucket."""
    return [each for each in program.of(kind) if _belongs(each, bucket)]


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
    if any("aws:SecureTransport" in policy.at("policy").text() for policy in _policies(program, bucket)):
        return
    place = Node(None, "policy")
    report.refuse(bucket, place, allowed="a policy that denies what comes without TLS (aws:SecureTransport)", found="without one")


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


def _exposed(program: Program, report: Report) -> None:
    for group in program.of(SECURITY_GROUP):
        for opening in openings(program, group, "ingress"):
            with report.part():
                if isinstance(opening, Undecided):
                    raise opening
                _opening(opening, report)
    for service in program.of(SERVICE):
        with report.part():
            _balancer(service, report)
    for ingress in program.of(INGRESS):
        with report.part():
            _ingress(ingress, report)


def _opening(opening: Opening, report: Report) -> None:
    public = [cidr for cidr in opening.cidrs if cidr.text() in ANYWHERE]
    if not public:
        return
    ports = load("security")["guardedPorts"]
    touched = [f"{port} ({what})" for port, what in ports.items() if opening.touches(int(port))]
    if touched:
        shown = ", ".join(touched[:3]) + (f" and {len(touched) - 3} more" if len(touched) > 3 else "")
        report.refuse(opening.resource, public[0], allowed="named ranges or groups", found=f"{public[0].text()} to {shown}")


def _balancer(service: Resource, report: Report) -> None:
    if service.at("spec", "type").text() not in ("LoadBalancer", "NodePort"):
        return
    notes = service.at("metadata", "annotations")
    if notes.at(_SCHEME).text() == "internal" or notes.at(_INTERNAL).text() == "true":
        return
    guarded = load("security")["guardedPorts"]
    ports = [port.at(key) for port in service.at("spec", "ports").elements() for key in ("port", "targetPort")]
    what = next((guarded[port.text()] for port in ports if port.text() in guarded), None)
    named = _APPS.search(f"{service.name} {service.at('metadata', 'name').text()}")
    reason = what or (named[0] if named else None)
    if reason:
        place = service.at("spec", "type")
        report.refuse(service, place, allowed=f"ClusterIP, or {_SCHEME}: internal, because it serves {reason}")


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


def _policy(*actions: str, resource: str = "*") -> tuple[Example, ...]:
    words = ", ".join(f'"{action}"' for action in actions)
    text = f'{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": [{words}], "Resource": "{resource}"}}]}}'
    return (Example(IAM_POLICY, {"policy": text}, name="trainer"),)


def _service(kind: str) -> tuple[Example, ...]:
    return (Example(SERVICE, {"metadata": {"name": "head"}, "spec": {"type": kind, "ports": [{"port": 8265}]}}, name="head"),)


def _store(**bucket: Any) -> tuple[Example, ...]:
    deny = '{"Statement": [{"Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}]}'
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
        title="Disks are encrypted, and gp3 stays within its limits",
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS, VOLUME}),
        check=_disks,
        why="data and caches lie in the clear on shared disks; outside its limits EC2 refuses the launch.",
        fix="set encrypted to true; gp3 takes 3000 to 80000 IOPS, 125 to 2000 MiB/s and up to 65536 GiB.",
        source="botocore 1.44.8 ec2 model; Checkov CKV_AWS_3",
        valid=(Example(VOLUME, {"type": "gp3", "encrypted": True, "iops": 10000, "size": 500}, name="data"),),
        invalid=(Example(VOLUME, {"type": "gp3", "encrypted": False, "size": 500}, name="data"),),
    ),
    Rule(
        id="SEC03",
        name="policy-disallow-everything",
        title="IAM documents name actions, resources, and who may take a role",
        types=frozenset({IAM_POLICY, IAM_ROLE_POLICY, IAM_ROLE, IAM_ATTACHMENT}),
        check=_documents,
        why="one leaked token of one pod is then the whole account.",
        fix="list the actions on the ARNs they are needed on; let a trust name audience, namespace and service account.",
        source="Checkov CKV_AWS_62 and CKV_AWS_63; CIS EKS 5.1",
        valid=_policy("s3:GetObject", resource="arn:aws:s3:::bucket/data/*"),
        invalid=_policy("s3:*"),
    ),
    StackRule(
        id="SEC04",
        name="bucket-require-closed-and-kept",
        title="A bucket is closed, answers over TLS only, keeps checkpoints, and outlives a destroy",
        types=frozenset({BUCKET, PUBLIC_ACCESS_BLOCK, BUCKET_POLICY, BUCKET_VERSIONING, BUCKET_LIFECYCLE}),
        check=_buckets,
        why="data is read by strangers, or one destroy or one overwrite takes every checkpoint.",
        fix="add a public access block, a policy on aws:SecureTransport and versioning; leave forceDestroy off.",
        source="Checkov CKV_AWS_53 to 56 and CKV_AWS_21; AWSGuard s3",
        valid=_store(),
        invalid=_store(forceDestroy=True),
    ),
    StackRule(
        id="SEC05",
        name="port-disallow-public-control",
        title="Ports that run code or move files are not open to the internet",
        types=GROUP_TYPES | {SERVICE, INGRESS},
        check=_exposed,
        why="whoever finds the Ray dashboard, a notebook or a Slurm login runs code on the accelerators, with the pods' credentials.",
        fix="use ClusterIP and port forwarding, an internal load balancer, or named ranges.",
        source="CIS EKS 5.4; Ray documentation: security; field guide: access",
        valid=_service("ClusterIP"),
        invalid=_service("LoadBalancer"),
    ),
)
