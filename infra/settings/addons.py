"""Settings of what is installed in the cluster."""

from typing import Any

from pydantic import Field

from infra import versions
from infra.settings.base import Settings


class AddonSettings(Settings):
    """A device plug-in."""

    enabled: bool = True
    """Whether it is installed."""
    image: str | None = Field(default=None, pattern=r"^[^\s:]+(:[0-9]+)?(/[^\s:]+)*(:[A-Za-z0-9._-]+|@sha256:[0-9a-f]{64})$")
    """Image that replaces the pinned one, with its tag or digest."""


class ChartSettings(Settings):
    """A Helm chart."""

    enabled: bool = True
    """Whether it is installed."""
    version: str | None = None
    """Chart version that replaces the pinned one; not with a folder as chart, which has its own."""
    chart: str | None = None
    """Chart that replaces the published one: a folder (starts with / or ./) or an oci:// reference."""
    values: dict[str, Any] = Field(default_factory=dict)
    """Chart values, merged over ours key by key."""
    timeout_seconds: int = Field(default=600, ge=30, le=3600)
    """How long its objects may take to become ready."""


class KarpenterSettings(ChartSettings):
    """Karpenter: it makes and removes the nodes of training pools."""

    crd_chart: str | None = None
    """Chart that replaces the published one of the CRDs."""
    replicas: int = Field(default=2, ge=1, le=5)
    """Controller pods; each needs a system node of its own."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables added to the controller."""
    namespace: str = "kube-system"
    """Namespace of the controller."""


class VolcanoSettings(ChartSettings):
    """Volcano: it places gangs."""

    admission: bool = True
    """Whether its admission webhook runs. Its certificate is made by a Job of the chart, once, not on each render."""
    namespace: str = "volcano-system"
    """Namespace of its controllers."""


class ManifestSettings(Settings):
    """The MPI Operator, installed from its release manifest."""

    enabled: bool = True
    """Whether it is installed."""
    manifest: str = f"https://raw.githubusercontent.com/kubeflow/mpi-operator/v{versions.MPI_OPERATOR}/deploy/v2beta1/mpi-operator.yaml"
    """The manifest: a file (starts with / or ./) or an https:// URL."""
    image: str | None = None
    """Image that replaces the manifest's, with its tag or digest."""


class AddonsSettings(Settings):
    """What is installed in the cluster."""

    karpenter: KarpenterSettings = KarpenterSettings()
    """Node provisioning; pools need it."""
    volcano: VolcanoSettings = VolcanoSettings()
    """Gang scheduling; training jobs need it."""
    mpi_operator: ManifestSettings = ManifestSettings()
    """MPIJobs."""
    nvidia_device_plugin: AddonSettings = AddonSettings()
    """GPUs as a resource; pools with NVIDIA devices need it."""
    efa_device_plugin: AddonSettings = AddonSettings()
    """EFA interfaces as a resource; pools with EFA need it."""
