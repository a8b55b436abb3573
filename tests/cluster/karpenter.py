"""Karpenter as a process beside a node, talking to the AWS emulator, for tests of what happens to its instances."""

import os
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import yaml

from local.aws.emulator import Endpoint
from local.node import Node
from local.node.api import ApiError, Json
from local.toolchain.builds import ModuleFile
from local.toolchain.go import go_command, module_path
from tests.cluster.nodes import wait_for

CLUSTER = "training"
ZONE, OTHER_ZONE = "us-east-1a", "us-east-1b"


def aws_client(endpoint: Endpoint, service: str) -> Any:
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return boto3.client(service, endpoint_url=endpoint.url, region_name=endpoint.region, **keys)


def make_landscape(endpoint: Endpoint) -> dict[str, str]:
    """Network, role and cluster that Karpenter asks for. Returns ids: subnet, group, image, role."""
    ec2, iam, eks = (aws_client(endpoint, service) for service in ("ec2", "iam", "eks"))
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    places = {"10.0.0.0/20": ZONE, "10.0.16.0/20": OTHER_ZONE}
    subnets = [ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=zone)["Subnet"]["SubnetId"] for block, zone in places.items()]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    trust = '{"Version": "2012-10-17", "Statement": []}'
    role = iam.create_role(RoleName="node", AssumeRolePolicyDocument=trust)["Role"]
    eks.create_cluster(
        name=CLUSTER, roleArn=role["Arn"], version="1.33", resourcesVpcConfig={"subnetIds": subnets, "securityGroupIds": [group]}
    )
    image = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0]["ImageId"]
    return {"subnet": subnets[0], "group": group, "image": image, "role": "node"}


def apply_definitions(node: Node, folder: Path) -> None:
    """Karpenter's custom resource definitions, from the module that its binary is built from, until the API server serves them.

    A Karpenter that starts before they are served never makes its indices.
    """
    crds = module_path(go_command(), folder, ModuleFile(module="github.com/aws/karpenter-provider-aws", path="pkg/apis/crds"))
    for path in sorted(crds.glob("*.yaml")):
        body = yaml.safe_load(path.read_text())
        node.api().apply(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{body['metadata']['name']}", body)
        for version in body["spec"]["versions"]:
            kind = f"/apis/{body['spec']['group']}/{version['name']}/{body['spec']['names']['plural']}"
            wait_for(f"list of {kind}", lambda kind=kind: _is_served(node, kind))


def _is_served(node: Node, kind: str) -> bool:
    try:
        node.api().get(kind)
    except ApiError:
        return False
    return True


def node_class(landscape: dict[str, str]) -> Json:
    spec = {
        "amiFamily": "AL2023",
        "amiSelectorTerms": [{"id": landscape["image"]}],
        "subnetSelectorTerms": [{"id": landscape["subnet"]}],
        "securityGroupSelectorTerms": [{"id": landscape["group"]}],
        "role": landscape["role"],
    }
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"}, "spec": spec}


def node_pool(labels: dict[str, str], taint: Json, startup_taint: Json) -> Json:
    only = [
        ("node.kubernetes.io/instance-type", "p5.48xlarge"),
        ("karpenter.sh/capacity-type", "on-demand"),
        ("kubernetes.io/arch", "amd64"),
    ]
    spec = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        "requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in only],
        "taints": [taint],
        "startupTaints": [startup_taint],
        "expireAfter": "Never",
    }
    pool = {
        "template": {"metadata": {"labels": labels}, "spec": spec},
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
    }
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": pool}


@contextmanager
def running(argv: list[str | Path], log: Path, environment: dict[str, str] | None = None) -> Generator[subprocess.Popen]:
    """A process that has ended when the block has."""
    with log.open("ab") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def controller_environment(node: Node, endpoint: Endpoint) -> dict[str, str]:
    return {
        **endpoint.environment,
        "KUBECONFIG": str(node.kubeconfig),
        "CLUSTER_NAME": CLUSTER,
        "CLUSTER_ENDPOINT": f"https://{node.node_ip}:6443",
        "SYSTEM_NAMESPACE": "kube-system",
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": str(free_port()),
        "HEALTH_PROBE_PORT": str(free_port()),
        # Pods are waited for this long before they are looked at together.
        "BATCH_IDLE_DURATION": "200ms",
        "BATCH_MAX_DURATION": "1s",
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
