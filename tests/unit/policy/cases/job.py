"""Multi-node jobs."""

from tests.unit.policy import builders as b
from tests.unit.policy.case import invalid, valid

CASES = (
    valid("MPI02", b.mpi_job()),
    valid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["/bin/sh", "-c", "exec mpirun -np 32 -N 8 python3 train.py"]})),
    valid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["deepspeed", "--hostfile", "/etc/mpi/hostfile", "train.py"]})),
    valid("MPI02", b.mpi_job({"spec/runLauncherAsWorker": True, b.LAUNCHER_COMMAND: ["mpirun", "-np", "40", "x"]})),
    invalid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "-np", "4", "x"]}), says="-np 32 (4 workers x 8 slots)"),
    invalid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "python3", "train.py"]}), says="without -np"),
    invalid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["bash", "-c", "mpirun -np 64 x"]}), says="is -np 64"),
    invalid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "-np", "32", "--map-by", "ppr:4:node", "x"]}), says="4 processes per node"),
    invalid("MPI02", b.mpi_job({"spec/slotsPerWorker": b.DELETE}), says="4 workers x 1 slots"),
    valid("MPI03", b.mpi_job()),
    valid("MPI03", b.mpi_job({"spec/slotsPerWorker": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {"cpu": "500m"}}})),
    invalid("MPI03", b.mpi_job({"spec/slotsPerWorker": b.DELETE}), says="1 (the default)"),
    invalid("MPI03", b.mpi_job({"spec/slotsPerWorker": 4}), says="slotsPerWorker is 4; allowed: 8"),
    invalid("MPI03", b.mpi_job({"spec/slotsPerWorker": 4, f"{b.WORKER_CONTAINER}/resources": {"limits": {"cpu": "2"}}}), says="at most 2"),
    invalid("MPI03", b.mpi_job({"spec/slotsPerWorker": 16}), says="slotsPerWorker is 16"),
    valid("VOL01", b.volcano_job()),
    valid("VOL01", b.volcano_job({"spec/minAvailable": b.DELETE})),
    valid("VOL01", b.volcano_job({"spec/minAvailable": 2, f"{b.TASK_CONTAINER}/command": ["torchrun", "--nnodes=2:4", "train.py"]})),
    valid("VOL01", b.mpi_job({"spec/launcherCreationPolicy": "AtStartup", "spec/runPolicy/schedulingPolicy/minAvailable": 5})),
    invalid("VOL01", b.volcano_job({"spec/minAvailable": 5}), says="sum of all tasks' replicas"),
    invalid("VOL01", b.volcano_job({"spec/minAvailable": 3}), says="every rank is needed"),
    invalid("VOL01", b.volcano_job({"spec/tasks/0/minAvailable": 6}), says="tasks[0].minAvailable is 6"),
    invalid("VOL01", b.volcano_job({"spec/schedulerName": "default-scheduler"}), says="volcano, because 4 pods"),
    invalid(
        "VOL01",
        b.mpi_job({"spec/runPolicy/schedulingPolicy/minAvailable": 5}),
        says="4 for 4 workers, because the launcher is only made once",
    ),
)
