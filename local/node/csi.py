"""The storage plug-ins of the node: one process per driver that stands in for a CSI driver of AWS."""

from local.node import layout
from local.node.api import KubernetesApi
from local.node.spec import DaemonSpec, Probe

DRIVERS = ("fsx.csi.aws.com", "efs.csi.aws.com")
"""Names under which volumes ask for them."""


def csi_drivers(node_name: str, inside: layout.Layout) -> tuple[DaemonSpec, ...]:
    """One daemon per driver; a volume is a folder below the node's `volumes`."""
    return tuple(_driver(name, node_name, inside) for name in DRIVERS)


def apply_csi_drivers(api: KubernetesApi) -> None:
    """Create or renew the object that each driver's add-on brings on AWS: volumes are mounted with no attaching before. Raises ApiError."""
    for name in DRIVERS:
        body = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": name},
            "spec": {"attachRequired": False, "volumeLifecycleModes": ["Persistent"]},
        }
        api.apply(f"/apis/storage.k8s.io/v1/csidrivers/{name}", body)


def _driver(name: str, node_name: str, inside: layout.Layout) -> DaemonSpec:
    socket = layout.KUBELET_ROOT / "plugins" / name / "csi.sock"
    argv = (
        str(layout.BIN / "csi-node"),
        f"--driver={name}",
        f"--endpoint={socket}",
        f"--registration-dir={layout.KUBELET_ROOT / 'plugins_registry'}",
        f"--volumes={inside.volumes}",
        f"--node-id={node_name}",
    )
    return DaemonSpec(name=f"csi-{name.partition('.')[0]}", argv=argv, probe=Probe(unix=str(socket)), after=("kubelet",))
