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
POD_TRUST = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}

BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
DENY = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}


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

CASES = (
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
    # No document at all: IAM says so itself.
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
    invalid("SEC04", bucket(), *(replace(each, sources={"bucket": ["other"]}) for each in REST), says="all four settings true"),
    valid("SEC04", second(bucket(versionings=[{"enabled": True}], **KEEPS)), *REST),
    valid("SEC04", second(bucket(**KEEPS)), closed(), TLS, second(UPLOADS), second(VERSIONS), edge=True),
    valid("SEC04", bucket(**KEEPS), *REST, second(VERSIONS)),
    invalid("SEC04", second(bucket(forceDestroy=True)), *REST, says="forceDestroy is true"),
    invalid("SEC04", second(bucket(**KEEPS)), *REST, second(SUSPENDED), says="versioning is off"),
    invalid("SEC04", second(bucket()), TLS, UPLOADS, says="all four settings true"),
    valid("SEC05", service(internal="true")),
    invalid("SEC05", service(port=80, target=8265, name="web"), says="it serves the Ray dashboard"),
    invalid("SEC05", group(ports(6817, 6819)), says="6819 (slurmdbd);", edge=True),
    invalid("SEC05", group(ports(6817, 6820)), says="and 1 more", edge=True),
    invalid("SEC05", ingress("internet-facing", "website", defaultBackend=backend("jupyterhub")), says="it serves jupyterhub"),
    invalid("SEC05", ingress("internet-facing", "argocd-server", "website"), says="it serves argocd"),
    invalid("SEC05", replace(ingress("internet-facing", "website"), name="ray"), says="it serves ray"),
)
