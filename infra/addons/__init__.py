"""What is installed in the cluster: device plug-ins, Volcano, MPI Operator, and the namespace of jobs."""

from infra.addons.device_plugin import DevicePlugin, DevicePluginArgs, efa_plugin, nvidia_plugin
from infra.addons.jobs_namespace import JobsNamespace, JobsNamespaceArgs
from infra.addons.mpi_operator import MpiOperator, MpiOperatorArgs
from infra.addons.volcano import Volcano, VolcanoArgs

__all__ = [
    "DevicePlugin",
    "DevicePluginArgs",
    "JobsNamespace",
    "JobsNamespaceArgs",
    "MpiOperator",
    "MpiOperatorArgs",
    "Volcano",
    "VolcanoArgs",
    "efa_plugin",
    "nvidia_plugin",
]
