"""Node credentials, disks, IAM documents, buckets, exposed ports."""

import json
from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid


def template(**options: Any) -> Thing:
    return Thing(type=tokens.LAUNCH_TEMPLATE, name="nodes", properties={"metadataOptions": options} if options else {})


def node_class(**options: Any) -> Thing:
    return b.node_class({"spec/metadataOptions": options} if options else None)


def volume(**properties: Any) -> Thing:
    return Thing(type=tokens.VOLUME, name="data", properties={"type": "gp3", "size": 500, "encrypted": True, **properties})


def disk(**ebs: Any) -> Thing:
    plain = {"volumeType": "gp3", "volumeSize": 200, "encrypted": "true", **ebs}
    return Thing(type=tokens.LAUNCH_TEMPLATE, name="nodes", properties={"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": plain}]})


def class_disk(**ebs: Any) -> Thing:
    return b.node_class({"spec/blockDeviceMappings": [{"ebs": {"volumeType": "gp3", "volumeSize": "200Gi", "encrypted": True, **ebs}}]})


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(actions: Any, resources: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources, **more}


def policy(*statements: dict[str, Any], kind: str = tokens.IAM_POLICY) -> Thing:
    return Thing(type=kind, name="trainer", properties={"policy": document(*statements)})


def role(*statements: dict[str, Any], **properties: Any) -> Thing:
    return Thing(type=tokens.IAM_ROLE, name="trainer", properties={"assumeRolePolicy": document(*statements), **properties})


def federated(condition: Any = None) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Principal": {"Federated": "arn:aws:iam::123456789012:oidc-provider/oidc.eks.example/id/X"},
        "Action": "sts:AssumeRoleWithWebIdentity",
        **({"Condition": condition} if condition else {}),
    }


def attached(name: str, owner: str = "aws") -> Thing:
    arn = f"arn:aws:iam::{owner}:policy/{name}"
    return Thing(type=tokens.IAM_ATTACHMENT, name="attached", properties={"role": "node", "policyArn": arn})


ISSUER = "oidc.eks.example/id/X"
AUDIENCE = {f"{ISSUER}:aud": "sts.amazonaws.com"}
SIGN_IN = {
    "Effect": "Allow",
    "Principal": {"Federated": "arn:aws:iam::123456789012:saml-provider/corp"},
    "Action": "sts:AssumeRoleWithSAML",
    "Condition": {"StringEquals": {"SAML:aud": "https://signin.aws.amazon.com/saml"}},
}
COGNITO = "cognito-identity.amazonaws.com"
POD_TRUST = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}

BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
STORE = "arn:aws:s3:::store"
PLAIN = {"Bool": {"aws:SecureTransport": "false"}}
DENY = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": [STORE, f"{STORE}/*"], "Condition": PLAIN}


def of_bucket(kind: str, name: str, **properties: Any) -> Thing:
    return Thing(type=kind, name=name, properties={"bucket": UNKNOWN, **properties}, sources={"bucket": ["store"]})


def named(thing: Thing, name: str, *sources: str) -> Thing:
    """The same thing with the bucket's name written out, or known and taken from `sources`."""
    return replace(thing, properties={**thing.properties, "bucket": name}, sources={"bucket": sources} if sources else {})


def bucket(**properties: Any) -> Thing:
    return Thing(type=tokens.BUCKET, name="store", properties=properties)


def closed(**changes: Any) -> Thing:
    return of_bucket(tokens.PUBLIC_ACCESS_BLOCK, "closed", **{**dict.fromkeys(BLOCKS, True), **changes})


def second(thing: Thing) -> Thing:
    """The same thing of the second type that pulumi-aws has for it."""
    module, _, kind = thing.type.rpartition(":")
    return replace(thing, type=f"{module}V2:{kind}V2")


TLS = of_bucket(tokens.BUCKET_POLICY, "tls", policy=document(DENY))
UPLOADS = of_bucket(tokens.BUCKET_LIFECYCLE, "uploads", rules=[{"abortIncompleteMultipartUpload": {"daysAfterInitiation": 7}}])
VERSIONS = of_bucket(tokens.BUCKET_VERSIONING, "versions", versioningConfiguration={"status": "Enabled"})
SUSPENDED = of_bucket(tokens.BUCKET_VERSIONING, "versions", versioningConfiguration={"status": "Suspended"})
REST = (closed(), TLS, UPLOADS)
OTHER = Thing(type=tokens.BUCKET, name="other", properties={})
KEEPS = {"tags": {"role": "checkpoints"}}


def group(*rules: dict[str, Any]) -> Thing:
    return Thing(type=tokens.SECURITY_GROUP, name="open", properties={"ingress": list(rules)})


def ports(first: int, last: int, *cidrs: str, protocol: str = "tcp") -> dict[str, Any]:
    return {"protocol": protocol, "fromPort": first, "toPort": last, "cidrBlocks": list(cidrs or ("0.0.0.0/0",))}


def service(kind: str = "LoadBalancer", port: int = 8265, name: str = "head", target: int | None = None, **annotations: str) -> Thing:
    notes = {f"service.beta.kubernetes.io/aws-load-balancer-{key}": value for key, value in annotations.items()}
    entry = {"port": port, **({"targetPort": target} if target else {})}
    properties = {"metadata": {"name": name, "annotations": notes}, "spec": {"type": kind, "ports": [entry]}}
    return Thing(type=tokens.SERVICE, name="front", properties=properties)


def backend(name: str) -> dict[str, Any]:
    return {"service": {"name": name, "port": {"number": 443}}}


def ingress(scheme: str, *backends: str, **spec: Any) -> Thing:
    rules = [{"http": {"paths": [{"path": "/", "backend": backend(name)}]}} for name in backends or ("argocd-server",)]
    notes = {"alb.ingress.kubernetes.io/scheme": scheme}
    properties = {"metadata": {"name": "web", "annotations": notes}, "spec": {"rules": rules, **spec}}
    return Thing(type=tokens.INGRESS, name="web", properties=properties)


ANYONE = Thing(
    type=tokens.INGRESS_RULE,
    name="anyone",
    properties={"securityGroupId": UNKNOWN, "ipProtocol": "tcp", "fromPort": 6379, "toPort": 6379, "cidrIpv6": "::/0"},
    sources={"securityGroupId": ["open"]},
)

GITHUB = "token.actions.githubusercontent.com"


def github(subject: Any, operator: str = "StringLike") -> Thing:
    conditions = {"StringEquals": {f"{GITHUB}:aud": "sts.amazonaws.com"}}
    conditions.setdefault(operator, {})[f"{GITHUB}:sub"] = subject
    provider = f"arn:aws:iam::123456789012:oidc-provider/{GITHUB}"
    return role({**federated(conditions), "Principal": {"Federated": provider}})


def subject(value: Any, operator: str = "StringLike", **more: Any) -> dict[str, Any]:
    """A trust of what the condition says of the subject."""
    conditions: dict[str, Any] = {"StringEquals": dict(AUDIENCE)}
    conditions.setdefault(operator, {})[f"{ISSUER}:sub"] = value
    return {**federated(conditions), **more}


def everybody(condition: Any = None, principal: Any = None) -> Thing:
    trust = {"Effect": "Allow", "Principal": principal or {"AWS": "*"}, "Action": "sts:AssumeRole"}
    return role({**trust, **({"Condition": condition} if condition else {})})


def attachment(kind: str, **properties: Any) -> Thing:
    module = kind[0].lower() + kind[1:]
    return Thing(type=f"aws:iam/{module}:{kind}", name="attached", properties=properties)


def says_tls(**changes: Any) -> Thing:
    """A bucket's policy whose one statement is changed."""
    statement = {key: value for key, value in {**DENY, **changes}.items() if value is not None}
    return of_bucket(tokens.BUCKET_POLICY, "tls", policy=document(statement))


def inlet(kind: str, sources: Any = (), **properties: Any) -> Thing:
    """A rule of its own that opens SSH, to a group of elsewhere."""
    plain: dict[str, Any] = {"securityGroupId": "sg-0123456789abcdef0", "fromPort": 22, "toPort": 22}
    plain |= {"ipProtocol": "tcp"} if kind == tokens.INGRESS_RULE else {"protocol": "tcp", "type": "ingress"}
    where = {"securityGroupId": list(sources)} if sources else {}
    return Thing(type=kind, name="ssh", properties={**plain, **properties}, sources=where)


HALVES = ("0.0.0.0/1", "128.0.0.0/1")


def halves(first: Any = (), second: Any = (), **upper: Any) -> tuple[Thing, Thing]:
    """Two rules of one group that together open SSH to everybody, but for what is said of the second."""
    of_both = {key: value for key, value in upper.items() if value == UNKNOWN}
    low = inlet(tokens.INGRESS_RULE, first, cidrIpv4=HALVES[0], **of_both)
    return replace(low, name="lower"), replace(inlet(tokens.INGRESS_RULE, second, **{"cidrIpv4": HALVES[1], **upper}), name="upper")


def default_group(*rules: dict[str, Any]) -> Thing:
    return Thing(type=tokens.DEFAULT_SECURITY_GROUP, name="default", properties={"ingress": list(rules)})


def remote(**access: Any) -> Thing:
    return Thing(type=tokens.NODE_GROUP, name="nodes", properties={"instanceTypes": ["m7i.large"], "remoteAccess": access})


def balanced(annotations: dict[str, str] | None = None, **spec: Any) -> Thing:
    """The Ray dashboard behind a load balancer."""
    properties = service().properties
    notes = {f"service.beta.kubernetes.io/{key}": value for key, value in (annotations or {}).items()}
    return replace(service(), properties={"metadata": {"name": "head", "annotations": notes}, "spec": {**properties["spec"], **spec}})


def _login(kind: str, scheme: str = "") -> dict[str, Any]:
    note = {"service.beta.kubernetes.io/aws-load-balancer-scheme": scheme} if scheme else {}
    return {"metadata": {"annotations": note}, "spec": {"type": kind}}


def login_set(service: dict[str, Any]) -> tuple[Thing]:
    spec = {"controllerRef": {"name": "slurm"}, "service": service}
    return (Thing(type=tokens.LOGIN_SET, name="access", properties={"metadata": {"name": "access"}, "spec": spec}),)


def login_chart(service: dict[str, Any], *, enabled: bool = True, defaults: dict[str, Any] | None = None) -> tuple[Thing]:
    values = {
        "loginsets": {"access": {"enabled": enabled, "service": service}},
        **({"loginsetDefaults": {"service": defaults}} if defaults else {}),
    }
    return (
        Thing(
            type=tokens.RELEASE,
            name="cluster",
            properties={"chart": "oci://ghcr.io/slinkyproject/charts/slurm", "version": "1.2.2", "values": values},
        ),
    )


ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
READER = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
ROLES = "arn:aws:iam::123456789012:role"
ACCOUNT = {"StringEquals": {"aws:PrincipalAccount": ["123456789012", "210987654321"]}}

_CASES = (
    valid("SEC01", template(httpTokens="required", httpPutResponseHopLimit=1)),
    valid("SEC01", template(httpTokens="required")),
    valid("SEC01", node_class()),
    valid("SEC01", node_class(httpTokens="required", httpPutResponseHopLimit=1), edge=True),
    valid("SEC01", node_class(httpEndpoint="enabled")),
    invalid("SEC01", template(httpTokens="optional", httpPutResponseHopLimit=2), says="httpTokens is optional"),
    invalid("SEC01", template(), says="httpTokens is unset (what account and image say)"),
    invalid("SEC01", node_class(httpTokens="optional"), says="spec.metadataOptions.httpTokens is optional"),
    invalid("SEC01", template(httpTokens="required", httpPutResponseHopLimit=64), says="a pod reaches the node's role"),
    invalid("SEC01", node_class(httpPutResponseHopLimit=2), says="httpPutResponseHopLimit is 2;", edge=True),
    valid("SEC02", volume()),
    valid("SEC02", volume(iops=3000, throughput=125), edge=True),
    valid("SEC02", volume(iops=80000, throughput=2000, size=65536), edge=True),
    valid("SEC02", disk()),
    valid("SEC02", class_disk()),
    valid("SEC02", volume(type="io2", iops=256000)),
    invalid("SEC02", volume(encrypted=False), says="encrypted is false"),
    invalid("SEC02", disk(encrypted=None), says="encrypted is unset"),
    invalid("SEC02", class_disk(encrypted=False), says="ebs.encrypted is false"),
    invalid("SEC02", disk(encrypted="false"), says="encrypted is false"),
    invalid("SEC02", volume(iops=2999), says="3000 to 80000 on gp3", edge=True),
    invalid("SEC02", volume(throughput=2001), says="125 to 2000 on gp3", edge=True),
    invalid("SEC02", volume(size=65537), says="at most 65536 GiB", edge=True),
    invalid("SEC02", class_disk(volumeSize="65Ti"), says="volumeSize is 65Ti"),
    valid("SEC03", policy(allow("s3:GetObject", "arn:aws:s3:::bucket/data/*"))),
    valid("SEC03", policy(allow(["fsx:DescribeFileSystems"]))),
    valid("SEC03", role(POD_TRUST)),
    valid("SEC03", role(federated({"StringEquals": {**AUDIENCE, f"{ISSUER}:sub": "system:serviceaccount:jobs:trainer"}}))),
    valid("SEC03", attached("AmazonEKSWorkerNodePolicy")),
    valid("SEC03", policy({"Effect": "Deny", "Action": "s3:*", "Resource": "*"}), edge=True),
    valid("SEC03", policy(allow("s3:*", "arn:aws:s3:::bucket/*")), edge=True),
    invalid("SEC03", policy(allow("s3:*")), says="s3:* on *"),
    invalid("SEC03", policy(allow(["*"], ["*"]), kind=tokens.IAM_ROLE_POLICY), says="policy is * on *"),
    invalid("SEC03", policy(allow("iam:PassRole")), says="iam:PassRole on *"),
    invalid("SEC03", attached("AdministratorAccess"), says="a policy of what it needs"),
    invalid("SEC03", role(POD_TRUST, managedPolicyArns=["arn:aws:iam::aws:policy/AdministratorAccess"]), says="managedPolicyArns[0]"),
    invalid("SEC03", role(federated()), says="without :sub"),
    invalid(
        "SEC03", role(federated({"StringEquals": {f"{ISSUER}:sub": "system:serviceaccount:jobs:trainer"}})), says="without :aud", edge=True
    ),
    invalid(
        "SEC03",
        role(federated({"StringEquals": AUDIENCE, "StringLike": {f"{ISSUER}:sub": "system:serviceaccount:jobs:*"}})),
        says="a trust of system:serviceaccount:jobs:*",
    ),
    invalid("SEC03", role({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}), says="a trust of everybody"),
    invalid("SEC03", policy({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}), says="NotAction on *"),
    valid("SEC04", bucket(), *REST),
    valid("SEC04", bucket(forceDestroy=False, **KEEPS), *REST, VERSIONS),
    valid("SEC04", bucket(policy=document(DENY)), closed(), UPLOADS),
    valid("SEC04", bucket(lifecycleRules=[{"abortIncompleteMultipartUploadDays": 7}]), closed(), TLS),
    valid("SEC04", bucket(versioning={"enabled": True}, **KEEPS), *REST, edge=True),
    invalid("SEC04", bucket(forceDestroy=True), *REST, says="forceDestroy is true"),
    invalid("SEC04", bucket(), TLS, UPLOADS, says="all four settings true"),
    invalid("SEC04", bucket(), closed(blockPublicPolicy=False), TLS, UPLOADS, says="blockPublicPolicy is false"),
    invalid("SEC04", bucket(), closed(restrictPublicBuckets=None), TLS, UPLOADS, says="restrictPublicBuckets is unset", edge=True),
    invalid("SEC04", bucket(), closed(), UPLOADS, says="denies what comes without TLS"),
    invalid("SEC04", bucket(**KEEPS), *REST, says="versioning is off"),
    invalid("SEC04", bucket(**KEEPS), *REST, SUSPENDED, says="the bucket holds checkpoints", edge=True),
    invalid("SEC04", bucket(), closed(), TLS, says="ends incomplete multipart uploads"),
    valid("SEC05", service("ClusterIP")),
    valid("SEC05", service(scheme="internal")),
    valid("SEC05", service(port=443, name="inference")),
    valid("SEC05", group(ports(443, 443), ports(22, 22, "10.0.0.0/8"))),
    valid("SEC05", ingress("internal")),
    valid("SEC05", ingress("internet-facing", "website")),
    valid("SEC05", group(ports(23, 987)), edge=True),
    valid("SEC05", group(ports(22, 22, protocol="udp")), edge=True),
    invalid("SEC05", service(), says="because it serves the Ray dashboard"),
    invalid("SEC05", service(port=443, name="proxy-public"), says="it serves proxy-public"),
    invalid("SEC05", service("NodePort", scheme="internet-facing"), says="spec.type is NodePort"),
    invalid("SEC05", group(ports(22, 22)), says="0.0.0.0/0 to 22 (SSH)"),
    invalid("SEC05", group(ports(0, 0, protocol="-1")), says="and 10 more"),
    invalid("SEC05", group(ports(23, 988)), says="988 (Lustre)", edge=True),
    invalid("SEC05", group(), ANYONE, says="::/0 to 6379 (Redis of Ray)"),
    invalid("SEC05", ingress("internet-facing"), says="because it serves argocd"),
    invalid("SEC02", volume(size="70000"), says="size is 70000; allowed: at most 65536 GiB"),
    valid("SEC03", role(SIGN_IN)),
    valid("SEC03", role({**federated({"StringEquals": {f"{COGNITO}:aud": "us-east-1:pool"}}), "Principal": {"Federated": COGNITO}})),
    # No document at all: IAM says so itself.
    valid("SEC03", Thing(type=tokens.IAM_POLICY, name="trainer", properties={"policy": ""})),
    valid("SEC03", Thing(type=tokens.IAM_POLICY, name="trainer", properties={"policy": "[]"})),
    invalid(
        "SEC03", Thing(type=tokens.IAM_POLICY, name="trainer", properties={"policy": json.dumps({"Statement": allow("s3:*")})}), says="s3:*"
    ),
    invalid("SEC03", policy(allow("s3:GetObject", "arn:aws:s3:::bucket/*"), allow("ec2:*")), says="ec2:* on *"),
    invalid(
        "SEC03", role(POD_TRUST, inlinePolicies=[{"name": "all", "policy": document(allow("fsx:*"))}]), says="inlinePolicies[0].policy"
    ),
    invalid("SEC03", attached("ops/AdministratorAccess", "123456789012"), says="policy/ops/AdministratorAccess"),
    invalid("SEC03", role(POD_TRUST, managedPolicyArns=["arn:aws:iam::123456789012:policy/ops/AdministratorAccess"]), says="policy/ops/"),
    invalid("SEC03", role({**POD_TRUST, "Effect": "Deny"}, {**POD_TRUST, "Principal": "*"}), says="a trust of everybody"),
    invalid(
        "SEC03",
        role(federated({"StringLike": {**AUDIENCE, f"{ISSUER}:sub": ["system:serviceaccount:jobs:*", "system:serviceaccount:ci:*"]}})),
        says="a trust of system:serviceaccount:jobs:*, system:serviceaccount:ci:*",
    ),
    valid("SEC04", bucket(bucket="data", id=UNKNOWN), *(named(each, "data") for each in REST)),
    valid("SEC04", bucket(id="store-1a2b3c4"), *(named(each, "store-1a2b3c4") for each in REST)),
    valid("SEC04", bucket(bucket="data"), *(named(each, "data", "ownership") for each in REST), edge=True),
    invalid("SEC04", bucket(bucket="data"), *(named(each, "logs") for each in REST), says="all four settings true"),
    invalid("SEC04", bucket(), OTHER, *(replace(each, sources={"bucket": ["other"]}) for each in REST), says="all four settings true"),
    # What they belong to may be the name of both, as one that another resource makes up.
    valid("SEC04", bucket(), OTHER, *REST, *(replace(each, name=f"{each.name}-2", sources={"bucket": ["other"]}) for each in REST)),
    valid("SEC04", second(bucket(versionings=[{"enabled": True}], **KEEPS)), *REST),
    valid("SEC04", second(bucket(**KEEPS)), closed(), TLS, second(UPLOADS), second(VERSIONS), edge=True),
    valid("SEC04", bucket(**KEEPS), *REST, second(VERSIONS)),
    invalid("SEC04", second(bucket(forceDestroy=True)), *REST, says="forceDestroy is true"),
    invalid("SEC04", second(bucket(**KEEPS)), *REST, second(SUSPENDED), says="versioning is off"),
    invalid("SEC04", second(bucket()), TLS, UPLOADS, says="all four settings true"),
    valid("SEC05", service(internal="true")),
    *(valid("SEC05", *made(_login(*said))) for made in (login_set, login_chart) for said in (("ClusterIP",), ("LoadBalancer", "internal"))),
    valid("SEC05", *login_set({"spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"]}})),
    valid("SEC05", *login_set({"type": "LoadBalancer"}), edge=True),
    valid("SEC05", *login_chart({}), edge=True),
    valid("SEC05", *login_chart(_login("LoadBalancer"), enabled=False)),
    valid("SEC05", *login_chart(_login("LoadBalancer"), defaults=_login("ClusterIP", "internal"))),
    *(
        invalid("SEC05", *made(_login(*said)), says="because it serves the SSH of Slurm's login")
        for made in (login_set, login_chart)
        for said in (("LoadBalancer", "internet-facing"), ("LoadBalancer",), ("NodePort",))
    ),
    invalid("SEC05", *login_chart({}, defaults=_login("LoadBalancer", "internet-facing")), says="loginsetDefaults.service.spec.type is"),
    invalid("SEC05", service(port=80, target=8265, name="web"), says="it serves the Ray dashboard"),
    invalid("SEC05", group(ports(6817, 6819)), says="6819 (slurmdbd);", edge=True),
    invalid("SEC05", group(ports(6817, 6820)), says="and 1 more", edge=True),
    invalid("SEC05", ingress("internet-facing", "website", defaultBackend=backend("jupyterhub")), says="it serves jupyterhub"),
    invalid("SEC05", ingress("internet-facing", "argocd-server", "website"), says="it serves argocd"),
    invalid("SEC05", replace(ingress("internet-facing", "website"), name="ray"), says="it serves ray"),
)


def written(text: Any, kind: str = tokens.IAM_POLICY) -> Thing:
    """A policy with a text of one's own."""
    return Thing(type=kind, name="trainer", properties={"policy": text})


READS = "arn:aws:s3:::bucket/*"
NODES_TRUST = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}


def aging(ends: Any = None, **moves: int) -> tuple[Thing, ...]:
    """A closed bucket whose objects move to storage classes after so many days, and expire."""
    rule = {"status": "Enabled", "transitions": [{"days": days, "storageClass": kind} for kind, days in moves.items()]}
    more = {"expiration": {"days": ends}} if ends else {}
    return (bucket(), *REST, of_bucket(tokens.BUCKET_LIFECYCLE, "ages", rules=[{**rule, **more}]))


AGES = (
    valid("SEC04", *aging(31, STANDARD_IA=30), edge=True),
    valid("SEC04", *aging(None, GLACIER=0, INTELLIGENT_TIERING=0)),
    invalid("SEC04", *aging(None, STANDARD_IA=29), says="days is 29; allowed: at least 30 to STANDARD_IA", edge=True),
    invalid("SEC04", *aging(60, GLACIER=60), says="expiration.days is 60; allowed: more than 60, the days to GLACIER", edge=True),
    invalid(
        "SEC04",
        bucket(),
        *REST,
        of_bucket(tokens.BUCKET_VERSIONING, "versions", versioningConfiguration={"status": "enabled"}),
        says="status is enabled; allowed: Enabled, Suspended, Disabled",
    ),
)
# What IAM refuses for its form.
FORM = (
    valid("SEC03", role(NODES_TRUST)),
    valid("SEC03", written({"Version": "2008-10-17", "Statement": allow("s3:GetObject", READS)})),
    valid("SEC03", written(json.dumps({"Statement": {"Effect": "Deny", "NotAction": ["s3:*"], "NotResource": [READS]}})), edge=True),
    valid("SEC03", policy(allow(["ec2:Describe*", "route53-recovery-control-config:List*"], "*"))),
    valid("SEC03", role({**POD_TRUST, "Action": "sts:*"}), edge=True),
    valid("SEC03", role({**POD_TRUST, "Action": "sts:AssumeRole"}, {**POD_TRUST, "Action": "sts:TagSession"}), edge=True),
    valid("SEC03", role({"Effect": "Deny", "NotPrincipal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"})),
    invalid("SEC03", written("{'Version': 1}"), says="policy is no JSON; allowed: JSON"),
    invalid("SEC03", written("arn:aws:iam::aws:policy/ReadOnlyAccess", tokens.IAM_ROLE_POLICY), says="policy is no JSON"),
    invalid(
        "SEC03",
        written({"Version": "2012-10-18", "Statement": allow("s3:GetObject", READS)}),
        says="of version 2012-10-18; allowed: Version 2012-10-17 or 2008-10-17",
        edge=True,
    ),
    invalid("SEC03", policy({**allow("s3:GetObject", READS), "Effect": "allow"}), says="Effect allow; allowed: Effect Allow or Deny"),
    invalid("SEC03", policy({"Effect": "Allow", "Action": "s3:GetObject"}), says="Resource or NotResource in each statement"),
    invalid("SEC03", policy({"Effect": "Allow", "Resource": READS}), says="Action or NotAction in each statement"),
    invalid(
        "SEC03", policy(allow("GetObject", READS)), says="action GetObject; allowed: actions with the prefix of their service", edge=True
    ),
    invalid("SEC03", policy(allow("s3:GetObject", "bucket/*")), says="resource bucket/*; allowed: ARNs, or *", edge=True),
    invalid("SEC03", policy(allow("s3:GetObject", READS, Principal="*")), says="no Principal: that is not for what is attached"),
    invalid("SEC03", role({**NODES_TRUST, "Resource": "*"}), says="no Resource: that is not for a trust"),
    invalid("SEC03", role({"Effect": "Allow", "Action": "sts:AssumeRole"}), says="Principal or NotPrincipal in each statement"),
    invalid("SEC03", role(POD_TRUST, inlinePolicies=[{"name": "x", "policy": "{"}]), says="inlinePolicies[0].policy is no JSON"),
    invalid("SEC03", role({**POD_TRUST, "Action": "sts:AssumeRole"}), says="allowed: sts:TagSession too for pods.eks", edge=True),
    invalid(
        "SEC03", role({**POD_TRUST, "Action": "sts:AssumeRoleWithWebIdentity"}), says="sts:AssumeRole and sts:TagSession too for pods.eks"
    ),
)

DETAILS = (
    # IAM's patterns: any case, * and ?, and what is all of it in other words.
    valid("SEC03", policy(allow("s3:*Object*", "arn:aws:s3:::bucket/*"))),
    valid("SEC03", policy(allow("s3:Get*")), edge=True),
    valid("SEC03", policy(allow("fsx:*", "arn:aws:fsx:us-east-1:123456789012:file-system/*"))),
    valid("SEC03", policy(allow("logs:*", "arn:aws:logs:*:*:log-group:*"))),
    valid("SEC03", policy(allow("fsx:*", "arn:aws:fsx:us-east-1:*:*")), edge=True),
    valid("SEC03", policy(allow("iam:PassRole", f"{ROLES}/trainyard-*")), edge=True),
    valid("SEC03", policy(allow("iam:PassRole", f"{ROLES}/trainyard/*")), edge=True),
    valid("SEC03", policy(allow(["iam:GetRole", "iam:P?ssRoles"]))),
    valid("SEC03", policy({"Effect": "Allow", "Action": "s3:GetObject", "NotResource": "arn:aws:s3:::secret/*"})),
    valid("SEC03", policy({"Effect": "Allow", "NotAction": "s3:*", "Resource": "arn:aws:s3:::bucket/*"})),
    invalid("SEC03", policy({"Effect": "Allow", "Action": "*", "NotResource": f"{STORE}/*"}), says="* on all but named resources"),
    invalid("SEC03", policy({"Effect": "Allow", "Action": "iam:PassRole", "NotResource": f"{ROLES}/a"}), says="iam:PassRole on all but"),
    *(
        invalid("SEC03", policy(allow(action)), says=f"{action} on *; allowed: the ARN of the role")
        for action in ("iam:Pass*", "iam:P*", "iam:p?ssrole", "IAM:*Role")
    ),
    *(
        invalid("SEC03", policy(allow(action, where)), says=f"{action} on {where}; allowed: named actions")
        for action, where in (
            *(("*", "arn:aws:*"), ("*", "**"), ("*", "arn:*"), ("*", "arn:aws:*:*:*:*"), ("s3:**", "*"), ("s3:?*", "*"), ("*:*", "*")),
            *(("s3:*", "arn:aws:s3:::*"), ("s3:*", "arn:*:s3:::*/*"), ("fsx:*", "arn:aws:fsx:*:*:*")),
            ("logs:*", "arn:aws:logs:*:*:*:*"),
        )
    ),
    *(
        invalid("SEC03", policy(allow("iam:PassRole", where)), says=f"iam:PassRole on {where}")
        for where in ("arn:aws:iam::*:role/*", f"{ROLES}/*", "arn:aws-cn:iam::123456789012:*", "arn:*:iam::*:role*")
    ),
    invalid("SEC03", policy({"Effect": "Allow", "NotAction": "s3:*", "Resource": f"{ROLES}/*"}), says=f"NotAction on {ROLES}/*"),
    invalid(
        "SEC03",
        Thing(type=tokens.IAM_POLICY, name="trainer", properties={"policy": {"Statement": [allow("s3:*")]}}),
        says="policy is s3:* on *",
    ),
    # Who may take a role.
    valid("SEC03", role({**federated(), "Action": "sts:AssumeRole"})),
    valid("SEC03", role({**SIGN_IN, "Action": "sts:*"})),
    valid("SEC03", role(subject("system:serviceaccount:jobs:trainer", "ForAnyValue:StringLike")), edge=True),
    valid("SEC03", role(subject("system:serviceaccount:jobs:*") | {"Effect": "Deny"})),
    valid("SEC03", github("repo:org/infra:*")),
    valid("SEC03", github("repo:org/*"), edge=True),
    valid("SEC03", github(["repo:org/infra:ref:refs/heads/main", "repo:org/infra:environment:prod"], "StringEquals")),
    *(
        invalid("SEC03", role({**federated(), "Action": action}), says="without :sub")
        for action in ("sts:*", "*", ["sts:TagSession", "sts:AssumeRole*"], "STS:assumeRoleWithWebIdentity")
    ),
    invalid("SEC03", role({**federated(), "Action": None, "NotAction": "sts:TagSession"}), says="without :sub"),
    *(
        invalid("SEC03", role(subject("system:serviceaccount:x:y", operator)), says="without :sub")
        for operator in ("StringNotEquals", "StringNotLike", "Null")
    ),
    *(
        invalid("SEC03", role(subject("system:serviceaccount:x:y", operator)), says=f"with :sub by {word}, which holds without the key")
        for operator, word in (("StringEqualsIfExists", "IfExists"), ("ForAllValues:StringEquals", "ForAllValues"))
    ),
    invalid(
        "SEC03",
        role(federated({"StringLike": {f"{ISSUER}:aud": "*", f"{ISSUER}:sub": "system:serviceaccount:jobs:trainer"}})),
        says="without :aud",
    ),
    *(
        invalid("SEC03", role(subject(value)), says=f"a trust of {value}; allowed: one namespace and service account")
        for value in ("system:serviceaccount:????:trainer", "*", "system:*", "system:serviceaccount:*:trainer", "s*")
    ),
    *(
        invalid("SEC03", github(value), says=f"a trust of {value}; allowed: subjects of a named owner", edge=value == "repo:*/infra:*")
        for value in ("repo:*", "repo:*/infra:*", "project_path:*", "re*", "*", "*:ref:refs/heads/main")
    ),
    # Anyone may register acme-evil.
    *(
        invalid("SEC03", github(value), says=f"a trust of {value}; allowed: subjects of a named owner", edge=True)
        for value in (
            "repo:acme*",
            "repo:acme*:*",
            "repo:acme-org*/*",
            "repo:acm?/infra:*",
            "project_path:acme*/infra:*",
            "organization:acme*",
        )
    ),
    *(
        valid("SEC03", github(value), edge=True)
        for value in ("repo:acme/*", "repo:acme/infra*:*", "project_path:acme/*", "organization:acme:*")
    ),
    valid("SEC03", everybody(ACCOUNT)),
    valid("SEC03", everybody({"StringEquals": {"aws:PrincipalOrgID": "o-1"}}, "*")),
    valid("SEC03", everybody({"ForAnyValue:StringLike": {"aws:principalorgpaths": "o-1/r-1/*"}})),
    valid("SEC03", everybody({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::123456789012:role/ci-*"}}), edge=True),
    valid("SEC03", everybody({"StringLike": {"aws:PrincipalArn": "arn:aws:iam::123456789012*"}}), edge=True),
    valid("SEC03", everybody({"StringLike": {"aws:PrincipalArn": "arn:*:iam::123456789012:role/ci"}}), edge=True),
    valid("SEC03", everybody({"StringLike": {"aws:PrincipalAccount": "123456789012*"}}), edge=True),
    valid("SEC03", everybody({"StringLike": {"aws:PrincipalArn": "arn:aws:*:123456789012:role/x"}}), edge=True),
    valid("SEC03", everybody({"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-a1b2/r-1/*"}}), edge=True),
    *(
        invalid("SEC03", everybody(condition), says="a trust of everybody")
        for condition in (
            {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/ci-*"}},
            {"StringLike": {"aws:PrincipalArn": "arn:aws:iam::*"}},
            {"StringLike": {"aws:PrincipalArn": "arn:aws:*"}},
            {"StringLike": {"aws:PrincipalArn": "arn:aws:iam*"}},
            {"StringLike": {"aws:PrincipalArn": "arn:aws:iam*:role/Deploy"}},
            {"StringLike": {"aws:PrincipalArn": "*:role/Deploy"}},
            {"StringLike": {"aws:PrincipalArn": "arn:aws:iam::????????????:root"}},
            {"StringLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/123456789012"}},
            {"StringLike": {"aws:PrincipalArn": "arn:*role/deploy-123456789012"}},
            {"StringLike": {"aws:PrincipalArn": "arn:*:role/123456789012-*"}},
            {"StringEquals": {"aws:PrincipalAccount": "${aws:PrincipalAccount}"}},
            {"StringEquals": {"aws:PrincipalOrgID": "${aws:PrincipalOrgID}"}},
            {"StringLike": {"aws:PrincipalAccount": "12345678901*"}},
            {"StringLike": {"aws:PrincipalAccount": "*1234567890123"}},
            {"StringLike": {"aws:PrincipalOrgID": "o-*"}},
            {"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "*/r-1/ou-1/*"}},
            {"StringLike": {"aws:PrincipalOrgID": "*"}},
            {"StringNotEquals": {"aws:PrincipalAccount": "123456789012"}},
            {"StringEqualsIfExists": {"aws:PrincipalOrgID": "o-1"}},
            {"StringEquals": {"aws:RequestedRegion": "us-east-1"}},
        )
    ),
    invalid("SEC03", role({"Effect": "Allow", "NotPrincipal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"}), says="of everybody"),
    # Whatever attaches, and to whomever.
    *(
        invalid("SEC03", attachment(kind, policyArn=ADMINISTRATOR), says="policyArn is arn:aws:iam::aws:policy/AdministratorAccess")
        for kind in ("PolicyAttachment", "UserPolicyAttachment", "GroupPolicyAttachment")
    ),
    *(
        invalid("SEC03", attachment(f"{kind}PolicyAttachmentsExclusive", policyArns=[READER, ADMINISTRATOR]), says="policyArns[1] is")
        for kind in ("Role", "User", "Group")
    ),
    valid("SEC03", attachment("UserPolicyAttachment", policyArn=READER)),
    valid("SEC03", attachment("GroupPolicyAttachmentsExclusive", policyArns=[READER])),
    *(invalid("SEC03", policy(allow("*"), kind=kind), says="* on *") for kind in (tokens.IAM_USER_POLICY, tokens.IAM_GROUP_POLICY)),
    valid("SEC03", policy(allow("s3:GetObject"), kind=tokens.IAM_USER_POLICY)),
    # A denial of plain requests is one of everybody and everything.
    valid("SEC04", bucket(), closed(), UPLOADS, says_tls(Action=["*"], Principal={"AWS": ["*"]}, Resource="*")),
    valid("SEC04", bucket(), closed(), UPLOADS, says_tls(Condition={"BoolIfExists": {"AWS:securetransport": False}})),
    valid(
        "SEC04",
        bucket(),
        closed(),
        UPLOADS,
        says_tls(Condition={**PLAIN, "BoolIfExists": {"aws:PrincipalIsAWSService": "false"}}),
        edge=True,
    ),
    valid("SEC04", bucket(), closed(), UPLOADS, TLS, of_bucket(tokens.BUCKET_POLICY, "later", policy=UNKNOWN)),
    *(
        invalid("SEC04", bucket(), closed(), UPLOADS, says_tls(**changes), says="denies what comes without TLS")
        for changes in (
            {"Effect": "Allow", "Condition": {"Bool": {"aws:SecureTransport": "true"}}},
            {"Condition": {"Bool": {"aws:SecureTransport": "true"}}},
            {"Condition": {"StringEquals": {"aws:SecureTransport": "false"}}},
            {"Condition": {**PLAIN, "StringEquals": {"aws:PrincipalAccount": "123456789012"}}},
            {"Principal": {"AWS": "arn:aws:iam::123456789012:root"}},
            {"Action": "s3:PutObject"},
            {"Action": "ec2:*"},
            {"Resource": STORE},
            {"Resource": f"{STORE}/data/*"},
        )
    ),
    # A rule of its own is judged whosever group it is for.
    valid("SEC05", inlet(tokens.INGRESS_RULE, cidrIpv4="10.0.0.0/8")),
    valid("SEC05", inlet(tokens.SECURITY_GROUP_RULE, type="egress", cidrBlocks=["0.0.0.0/0"])),
    valid("SEC05", inlet(tokens.SECURITY_GROUP_RULE, prefixListIds=["pl-0123"])),
    valid("SEC05", default_group()),
    invalid("SEC05", inlet(tokens.SECURITY_GROUP_RULE, ipv6CidrBlocks=["::/0"]), says="ipv6CidrBlocks[0] is ::/0 to 22 (SSH)"),
    invalid("SEC05", inlet(tokens.INGRESS_RULE, cidrIpv4="0.0.0.0/0"), inlet(tokens.SECURITY_GROUP_RULE), says="ssh: cidrIpv4 is"),
    valid("SEC05", group(ports(22, 22, "0.0.0.0/1")), edge=True),
    invalid("SEC05", inlet(tokens.INGRESS_RULE, cidrIpv4="0.0.0.0/0"), says="ssh: cidrIpv4 is 0.0.0.0/0 to 22 (SSH)"),
    invalid("SEC05", inlet(tokens.INGRESS_RULE, cidrIpv6="::0/0"), group(), says="cidrIpv6 is ::0/0 to 22 (SSH)"),
    invalid(
        "SEC05",
        Thing(type=tokens.CLUSTER, name="cluster", properties={}),
        inlet(tokens.SECURITY_GROUP_RULE, ["cluster"], securityGroupId=UNKNOWN, cidrBlocks=["10.0.0.0/8", "0.0.0.0/0"]),
        says="cidrBlocks[1] is 0.0.0.0/0 to 22 (SSH)",
    ),
    invalid("SEC05", default_group(ports(22, 22)), says="default: ingress[0].cidrBlocks[0] is 0.0.0.0/0 to 22 (SSH)"),
    *(
        invalid("SEC05", group(ports(22, 22, block)), says=f"{block} to 22 (SSH)", edge=True)
        for block in ("0.0.0.0/00", "10.0.0.0/0", "0:0:0:0:0:0:0:0/0")
    ),
    # The whole internet in parts: of one rule, or of several rules of one group.
    invalid(
        "SEC05", group(ports(22, 22, *HALVES)), says="cidrBlocks[0] is 0.0.0.0/1, 128.0.0.0/1 (together the whole internet) to 22 (SSH)"
    ),
    invalid(
        "SEC05",
        group({**ports(22, 22, "10.0.0.0/8"), "ipv6CidrBlocks": ["::/1", "8000::/1"]}),
        says="ipv6CidrBlocks[0] is ::/1, 8000::/1 (together the whole internet) to 22",
    ),
    invalid(
        "SEC05", inlet(tokens.INGRESS_RULE, cidrIpv6="2000::/3"), says="cidrIpv6 is 2000::/3 (the whole internet) to 22 (SSH)", edge=True
    ),
    invalid(
        "SEC05", inlet(tokens.SECURITY_GROUP_RULE, cidrBlocks=[UNKNOWN, *HALVES]), says="cidrBlocks[1] is 0.0.0.0/1, 128.0.0.0/1", edge=True
    ),
    invalid(
        "SEC05", group(ports(22, 22, HALVES[0]), ports(20, 988, HALVES[1])), says="(together the whole internet) to 22 (SSH);", edge=True
    ),
    invalid("SEC05", *halves(), says="lower: cidrIpv4 is 0.0.0.0/1, 128.0.0.0/1 (together the whole internet) to 22 (SSH);"),
    invalid("SEC05", *halves(fromPort=0, toPort=65535), says="(together the whole internet) to 22 (SSH);", edge=True),
    invalid("SEC05", group(), *halves(["open"], ["open"], securityGroupId=UNKNOWN), says="lower: cidrIpv4 is 0.0.0.0/1, 128.0.0.0/1"),
    invalid("SEC05", group(ports(22, 22, HALVES[0])), *halves(["open"], ["open"], securityGroupId=UNKNOWN)[1:], says="(together the whole"),
    *(
        valid("SEC05", *things, edge=True)
        for things in (
            halves(securityGroupId="sg-0fedcba9876543210"),
            halves(fromPort=23, toPort=23),
            halves(cidrIpv4="128.0.0.0/2"),
            halves(cidrIpv4=HALVES[0]),
            (group(), default_group(), *halves(["open"], ["default"], securityGroupId=UNKNOWN)),
            (group(ports(22, 22, HALVES[0])), default_group(ports(22, 22, HALVES[1]))),
            (group(ports(443, 443, *HALVES)),),
            (group(ports(22, 22, "0.0.0.0/1", "8000::/1")),),
        )
    ),
    valid("SEC05", remote(ec2SshKey="ops", sourceSecurityGroupIds=["sg-1"])),
    valid("SEC05", remote(ec2SshKey="ops", sourceSecurityGroupIds=[UNKNOWN])),
    valid("SEC05", remote(sourceSecurityGroupIds=[]), edge=True),
    invalid("SEC05", remote(ec2SshKey="ops"), says="remoteAccess.sourceSecurityGroupIds is unset (EKS opens SSH, or RDP, to 0.0.0.0/0)"),
    invalid("SEC05", remote(ec2SshKey="ops", sourceSecurityGroupIds=[]), says="beside an ec2SshKey", edge=True),
    # Load balancers that answer named ranges, or that their controller makes internal.
    valid("SEC05", balanced(loadBalancerSourceRanges=["10.0.0.0/8", "203.0.113.7/32"])),
    valid("SEC05", balanced({"load-balancer-source-ranges": "10.0.0.0/8, 203.0.113.7/32"})),
    valid("SEC05", balanced(loadBalancerSourceRanges=["0.0.0.0/1", "128.0.0.0/2"]), edge=True),
    valid("SEC05", balanced({"load-balancer-source-ranges": "0.0.0.0/0"}, loadBalancerSourceRanges=["10.0.0.0/8"]), edge=True),
    valid("SEC05", balanced(loadBalancerClass="service.k8s.aws/nlb")),
    valid("SEC05", balanced(loadBalancerClass="eks.amazonaws.com/nlb")),
    valid("SEC05", balanced({"aws-load-balancer-type": "external"})),
    *(
        invalid("SEC05", thing, says="or loadBalancerSourceRanges, because it serves the Ray dashboard")
        for thing in (
            balanced(loadBalancerSourceRanges=["10.0.0.0/8", "0.0.0.0/0"]),
            balanced({"load-balancer-source-ranges": "10.0.0.0/8, ::/0"}),
            balanced(loadBalancerSourceRanges=["0.0.0.0/1", "128.0.0.0/1"]),
            balanced({"load-balancer-source-ranges": "0.0.0.0/1,128.0.0.0/1"}),
            balanced({"load-balancer-source-ranges": " "}, loadBalancerSourceRanges=[]),
            balanced(type="NodePort", loadBalancerSourceRanges=["10.0.0.0/8"]),
            balanced({"aws-load-balancer-scheme": "internet-facing"}, loadBalancerClass="service.k8s.aws/nlb"),
            balanced({"aws-load-balancer-internal": "false"}, loadBalancerClass="service.k8s.aws/nlb"),
            balanced({"aws-load-balancer-type": "nlb"}),
        )
    ),
    # Throughput goes with IOPS, and IOPS beyond the first 3000 with size.
    valid("SEC02", disk(volumeType="gp2", iops=0, throughput=0), edge=True),
    valid("SEC02", disk(volumeType=None, iops=3000)),
    valid("SEC02", volume(type="st1", size=125), edge=True),
    valid("SEC02", volume(type="io1", size=20, iops=1000), edge=True),
    valid("SEC02", class_disk(volumeType="io1", volumeSize="4Gi", iops=100), edge=True),
    invalid("SEC02", disk(volumeType="gp2", throughput=125), says="throughput is 125; allowed: unset on gp2, which takes none"),
    invalid("SEC02", disk(volumeType="gp2", iops=3000), says="iops is 3000; allowed: unset on gp2"),
    invalid("SEC02", disk(volumeType="io1", iops=1000, throughput=125), says="throughput is 125; allowed: unset on io1"),
    invalid("SEC02", volume(type="io1"), says="iops is unset; allowed: 100 to 64000 on io1, which has no default"),
    invalid("SEC02", class_disk(volumeType="io2", iops=99), says="100 to 256000 on io2", edge=True),
    invalid("SEC02", volume(type="io1", size=20, iops=1001), says="at most 1000 on 20 GiB: 50 for each GiB", edge=True),
    invalid("SEC02", volume(type="io2", size=4, iops=4001), says="at most 4000 on 4 GiB: 1000 for each GiB", edge=True),
    invalid("SEC02", volume(type="sc1", size=124), says="size is 124; allowed: at least 125 GiB on sc1", edge=True),
    invalid("SEC02", volume(type="gp2", size=16385), says="at most 16384 GiB on gp2", edge=True),
    invalid("SEC02", disk(volumeType="gp4"), says="volumeType is gp4; allowed: gp3, gp2, io1"),
    valid("SEC02", volume(throughput=750), edge=True),
    valid("SEC02", volume(throughput=1000, iops=4000), edge=True),
    valid("SEC02", volume(iops=5000, size=10), edge=True),
    valid("SEC02", volume(iops=3000, size=1), edge=True),
    valid("SEC02", disk(iops=80000, throughput=2000, volumeSize=160), edge=True),
    valid("SEC02", disk(iops=16000, volumeSize=None)),
    valid("SEC02", disk(iops=0, throughput=0), edge=True),
    valid("SEC02", disk(iops=0, throughput=750), edge=True),
    invalid("SEC02", disk(iops=0, throughput=751), says="at most 750 with 3000 IOPS", edge=True),
    invalid("SEC02", disk(volumeType="io2", iops=0), says="which has no default", edge=True),
    invalid("SEC02", volume(throughput=751), says="throughput is 751; allowed: at most 750 with 3000 IOPS; this takes 3004", edge=True),
    invalid("SEC02", class_disk(throughput=1000), says="at most 750 with 3000 IOPS; this takes 4000"),
    invalid("SEC02", disk(throughput=1001, iops=4000), says="at most 1000 with 4000 IOPS", edge=True),
    invalid("SEC02", volume(iops=5001, size=10), says="iops is 5001; allowed: at most 5000 on 10 GiB: 500 for each GiB", edge=True),
    invalid("SEC02", class_disk(iops=16000, volumeSize="20Gi"), says="at most 10000 on 20 GiB"),
    invalid("SEC02", volume(iops=3001, size=1), says="at most 3000 on 1 GiB", edge=True),
)

CASES = (*_CASES, *AGES, *FORM, *DETAILS)
