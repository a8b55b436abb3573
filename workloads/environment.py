"""Environment of the ranks. What the launcher itself decides (rank, world size) is not here."""

from infra import labels
from workloads.plan import JobPlan
from workloads.spec import POD_IDENTITY_LINK

# Loopback, container bridges and the Pod Identity link carry nothing between nodes; NCCL takes these as prefixes.
_NO_INTERFACES = f"^lo,docker,veth,{POD_IDENTITY_LINK}"


def rank_environment(plan: JobPlan) -> dict[str, str]:
    """Return the environment that every rank gets, the job's own variables last."""
    variables = {
        "PYTHONUNBUFFERED": "1",
        # Each rank its share of the worker's cores: PyTorch's default is every core of the machine.
        "OMP_NUM_THREADS": str(max(1, plan.resources.cpu_millis // 1000 // plan.world.processes)),
    }
    if labels.GPU_RESOURCE in plan.resources.devices:
        variables["NCCL_SOCKET_IFNAME"] = _NO_INTERFACES
    if labels.EFA_RESOURCE in plan.resources.devices:
        variables["FI_PROVIDER"] = "efa"
        # Huge pages and fork do not go together, and data loaders fork; nor does a pod here ask for huge pages.
        variables["FI_EFA_USE_HUGE_PAGE"] = "0"
    return variables | dict(plan.spec.env)
