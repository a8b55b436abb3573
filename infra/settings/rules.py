"""Rules between sections of the settings: what one model alone cannot know."""

from collections.abc import Iterator
from pathlib import Path

from infra import catalogue
from infra.component import PACKAGE
from infra.settings.errors import Fault
from infra.settings.model import PlatformSettings


def broken_rules(settings: PlatformSettings) -> list[Fault]:
    """Return a fault for every rule between sections that the settings break."""
    rules = (_zones, _pool_names, _pool_zones, _pool_addons, _karpenter, _gang, _lustre, _claims, _files)
    return [fault for rule in rules for fault in rule(settings)]


def _fault(path: str, value: object, message: str) -> Fault:
    return Fault(path=f"{PACKAGE}:{path}", value=value, message=message)


def _zones(settings: PlatformSettings) -> Iterator[Fault]:
    for index, zone in enumerate(settings.network.zones):
        if zone[:-1] != settings.aws.region:
            example = f"{settings.aws.region}a"
            yield _fault(f"network.zones[{index}]", zone, f"is not in region {settings.aws.region}; for instance {example}")


def _pool_names(settings: PlatformSettings) -> Iterator[Fault]:
    seen = {settings.cluster.system_nodes.name: "cluster.systemNodes.name"}
    for index, pool in enumerate(settings.pools):
        if pool.name in seen:
            yield _fault(f"pools[{index}].name", pool.name, f"is also {seen[pool.name]}; pools need names of their own")
        seen[pool.name] = f"pools[{index}].name"


def _pool_zones(settings: PlatformSettings) -> Iterator[Fault]:
    for index, pool in enumerate(settings.pools):
        if pool.zone and pool.zone not in settings.network.zones:
            allowed = ", ".join(settings.network.zones)
            yield _fault(f"pools[{index}].zone", pool.zone, f"has no subnet; allowed (network.zones): {allowed}")


def _pool_addons(settings: PlatformSettings) -> Iterator[Fault]:
    addons = settings.addons
    for index, pool in enumerate(settings.pools):
        path = f"pools[{index}].instanceType"
        accelerator = catalogue.require(pool.instance_type).accelerator
        if accelerator and accelerator.kind == "neuron":
            yield _fault(
                path, pool.instance_type, "needs the Neuron device plug-in, which this platform does not install; choose a GPU type"
            )
        if accelerator and accelerator.kind == "nvidia" and not addons.nvidia_device_plugin.enabled:
            yield _fault(path, pool.instance_type, "has NVIDIA devices: set addons.nvidiaDevicePlugin.enabled to true")
        if pool.efa and not addons.efa_device_plugin.enabled:
            yield _fault(f"pools[{index}].efa", True, "needs addons.efaDevicePlugin.enabled to be true (rule EFA07)")


def _karpenter(settings: PlatformSettings) -> Iterator[Fault]:
    karpenter, nodes = settings.addons.karpenter, settings.cluster.system_nodes
    if settings.pools and not karpenter.enabled:
        yield _fault("addons.karpenter.enabled", False, "pools are made by Karpenter: enable it or remove the pools")
    if karpenter.enabled and karpenter.replicas > nodes.min_nodes:
        yield _fault(
            "addons.karpenter.replicas",
            karpenter.replicas,
            f"each replica needs a system node of its own; at most cluster.systemNodes.minNodes ({nodes.min_nodes})",
        )


def _gang(settings: PlatformSettings) -> Iterator[Fault]:
    if settings.addons.mpi_operator.enabled and not settings.addons.volcano.enabled:
        yield _fault("addons.volcano.enabled", False, "MPIJobs are placed as gangs by Volcano: enable it or disable addons.mpiOperator")


def _lustre(settings: PlatformSettings) -> Iterator[Fault]:
    lustre = settings.storage.lustre
    if lustre is None:
        return
    if lustre.zone not in settings.network.zones:
        allowed = ", ".join(settings.network.zones)
        yield _fault("storage.lustre.zone", lustre.zone, f"has no subnet; allowed (network.zones): {allowed}")
    pinned = sorted({pool.zone for pool in settings.pools if pool.zone})
    if pinned and lustre.zone not in pinned:
        yield _fault("storage.lustre.zone", lustre.zone, f"no pool is there; put it in a pool's zone: {', '.join(pinned)} (rule FSX10)")


def _claims(settings: PlatformSettings) -> Iterator[Fault]:
    lustre, efs = settings.storage.lustre, settings.storage.efs
    for index, point in enumerate(efs.access_points if efs else ()):
        if lustre and point.name == lustre.claim:
            yield _fault(
                f"storage.efs.accessPoints[{index}].name", point.name, "is also storage.lustre.claim; claims need names of their own"
            )


def _files(settings: PlatformSettings) -> Iterator[Fault]:
    addons = settings.addons
    files = {
        "kubernetes.kubeconfig": settings.kubernetes.kubeconfig,
        "addons.karpenter.chart": addons.karpenter.chart,
        "addons.karpenter.crdChart": addons.karpenter.crd_chart,
        "addons.volcano.chart": addons.volcano.chart,
        "addons.mpiOperator.manifest": addons.mpi_operator.manifest,
    }
    for path, value in files.items():
        if value is None or (path != "kubernetes.kubeconfig" and not is_file_path(value)):
            continue
        if not Path(value).expanduser().exists():
            yield _fault(path, value, "there is no such file or folder on this machine")


def is_file_path(reference: str) -> bool:
    """Return whether a chart or manifest reference is a path rather than a URL or a published name."""
    return reference.startswith(("/", "./", "../", "~/"))
