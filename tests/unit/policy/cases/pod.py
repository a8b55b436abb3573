"""What pods ask for."""

from tests.unit.policy import builders as b
from tests.unit.policy.case import invalid, valid

CASES = (
    valid("EFA06", b.mpi_job()),
    valid("EFA06", b.volcano_job()),
    valid("EFA06", b.mpi_job({f"{b.WORKER_CONTAINER}/env": [{"name": "FI_PROVIDER", "value": "efa"}]})),
    valid("EFA06", b.mpi_job({f"{b.WORKER}/replicas": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8}}})),
    invalid(
        "EFA06", b.mpi_job({f"{b.WORKER_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8}}}), says="asking no vpc.amazonaws.com/efa"
    ),
    invalid(
        "EFA06",
        b.volcano_job({f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 64}}}),
        says="at most 32",
    ),
    invalid(
        "EFA06",
        b.volcano_job(
            {
                f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 4}},
                f"{b.TASK_CONTAINER}/env": [{"name": "FI_PROVIDER", "value": "efa"}],
            }
        ),
        says="env[0] is FI_PROVIDER",
    ),
)
