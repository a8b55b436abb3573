"""The storage plug-ins of the node: one process per driver that stands in for a CSI driver of AWS."""

from typing import Protocol

from local.node import layout
from local.node.api import ApiError, Json, KubernetesApi
from local.node.spec import DaemonSpec, Probe

DRIVERS = ("fsx.csi.aws.com", "efs.csi.aws.com")
"""Names under which volumes ask for them."""


CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


class Creator(Protocol):
    """What is needed of `KubernetesApi`."""

    def create(self, path: str, body: Json) -> Json: ...


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


def register_csi_node(cluster: Creator, node: Json) -> None:
    """Say that the drivers run on a simulated `node` (as the API server gave it): without it no scheduler puts a pod with a claim there.

    The object belongs to the node and goes with it. Raises ApiError.
    """
    name, uid = node["metadata"]["name"], node["metadata"].get("uid", "")
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]},
        "spec": {"drivers": [{"name": driver, "nodeID": name, "topologyKeys": []} for driver in DRIVERS]},
    }
    try:
        cluster.create(CSI_NODES, body)
    except ApiError as error:
        # The kubelet-like part of an earlier node of that name; it says the same.
        if error.status != 409:
            raise


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
