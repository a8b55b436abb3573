"""Device plug-ins: agents that offer a node's devices as a resource."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pulumi
from pulumi_kubernetes.apps.v1 import DaemonSet, DaemonSetSpecArgs
from pulumi_kubernetes.core.v1 import (
    CapabilitiesArgs,
    ContainerArgs,
    EnvVarArgs,
    HostPathVolumeSourceArgs,
    PodSpecArgs,
    PodTemplateSpecArgs,
    ResourceRequirementsArgs,
    SecurityContextArgs,
    TolerationArgs,
    VolumeArgs,
    VolumeMountArgs,
)
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, ObjectMetaArgs

from infra import labels, versions
from infra.component import child_options, token

_NAMESPACE = "kube-system"
_KUBELET_PLUGINS = "/var/lib/kubelet/device-plugins"
_EFA_REPOSITORY = "eks/aws-efa-k8s-device-plugin"
# Account of the EKS image registry where a region does not use the common one.
_EKS_REGISTRY_ACCOUNT = "602401143452"
_EKS_REGISTRY_ACCOUNTS = {
    "af-south-1": "877085696533",
    "ap-east-1": "800184023465",
    "ap-south-2": "900889452093",
    "ap-southeast-3": "296578399912",
    "ap-southeast-4": "491585149902",
    "ca-west-1": "761377655185",
    "cn-north-1": "918309763551",
    "cn-northwest-1": "961992271922",
    "eu-central-2": "900612956339",
    "eu-south-1": "590381155156",
    "eu-south-2": "455263428931",
    "il-central-1": "066635153087",
    "me-central-1": "759879836304",
    "me-south-1": "558608220178",
    "us-gov-east-1": "151742754352",
    "us-gov-west-1": "013241004608",
}


@dataclass(frozen=True, kw_only=True)
class DevicePluginArgs:
    """A device plug-in."""

    resource: str
    """Resource it offers."""
    image: str
    """Its pinned image."""
    node_label: tuple[str, str]
    """Label of the nodes that have the devices."""
    host_paths: Sequence[str]
    """Folders of the node it needs, beside the kubelet's plug-in folder."""
    privileged: bool
    """Whether it has to be privileged to see its devices."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables."""
    after: Sequence[pulumi.Resource] = ()
    """What has to exist first."""


def nvidia_plugin(image: str | None, after: Sequence[pulumi.Resource]) -> DevicePluginArgs:
    """Return the NVIDIA device plug-in; `image` replaces the pinned one."""
    return DevicePluginArgs(
        resource=labels.GPU_RESOURCE,
        image=image or f"nvcr.io/nvidia/k8s-device-plugin:v{versions.NVIDIA_DEVICE_PLUGIN}",
        node_label=(labels.GPU_PRESENT, "true"),
        host_paths=(),
        privileged=False,
        # A node whose driver is not up yet should be retried, not crash-looped.
        env={"FAIL_ON_INIT_ERROR": "false", "PASS_DEVICE_SPECS": "false", "DEVICE_LIST_STRATEGY": "envvar"},
        after=after,
    )


def efa_plugin(region: str, image: str | None, after: Sequence[pulumi.Resource]) -> DevicePluginArgs:
    """Return the EFA device plug-in, from the EKS registry of `region`; `image` replaces the pinned one."""
    return DevicePluginArgs(
        resource=labels.EFA_RESOURCE,
        image=image or efa_image(region),
        node_label=(labels.EFA, "true"),
        # Without it the plug-in finds no device, and pods fall back to TCP.
        host_paths=("/dev/infiniband",),
        # It opens the devices themselves, as the published chart does.
        privileged=True,
        after=after,
    )


def efa_image(region: str) -> str:
    """Return the image of the EFA device plug-in in the EKS registry of `region`."""
    account = _EKS_REGISTRY_ACCOUNTS.get(region, _EKS_REGISTRY_ACCOUNT)
    suffix = ".cn" if region.startswith("cn-") else ""
    return f"{account}.dkr.ecr.{region}.amazonaws.com{suffix}/{_EFA_REPOSITORY}:{versions.EFA_DEVICE_PLUGIN}"


class DevicePlugin(pulumi.ComponentResource):
    """A DaemonSet that runs on the nodes with the devices, whatever their taints."""

    daemon_set_name: pulumi.Output[str]

    def __init__(self, name: str, args: DevicePluginArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("addons", "DevicePlugin"), name, {"resource": args.resource, "image": args.image}, opts)
        selector = {labels.APP_NAME: name}
        daemon_set = DaemonSet(
            name,
            metadata=ObjectMetaArgs(name=name, namespace=_NAMESPACE, labels=labels.object_labels(name)),
            spec=DaemonSetSpecArgs(
                selector=LabelSelectorArgs(match_labels=selector),
                template=PodTemplateSpecArgs(
                    metadata=ObjectMetaArgs(labels={**labels.object_labels(name), **selector}), spec=_pod(name, args)
                ),
            ),
            # It names no output of the nodes or of the network plug-in it runs with.
            opts=child_options(self, depends_on=args.after),
        )
        self.daemon_set_name = daemon_set.metadata.name.apply(lambda made: made or "")
        self.register_outputs({"daemon_set_name": self.daemon_set_name})


def _pod(name: str, args: DevicePluginArgs) -> PodSpecArgs:
    paths = {"plugins": _KUBELET_PLUGINS, **{path.rpartition("/")[2]: path for path in args.host_paths}}
    key, value = args.node_label
    # allowPrivilegeEscalation cannot be false with privileged.
    security = (
        SecurityContextArgs(privileged=True)
        if args.privileged
        else SecurityContextArgs(allow_privilege_escalation=False, capabilities=CapabilitiesArgs(drop=["ALL"]))
    )
    return PodSpecArgs(
        node_selector={key: value},
        tolerations=[
            TolerationArgs(key=found["key"], operator=found["operator"], effect=found["effect"]) for found in labels.agent_tolerations()
        ],
        priority_class_name="system-node-critical",
        host_network=args.privileged or None,
        containers=[
            ContainerArgs(
                name=name,
                image=args.image,
                env=[EnvVarArgs(name=variable, value=setting) for variable, setting in args.env.items()] or None,
                security_context=security,
                resources=ResourceRequirementsArgs(requests={"cpu": "10m", "memory": "20Mi"}, limits={"memory": "128Mi"}),
                volume_mounts=[VolumeMountArgs(name=volume, mount_path=path) for volume, path in paths.items()],
            )
        ],
        volumes=[VolumeArgs(name=volume, host_path=HostPathVolumeSourceArgs(path=path)) for volume, path in paths.items()],
    )
