"""The stand-in for the aws plug-in under the real engine: a stack's whole life, and what preview, refresh and import show."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.aws.emulator import Emulator
from local.progress import Progress
from local.toolchain.engine import engine_environment
from local.toolchain.selection import choose
from local.toolchain.tools import ENGINE, ensure
from tests.engine.pulumi_project import Project, ignore_sigint, until

pytestmark = pytest.mark.engine

SERVICES = ("ec2", "eks", "iam", "sts", "sqs", "events", "logs", "fsx", "efs", "s3", "kms", "ssm", "ecr")
HEAD = f"""
import json
import os

import pulumi
import pulumi_aws as aws

provider = aws.Provider(
    "aws",
    region="us-west-2",
    access_key="emulator",
    secret_key="emulator",
    endpoints=[aws.ProviderEndpointArgs(**dict.fromkeys({SERVICES}, os.environ["AWS_ENDPOINT_URL"]))],
    default_tags=aws.ProviderDefaultTagsArgs(tags={{"Project": "test"}}),
    skip_credentials_validation=True,
    skip_metadata_api_check=True,
    skip_requesting_account_id=True,
    s3_use_path_style=True,
)
on = pulumi.ResourceOptions(provider=provider)
settings = pulumi.Config().get_object("settings") or {{}}


def trust(*services, actions=("sts:AssumeRole",)):
    statement = {{"Effect": "Allow", "Principal": {{"Service": list(services)}}, "Action": list(actions)}}
    return json.dumps({{"Version": "2012-10-17", "Statement": [statement]}})
"""
PROGRAM = (
    HEAD
    + """
zones = aws.get_availability_zones_output(state="available", opts=pulumi.InvokeOutputOptions(provider=provider))
vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, tags={"Team": settings.get("team", "a")}, opts=on)
subnets = [
    aws.ec2.Subnet(f"net-{n}", vpc_id=vpc.id, cidr_block=f"10.0.{n}.0/24", availability_zone=zones.names[n], opts=on) for n in range(2)
]
igw = aws.ec2.InternetGateway("net", vpc_id=vpc.id, opts=on)
eip = aws.ec2.Eip("nat", domain="vpc", opts=on)
nat = aws.ec2.NatGateway("nat", allocation_id=eip.id, subnet_id=subnets[0].id, opts=on)
table = aws.ec2.RouteTable("private", vpc_id=vpc.id, opts=on)
aws.ec2.Route("out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", nat_gateway_id=nat.id, opts=on)
aws.ec2.RouteTableAssociation("private", route_table_id=table.id, subnet_id=subnets[1].id, opts=on)
aws.ec2.VpcEndpoint("s3", vpc_id=vpc.id, service_name="com.amazonaws.us-west-2.s3", route_table_ids=[table.id], opts=on)
group = aws.ec2.SecurityGroup("efa", vpc_id=vpc.id, description="between nodes", opts=on)
for kind in ("ingress", "egress"):
    aws.ec2.SecurityGroupRule(
        kind, type=kind, security_group_id=group.id, protocol="-1", from_port=0, to_port=0, self=True, opts=on
    )
aws.vpc.SecurityGroupIngressRule(
    "ssh", security_group_id=group.id, ip_protocol="tcp", from_port=22, to_port=22, cidr_ipv4="10.0.0.0/16", opts=on
)
placement = aws.ec2.PlacementGroup("pack", strategy=settings.get("strategy", "cluster"), opts=on)
template = aws.ec2.LaunchTemplate(
    "nodes",
    instance_type=settings.get("instanceType", "p5.48xlarge"),
    placement=aws.ec2.LaunchTemplatePlacementArgs(group_name=placement.name),
    metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(http_tokens="required", http_put_response_hop_limit=1),
    opts=on,
)
lustre = aws.fsx.LustreFileSystem(
    "scratch",
    subnet_ids=subnets[0].id,
    security_group_ids=[group.id],
    deployment_type="PERSISTENT_2",
    storage_capacity=1200,
    per_unit_storage_throughput=settings.get("throughput", 250),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[]),
)
shared = aws.efs.FileSystem("home", encrypted=True, opts=on)
targets = [
    aws.efs.MountTarget(f"home-{n}", file_system_id=shared.id, subnet_id=subnet.id, security_groups=[group.id], opts=on)
    for n, subnet in enumerate(subnets)
]
aws.efs.AccessPoint(
    "team",
    file_system_id=shared.id,
    posix_user=aws.efs.AccessPointPosixUserArgs(uid=1000, gid=1000),
    root_directory=aws.efs.AccessPointRootDirectoryArgs(path="/team"),
    opts=on,
)
bucket = aws.s3.Bucket("Checkpoints", force_destroy=True, opts=on)
versioning = aws.s3.BucketVersioning(
    "checkpoints",
    bucket=bucket.id,
    versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
    opts=on,
)
aws.s3.BucketPublicAccessBlock("checkpoints", bucket=bucket.id, block_public_acls=True, block_public_policy=True, opts=on)
queue = aws.sqs.Queue("interruptions", message_retention_seconds=settings.get("retention", 300), opts=on)
rule = aws.cloudwatch.EventRule("spot", event_pattern=json.dumps({"source": ["aws.ec2"]}), opts=on)
aws.cloudwatch.EventTarget("spot", rule=rule.name, arn=queue.arn, opts=on)
node_role = aws.iam.Role("node", assume_role_policy=trust("ec2.amazonaws.com"), opts=on)
cluster_role = aws.iam.Role("cluster", assume_role_policy=trust("eks.amazonaws.com"), opts=on)
pod_role = aws.iam.Role("pod", assume_role_policy=trust("pods.eks.amazonaws.com", actions=("sts:AssumeRole", "sts:TagSession")), opts=on)
document = aws.iam.get_policy_document_output(
    statements=[aws.iam.GetPolicyDocumentStatementArgs(actions=["s3:GetObject"], resources=[bucket.arn])],
    opts=pulumi.InvokeOutputOptions(provider=provider),
)
policy = aws.iam.Policy("read", policy=document.json, opts=on)
aws.iam.RolePolicyAttachment("pod-read", role=pod_role.name, policy_arn=policy.arn, opts=on)
aws.iam.InstanceProfile("node", role=node_role.name, opts=on)
cluster = aws.eks.Cluster(
    "c",
    role_arn=cluster_role.arn,
    version="1.36",
    vpc_config=aws.eks.ClusterVpcConfigArgs(subnet_ids=[subnet.id for subnet in subnets], endpoint_private_access=True),
    access_config=aws.eks.ClusterAccessConfigArgs(authentication_mode="API", bootstrap_cluster_creator_admin_permissions=False),
    opts=on,
)
aws.eks.Addon("cni", cluster_name=cluster.name, addon_name="vpc-cni", opts=on)
aws.eks.PodIdentityAssociation(
    "trainer", cluster_name=cluster.name, namespace="training", service_account="trainer", role_arn=pod_role.arn, opts=on
)
aws.eks.AccessEntry("nodes", cluster_name=cluster.name, principal_arn=node_role.arn, type="EC2_LINUX", opts=on)
token = aws.ssm.Parameter("token", type="SecureString", value=pulumi.Config().require_secret("token"), opts=on)
key = aws.kms.Key("key", description="data", deletion_window_in_days=7, opts=on)
aws.kms.Alias("key", target_key_id=key.key_id, opts=on)
pulumi.export("group", group.name)
pulumi.export("queue", queue.url)
pulumi.export("efs", shared.id)
pulumi.export("target", targets[1].id)
"""
)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    emulator = Emulator(tmp_path_factory.mktemp("aws"), region="us-west-2")
    emulator.start()
    yield emulator
    emulator.stop()


@pytest.fixture
def environment(emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("TRAINYARD_STATE", str(tmp_path / "state"))
    ensure([ENGINE], Progress(tmp_path / "build.log", total=0))
    if choose("pulumi-resource-aws").source != "stand-in":
        pytest.skip("the genuine aws plug-in is installed")
    return engine_environment() | emulator.start().environment


def client(emulator: Emulator, service: str) -> Any:
    return boto3.client(
        service, endpoint_url=emulator.endpoint, region_name="us-west-2", aws_access_key_id="test", aws_secret_access_key="test"
    )


def steps(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """The steps of a `--json` preview by type and name, without those that change nothing."""
    assert done.returncode == 0, done.stdout + done.stderr
    found = {
        f"{step['urn'].split('::')[2].rpartition(':')[2]} {step['urn'].rpartition('::')[2]}": step
        for step in json.loads(done.stdout)["steps"]
    }
    return {name: step for name, step in found.items() if step["op"] not in ("same", "read")}


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def resources(project: Project) -> list[dict[str, Any]]:
    state = json.loads(project.pulumi("stack", "export").stdout)["deployment"].get("resources", [])
    return [one for one in state if one["type"].startswith("aws:")]


def set_up(project: Project, **settings: Any) -> None:
    project.pulumi("config", "set", "--secret", "token", "s3same")
    for key, value in settings.items():
        project.pulumi("config", "set", "--path", f"settings.{key}", str(value))


def test_a_stack_comes_up_changes_shows_drift_and_goes(environment: dict[str, str], emulator: Emulator, tmp_path: Path) -> None:
    project = Project(tmp_path / "project", environment, PROGRAM)
    set_up(project)
    plan = steps(project.pulumi("preview", "--json"))
    assert {step["op"] for step in plan.values()} == {"create"}
    succeeded(project.pulumi("up", "--yes", "--skip-preview"))
    assert len(resources(project)) >= 40
    shown = succeeded(project.pulumi("preview", "--expect-no-changes", "--refresh", "--diff"))
    assert "s3same" not in shown + project.pulumi("stack", "export").stdout
    _changes_in_place(project)
    _replaces(project)
    _sees_drift(project, emulator)
    succeeded(project.pulumi("destroy", "--yes", "--skip-preview"))
    assert resources(project) == []
    _nothing_is_left(emulator)


def _changes_in_place(project: Project) -> None:
    set_up(project, team="b", retention=600, instanceType="p4d.24xlarge", throughput=500)
    changed = steps(project.pulumi("preview", "--json"))
    assert {name: step["op"] for name, step in changed.items()} == {
        "Vpc net": "update",
        "Queue interruptions": "update",
        "LaunchTemplate nodes": "update",
        "LustreFileSystem scratch": "update",
    }
    assert set(changed["Vpc net"]["detailedDiff"]) == {"tags.Team", "tagsAll.Team"}
    assert set(changed["LustreFileSystem scratch"]["detailedDiff"]) == {"perUnitStorageThroughput"}
    succeeded(project.pulumi("up", "--yes", "--skip-preview"))


def _replaces(project: Project) -> None:
    set_up(project, strategy="spread")
    changed = steps(project.pulumi("preview", "--json"))
    assert {name.partition(" ")[0] for name in changed} == {"PlacementGroup", "LaunchTemplate"}
    assert changed["PlacementGroup pack"]["op"] == "replace"
    assert changed["PlacementGroup pack"]["replaceReasons"] == ["strategy"]
    # Its name is an automatic one and changes with it, which the template follows in place.
    assert changed["LaunchTemplate nodes"]["op"] == "update"
    succeeded(project.pulumi("up", "--yes", "--skip-preview"))


def _sees_drift(project: Project, emulator: Emulator) -> None:
    outputs = json.loads(project.pulumi("stack", "output", "--json").stdout)
    client(emulator, "sqs").set_queue_attributes(QueueUrl=outputs["queue"], Attributes={"MessageRetentionPeriod": "60"})
    client(emulator, "efs").delete_mount_target(MountTargetId=outputs["target"])
    seen = steps(project.pulumi("refresh", "--preview-only", "--json"))
    seen = {name: step for name, step in seen.items() if step.get("detailedDiff") or step["op"] == "delete"}
    assert set(seen) == {"Queue interruptions", "MountTarget home-1"}, "drift that nobody made"
    assert set(seen["Queue interruptions"]["detailedDiff"]) == {"messageRetentionSeconds"}
    assert seen["MountTarget home-1"]["op"] == "delete"
    succeeded(project.pulumi("refresh", "--yes", "--skip-preview"))
    mended = steps(project.pulumi("preview", "--json"))
    assert {name: step["op"] for name, step in mended.items()} == {"Queue interruptions": "update", "MountTarget home-1": "create"}
    succeeded(project.pulumi("up", "--yes", "--skip-preview"))


def _nothing_is_left(emulator: Emulator) -> None:
    ec2 = client(emulator, "ec2")
    assert [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]] == []
    assert ec2.describe_placement_groups()["PlacementGroups"] == []
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert client(emulator, "efs").describe_file_systems()["FileSystems"] == []
    assert client(emulator, "fsx").describe_file_systems()["FileSystems"] == []
    assert client(emulator, "s3").list_buckets()["Buckets"] == []
    assert client(emulator, "eks").list_clusters()["clusters"] == []
    assert client(emulator, "sqs").list_queues().get("QueueUrls", []) == []
    assert client(emulator, "events").list_rules()["Rules"] == []


def test_what_is_there_already_can_be_imported(environment: dict[str, str], emulator: Emulator, tmp_path: Path) -> None:
    vpc = client(emulator, "ec2").create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    program = HEAD + f'aws.ec2.Vpc("old", cidr_block="10.9.0.0/16", opts=pulumi.ResourceOptions(provider=provider, import_="{vpc}"))\n'
    project = Project(tmp_path / "project", environment, program)
    preview = json.loads(succeeded(project.pulumi("preview", "--json")))
    # The second step adds the provider's default tags.
    assert [step["op"] for step in preview["steps"] if step["urn"].endswith("::old")] == ["import", "update"]
    succeeded(project.pulumi("up", "--yes", "--skip-preview"))
    succeeded(project.pulumi("up", "--yes", "--skip-preview"))
    succeeded(project.pulumi("preview", "--expect-no-changes", "--refresh"))
    succeeded(project.pulumi("destroy", "--yes", "--skip-preview"))
    assert [one for one in client(emulator, "ec2").describe_vpcs()["Vpcs"] if one["VpcId"] == vpc] == []


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ('aws.fsx.LustreFileSystem("x", subnet_ids="s", storage_capacity=1200, deployment_type="PERSISTENT_3", opts=on)', "deploymentType"),
        ('aws.ec2.Instance("x", ami="ami-1", instance_type="m7i.large", opts=on)', "aws:ec2/instance:Instance"),
        ('aws.s3.Bucket("x", acl="private", opts=on)', "acl"),
    ],
)
def test_a_wrong_declaration_fails_at_preview_by_name(environment: dict[str, str], tmp_path: Path, declared: str, named: str) -> None:
    preview = Project(tmp_path / "project", environment, HEAD + declared).pulumi("preview")
    shown = preview.stdout + preview.stderr
    assert preview.returncode != 0
    assert named in shown
    assert "Traceback" not in shown


def test_an_endpoint_beyond_this_machine_is_refused(environment: dict[str, str], tmp_path: Path) -> None:
    environment = environment | {"AWS_ENDPOINT_URL": "https://ec2.us-west-2.amazonaws.com"}
    preview = Project(tmp_path / "project", environment, HEAD + 'aws.ec2.Vpc("x", cidr_block="10.0.0.0/16", opts=on)').pulumi("preview")
    shown = preview.stdout + preview.stderr
    assert preview.returncode != 0
    assert "loopback" in shown


PLUGIN = [sys.executable, "-m", "local.plugins.aws", "127.0.0.1:1"]


def _started(preexec: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(PLUGIN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=preexec)
    assert process.stdout is not None
    assert int(process.stdout.readline()) > 0
    return process


def test_the_plugin_ends_on_sigint_even_if_it_was_ignored_when_it_started() -> None:
    process = _started(ignore_sigint)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=3) == 0


def test_the_plugin_ends_when_the_engine_closes_its_side() -> None:
    process = _started()
    assert process.stdin is not None
    process.stdin.close()
    assert until(lambda: process.poll() is not None, seconds=3)
