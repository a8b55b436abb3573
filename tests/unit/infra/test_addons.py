"""Add-ons: agents run wherever their devices are, gangs are Volcano's, and a manifest is previewed object by object."""

import json

import pulumi
import pytest

from infra import labels, versions
from infra.addons import MpiOperator, MpiOperatorArgs
from infra.addons.device_plugin import efa_image
from infra.addons.manifest import read_manifest, type_token
from infra.addons.mpi_operator import GANG_ARGUMENT, schedule_gangs
from infra.addons.volcano import SCHEDULER_CONFIG, queue_spec
from infra.charts import PinnedChart, PinnedChartArgs, merge_values
from infra.settings import ManifestSettings
from infra.settings.jobs import QueueSettings
from tests.recording import record
from tests.unit.infra.builders import platform

pytestmark = pytest.mark.unit

DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
RELEASE = "kubernetes:helm.sh/v3:Release"
NAMESPACE = "kubernetes:core/v1:Namespace"

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: mpi}
spec:
  template:
    spec:
      containers: [{name: main, image: "op:1", args: [--lock-namespace=mpi]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mpijobs.kubeflow.org}
spec: {group: kubeflow.org}
---
apiVersion: v1
kind: Namespace
metadata: {name: mpi}
"""


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "operator.yaml"
    path.write_text(MANIFEST)
    return str(path)


@pytest.mark.parametrize(
    ("name", "label"), [("trainyard-nvidia-device-plugin", labels.GPU_PRESENT), ("trainyard-efa-device-plugin", labels.EFA)]
)
def test_device_plug_ins_run_on_the_nodes_with_the_devices_whatever_their_taints(name, label):
    pod = platform().one(DAEMON_SET, name).inputs["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {label: "true"}
    pools = platform().one("kubernetes:karpenter.sh/v1:NodePool").inputs["spec"]["template"]
    assert pools["metadata"]["labels"][label] == "true"
    assert {taint["key"] for taint in pools["spec"]["taints"]} <= {toleration["key"] for toleration in pod["tolerations"]}


def test_the_efa_plug_in_sees_the_devices():
    pod = platform().one(DAEMON_SET, "trainyard-efa-device-plugin").inputs["spec"]["template"]["spec"]
    assert "/dev/infiniband" in {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}


def test_the_nvidia_plug_in_is_not_privileged():
    container = platform().one(DAEMON_SET, "trainyard-nvidia-device-plugin").inputs["spec"]["template"]["spec"]["containers"][0]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert container["image"].endswith(f":v{versions.NVIDIA_DEVICE_PLUGIN}")


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-east-1", "602401143452.dkr.ecr.us-east-1.amazonaws.com/"),
        ("me-south-1", "558608220178.dkr.ecr.me-south-1.amazonaws.com/"),
        ("cn-north-1", "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn/"),
    ],
)
def test_the_efa_image_comes_from_the_region_s_own_registry(region, registry):
    assert efa_image(region) == f"{registry}eks/aws-efa-k8s-device-plugin:{versions.EFA_DEVICE_PLUGIN}"


def test_volcano_holds_no_gang_s_pods_back_from_karpenter():
    values = platform().one(RELEASE, "trainyard-volcano").inputs["values"]
    config = json.loads(values["custom"]["scheduler_config_override"])
    assert config == SCHEDULER_CONFIG
    plugins = {plugin["name"] for tier in config["tiers"] for plugin in tier["plugins"]}
    assert "enqueue" not in config["actions"]
    assert "gang" in plugins
    assert "overcommit" not in plugins


def test_volcano_s_namespace_goes_with_it():
    recording = platform()
    namespace = recording.one(NAMESPACE, "trainyard-volcano-namespace")
    assert recording.waits_for(recording.one(RELEASE, "trainyard-volcano"), namespace)


def test_the_queue_holds_what_the_pools_may_grow_to_unless_the_settings_say_otherwise():
    (queue,) = platform().of_type("kubernetes:scheduling.volcano.sh/v1beta1:Queue")
    assert queue.inputs["spec"]["capability"] == {labels.GPU_RESOURCE: "32"}
    stated = queue_spec(QueueSettings(capability={"cpu": "8"}), {"cpu": "1"})
    assert stated == {"weight": 1, "reclaimable": False, "capability": {"cpu": "8"}}


def operator(manifest, **kwargs):
    args = MpiOperatorArgs(settings=ManifestSettings(manifest=manifest, **kwargs), system_pool="system")
    return record(lambda: MpiOperator("op", args), resolved=False)


def test_a_manifest_file_is_previewed_object_by_object_in_the_order_it_can_be_made(manifest):
    recording = operator(manifest)
    deployment = recording.one("kubernetes:apps/v1:Deployment")
    role = recording.one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole")
    assert role.inputs["rules"][0]["resources"] == ["pods"], "fields beside spec are kept"
    for type_ in (NAMESPACE, "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"):
        assert recording.waits_for(deployment, recording.one(type_)), "the operator ends where its kind is missing"


def test_the_operator_asks_volcano_for_gangs_and_runs_on_system_nodes(manifest):
    pod = operator(manifest, image="mine:2").one("kubernetes:apps/v1:Deployment").inputs["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["--lock-namespace=mpi", GANG_ARGUMENT]
    assert pod["containers"][0]["image"] == "mine:2"
    assert pod["nodeSelector"] == labels.pool_selector("system")


def test_asking_for_gangs_twice_is_asking_once(manifest):
    args = MpiOperatorArgs(settings=ManifestSettings(manifest=manifest), system_pool="system")
    (deployment,) = [found for found in read_manifest(manifest, lambda found: found) if found["kind"] == "Deployment"]
    once = schedule_gangs(deployment, args)
    assert schedule_gangs(once, args) == once
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"] == ["--lock-namespace=mpi"], "the object read is left as it is"


def test_a_manifest_url_is_read_by_the_provider_and_changed_on_its_way():
    recording = operator("https://example.org/operator.yaml")
    file = recording.one("kubernetes:yaml/v2:ConfigFile")
    assert file.inputs["file"] == "https://example.org/operator.yaml"
    assert file.num_transforms == 1


def test_what_is_no_manifest_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "x.yaml").write_text("a: 1\n")
    with pytest.raises(ValueError, match=r"x\.yaml holds a document without apiVersion"):
        read_manifest(str(tmp_path / "x.yaml"), lambda found: found)


@pytest.mark.parametrize(
    ("api", "kind", "expected"),
    [("v1", "Namespace", "kubernetes:core/v1:Namespace"), ("apps/v1", "Deployment", "kubernetes:apps/v1:Deployment")],
)
def test_objects_have_the_sdk_s_types(api, kind, expected):
    assert type_token({"apiVersion": api, "kind": kind}) == expected


def chart(**kwargs):
    args = PinnedChartArgs(release_name="r", chart="c", version="1", namespace="n", repository="https://charts", **kwargs)
    return record(lambda: PinnedChart("r", args)).one(RELEASE).inputs


def test_a_published_chart_has_its_repository_and_version():
    inputs = chart()
    assert (inputs["chart"], inputs["version"], inputs["repositoryOpts"]) == ("c", "1", {"repo": "https://charts"})


def test_a_chart_folder_has_a_version_of_its_own():
    inputs = chart(override_chart="/charts/c")
    assert inputs["chart"] == "/charts/c"
    assert "version" not in inputs
    assert "repositoryOpts" not in inputs


def test_values_merge_map_by_map_and_replace_lists_whole():
    merged = merge_values({"a": {"b": 1, "c": [1, 2]}, "d": 1}, {"a": {"c": [3]}, "e": 2})
    assert merged == {"a": {"b": 1, "c": [3]}, "d": 1, "e": 2}


def test_outputs_in_values_stay_outputs():
    output = pulumi.Output
    merged = merge_values({"a": {"b": 1}}, {"a": {"q": output}})
    assert merged["a"]["q"] is output


def test_jobs_get_the_bucket_through_their_own_service_account():
    recording = platform()
    (association,) = [
        entry
        for entry in recording.of_type("aws:eks/podIdentityAssociation:PodIdentityAssociation")
        if entry.inputs["serviceAccount"] == "trainer"
    ]
    assert association.inputs["namespace"] == "training"
    (policy,) = [entry for entry in recording.of_type("aws:iam/rolePolicy:RolePolicy") if entry.name.endswith("-checkpoints")]
    assert "bucket/trainyard-checkpoints" in policy.inputs["policy"]


def test_the_jobs_namespace_refuses_privileged_pods():
    metadata = platform().one(NAMESPACE, "trainyard-jobs").inputs["metadata"]
    assert metadata["labels"][labels.POD_SECURITY_ENFORCE] == "baseline"
