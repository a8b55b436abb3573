"""The stand-in for the eks component plug-in under the real engine: what it makes, what it refuses, and how its process ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.aws.emulator import Emulator
from local.paths import REPOSITORY
from local.plugins.eks.arguments import SUPPORTED
from local.progress import Progress
from local.toolchain.engine import engine_environment
from local.toolchain.selection import choose
from local.toolchain.tools import ENGINE, ensure
from tests.engine.pulumi_project import Project, ignore_sigint, until

pytestmark = pytest.mark.engine

HEAD = """
import os

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

services = ("ec2", "eks", "iam", "sts")
provider = aws.Provider(
    "aws",
    region="us-east-1",
    access_key="emulator",
    secret_key="emulator",
    endpoints=[aws.ProviderEndpointArgs(**dict.fromkeys(services, os.environ["AWS_ENDPOINT_URL"]))],
    skip_credentials_validation=True,
    skip_metadata_api_check=True,
    skip_requesting_account_id=True,
)
on_aws = pulumi.ResourceOptions(provider=provider)
vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", opts=on_aws)
subnets = [
    aws.ec2.Subnet(f"subnet-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{number}.0/24", availability_zone=f"us-east-1{zone}", opts=on_aws)
    for number, zone in enumerate("ab")
]
network = {"vpc_id": vpc.id, "private_subnet_ids": [subnet.id for subnet in subnets]}
options = pulumi.ResourceOptions(providers=[provider])
"""
# The component with its defaults, and one administrator.
DEFAULTS = (
    HEAD
    + """
administrator = eks.AccessEntryArgs(
    principal_arn="arn:aws:iam::123456789012:role/administrator",
    access_policies={
        "full": eks.AccessPolicyAssociationArgs(
            policy_arn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
            access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
        )
    },
)
eks.Cluster(
    "c",
    authentication_mode=eks.AuthenticationMode.API,
    skip_default_node_group=True,
    version="1.36",
    endpoint_private_access=True,
    endpoint_public_access=False,
    access_entries={"admin": administrator},
    opts=options,
    **network,
)
"""
)
# The arguments with which everything but role and control plane is switched off.
BARE = (
    HEAD
    + """
cluster = eks.Cluster(
    "c",
    name="bare",
    authentication_mode=eks.AuthenticationMode.API,
    skip_default_node_group=True,
    skip_default_security_groups=True,
    bootstrap_self_managed_addons=False,
    create_oidc_provider=False,
    use_default_vpc_cni=True,
    kube_proxy_addon_options=eks.KubeProxyAddonOptionsArgs(enabled=False),
    coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
    version="1.36",
    opts=options,
    **network,
)
pulumi.export("name", cluster.eks_cluster.apply(lambda made: made.name))
pulumi.export("arn", cluster.core.apply(lambda core: core.cluster).apply(lambda made: made.arn))
pulumi.export("kubeconfig", cluster.kubeconfig_json)
pulumi.export("issuer", cluster.oidc_issuer)
"""
)

# Type, name, parent: what pulumi-eks of 2026-08 made for the same arguments.
SHAPE = {
    ("eks:index:Cluster", "c", "tiny-test"),
    ("eks:index:ServiceRole", "c-eksRole", "c"),
    ("aws:iam/role:Role", "c-eksRole-role", "c-eksRole"),
    ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "c-eksRole-4b490823", "c-eksRole"),
    ("aws:ec2/securityGroup:SecurityGroup", "c-eksClusterSecurityGroup", "c"),
    ("aws:ec2/securityGroupRule:SecurityGroupRule", "c-eksClusterInternetEgressRule", "c"),
    ("aws:eks/cluster:Cluster", "c-eksCluster", "c"),
    ("pulumi:providers:kubernetes", "c-eks-k8s", "c"),
    ("aws:eks/accessEntry:AccessEntry", "c-admin", "c"),
    ("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "c-admin-full", "c-admin"),
    ("aws:eks/addon:Addon", "c-kube-proxy", "c"),
    ("eks:index:VpcCniAddon", "c-vpc-cni", "c"),
    ("aws:eks/addon:Addon", "c-vpc-cni", "c-vpc-cni"),
    ("aws:ec2/securityGroup:SecurityGroup", "c-nodeSecurityGroup", "c"),
    ("aws:ec2/securityGroupRule:SecurityGroupRule", "c-eksNodeIngressRule", "c"),
    ("aws:ec2/securityGroupRule:SecurityGroupRule", "c-eksNodeClusterIngressRule", "c"),
    ("aws:ec2/securityGroupRule:SecurityGroupRule", "c-eksExtApiServerClusterIngressRule", "c"),
    ("aws:ec2/securityGroupRule:SecurityGroupRule", "c-eksNodeInternetEgressRule", "c"),
    ("aws:ec2/securityGroupRule:SecurityGroupRule", "c-eksClusterIngressRule", "c"),
}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    emulator = Emulator(tmp_path_factory.mktemp("aws"))
    emulator.start()
    yield emulator
    emulator.stop()


@pytest.fixture
def environment(emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("TRAINYARD_STATE", str(tmp_path / "state"))
    ensure([ENGINE], Progress(tmp_path / "build.log", total=0))
    for name in ("pulumi-resource-eks", "pulumi-resource-aws"):
        if choose(name).source != "stand-in":
            pytest.skip(f"the genuine {name} is installed")
    return engine_environment() | emulator.start().environment


def name_of(urn: str) -> str:
    return urn.rpartition("::")[2]


def planned(project: Project) -> dict[tuple[str, str], dict]:
    """What a preview would make: type and name -> state."""
    preview = project.pulumi("preview", "--json")
    assert preview.returncode == 0, preview.stdout + preview.stderr
    states = [step["newState"] for step in json.loads(preview.stdout)["steps"]]
    return {(state["type"], name_of(state["urn"])): state for state in states}


def test_the_component_makes_what_the_genuine_one_makes(environment: dict[str, str], tmp_path: Path) -> None:
    states = planned(Project(tmp_path / "project", environment, DEFAULTS))
    made = {(kind, name, name_of(state.get("parent", ""))) for (kind, name), state in states.items() if name.startswith("c")}
    assert made == SHAPE
    control_plane = states["aws:eks/cluster:Cluster", "c-eksCluster"]
    awaited = {name_of(urn) for urn in control_plane["dependencies"]}
    assert awaited >= {"c-eksRole-role", "c-eksRole-4b490823", "c-eksClusterSecurityGroup"}
    assert control_plane["inputs"]["accessConfig"] == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}
    assert control_plane["inputs"]["vpcConfig"]["endpointPublicAccess"] is False
    providers = {state["provider"] for (kind, _), state in states.items() if kind.startswith("aws:")}
    assert len(providers) == 1, "a child uses another provider than the one the program gave"


def test_a_cluster_comes_up_stays_unchanged_and_goes(environment: dict[str, str], tmp_path: Path) -> None:
    project = Project(tmp_path / "project", environment, BARE)
    up = project.pulumi("up", "--yes")
    assert up.returncode == 0, up.stdout + up.stderr
    outputs = json.loads(project.pulumi("stack", "output", "--json").stdout)
    assert outputs["name"] == "bare"
    assert outputs["arn"].endswith(":cluster/bare")
    assert "--cluster-name" in json.loads(outputs["kubeconfig"])["users"][0]["user"]["exec"]["args"]
    assert outputs["issuer"].startswith("oidc.eks.")
    again = project.pulumi("preview", "--expect-no-changes")
    assert again.returncode == 0, again.stdout + again.stderr
    down = project.pulumi("destroy", "--yes")
    assert down.returncode == 0, down.stdout + down.stderr
    assert json.loads(project.pulumi("stack", "export").stdout)["deployment"].get("resources", []) == []


def test_an_argument_that_the_stand_in_lacks_is_named_without_a_trace(environment: dict[str, str], tmp_path: Path) -> None:
    project = Project(tmp_path / "project", environment, BARE.replace('name="bare",', 'name="bare", fargate=True,'))
    preview = project.pulumi("preview")
    shown = preview.stdout + preview.stderr
    assert preview.returncode != 0
    refusal = (
        "property fargate with value true has a problem: the stand-in for eks.Cluster does not support it; supported are accessEntries"
    )
    assert refusal in shown
    assert "local/plugins/eks" not in shown


def test_every_argument_that_is_supported_is_one_of_the_genuine_component() -> None:
    from pulumi_eks.cluster import ClusterArgs

    genuine = {getattr(value.fget, "_pulumi_name", name) for name, value in vars(ClusterArgs).items() if isinstance(value, property)}
    assert genuine >= SUPPORTED


# How the process of a stand-in ends. No engine listens at this address; the plug-in only calls it when it constructs.
PLUGIN = [sys.executable, "-P", "-m", "local.toolchain.standin", "local.plugins.eks", "127.0.0.1:1"]


def test_a_stand_in_ends_on_sigint_even_if_it_was_started_with_sigint_ignored() -> None:
    plugin = subprocess.Popen(
        PLUGIN,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=ignore_sigint,
    )
    assert plugin.stdout is not None
    assert int(plugin.stdout.readline()) > 0
    plugin.send_signal(signal.SIGINT)
    _, complaint = plugin.communicate(timeout=5)
    assert (plugin.returncode, complaint) == (0, "")


def test_a_stand_in_ends_when_what_started_it_was_killed() -> None:
    script = f"import subprocess, sys; child = subprocess.Popen({PLUGIN!r}); print(child.pid, flush=True); child.wait()"
    parent = subprocess.Popen(
        [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    plugin = Path("/proc") / parent.stdout.readline().strip()
    assert int(parent.stdout.readline()) > 0
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert until(lambda: not plugin.exists(), seconds=5)
