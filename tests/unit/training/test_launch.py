"""The launch contract: every launcher's variables give the same place, and half a contract is refused by name."""

import pytest

from training.launch import LaunchError, first_host, read_launch, refuse_other_local_rank, tasks_on_node

pytestmark = pytest.mark.unit

CONTRACT = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "pod-0.job", "MASTER_PORT": "1234"}
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "MASTER_ADDR": "pod-0.job",
    "MASTER_PORT": "1234",
}
SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NODELIST": "gpu[07-10]",
    "SLURM_NTASKS": "8",
    "MASTER_PORT": "1234",
}
ADDRESS = {"MASTER_ADDR": "pod-0.job", "MASTER_PORT": "1234"}
PMI = {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", **ADDRESS}
MVAPICH = {
    "MV2_COMM_WORLD_RANK": "3",
    "MV2_COMM_WORLD_SIZE": "8",
    "MV2_COMM_WORLD_LOCAL_RANK": "1",
    "MV2_COMM_WORLD_LOCAL_SIZE": "2",
    **ADDRESS,
}
# One rank in each pod: the index is the rank, and the rank is alone on its host.
INDEXED = {"JOB_COMPLETION_INDEX": "3", "WORLD_SIZE": "8", **ADDRESS}


@pytest.mark.parametrize(
    ("environ", "launcher", "address"),
    [
        (CONTRACT, "environment", "pod-0.job"),
        ({**CONTRACT, "TORCHELASTIC_RUN_ID": "x"}, "torchrun", "pod-0.job"),
        (OPENMPI, "mpirun", "pod-0.job"),
        ({**CONTRACT, "TRAINYARD_ATTEMPT": "2", "JOB_COMPLETION_INDEX": "1"}, "supervisor", "pod-0.job"),
        ({**CONTRACT, "CROSS_RANK": "1", "CROSS_SIZE": "4", "LOCAL_SIZE": "2"}, "deepspeed", "pod-0.job"),
        ({**CONTRACT, "RAY_JOB_ID": "01000000", "LOCAL_WORLD_SIZE": "2"}, "ray", "pod-0.job"),
        (PMI, "mpich", "pod-0.job"),
        ({**PMI, "I_MPI_HYDRA_ENV": "all"}, "intel-mpi", "pod-0.job"),
        (MVAPICH, "mvapich", "pod-0.job"),
        (SLURM, "srun", "gpu07"),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "2(x4)", "SLURM_NODEID": "1"}, "srun", "gpu07"),
        ({**SLURM, "PMI_RANK": "3", "PMI_SIZE": "8"}, "srun", "gpu07"),
    ],
)
def test_every_launcher_gives_the_same_place(environ: dict[str, str], launcher: str, address: str) -> None:
    launch = read_launch(environ)
    assert (launch.rank, launch.world_size, launch.local_rank, launch.master_port) == (3, 8, 1, 1234)
    assert (launch.launcher, launch.master_addr) == (launcher, address)


def test_an_indexed_job_runs_one_rank_in_each_pod() -> None:
    launch = read_launch(INDEXED)
    assert (launch.launcher, launch.rank, launch.world_size, launch.local_rank, launch.local_world_size) == ("indexed-job", 3, 8, 0, 1)


def test_jobs_of_slurm_on_one_host_get_a_port_each() -> None:
    ports = {
        read_launch({**{name: value for name, value in SLURM.items() if name != "MASTER_PORT"}, "SLURM_JOB_ID": str(job)}).master_port
        for job in range(100, 110)
    }
    assert len(ports) == 10
    assert all(1024 < port < 32768 for port in ports)


def test_the_local_rank_that_deepspeed_gives_twice_must_agree() -> None:
    refuse_other_local_rank({"LOCAL_RANK": "1"}, 1)
    with pytest.raises(LaunchError, match="--local_rank 0 but LOCAL_RANK=1"):
        refuse_other_local_rank({"LOCAL_RANK": "1"}, 0)


@pytest.mark.parametrize(("node", "tasks"), [(0, 2), (2, 2), (3, 1), (4, 8)])
def test_tasks_of_a_slurm_node(node: int, tasks: int) -> None:
    assert tasks_on_node("2(x3),1,8", node) == tasks


def test_nothing_in_the_environment_means_one_process() -> None:
    launch = read_launch({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "PATH": "/bin"})
    assert (launch.rank, launch.world_size, launch.launcher) == (0, 1, "none")


def test_ranks_of_one_host_need_no_address() -> None:
    environ = {name: value for name, value in OPENMPI.items() if name != "MASTER_ADDR"} | {"OMPI_COMM_WORLD_LOCAL_SIZE": "8"}
    assert read_launch(environ).master_addr == "127.0.0.1"


def test_torchrun_below_mpirun_keeps_its_own_ranks() -> None:
    environ = {
        **OPENMPI,
        **CONTRACT,
        "RANK": "6",
        "TORCHELASTIC_RUN_ID": "x",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "2",
    }
    launch = read_launch(environ)
    assert (launch.rank, launch.attempt, launch.store_is_served) == (6, 2, True)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"RANK": "0"}, "RANK=0 is set but WORLD_SIZE is not"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2 is set but RANK is not"),
        ({**CONTRACT, "RANK": "8"}, "RANK=8 with WORLD_SIZE=8: ranks go from 0"),
        ({**CONTRACT, "RANK": "-1"}, "RANK=-1"),
        ({**CONTRACT, "WORLD_SIZE": "eight"}, "WORLD_SIZE='eight' is not a whole number"),
        ({**CONTRACT, "MASTER_PORT": "http"}, "MASTER_PORT='http' is not a whole number"),
        ({name: value for name, value in CONTRACT.items() if name != "LOCAL_RANK"}, "LOCAL_RANK is not set"),
        (
            {name: value for name, value in OPENMPI.items() if name != "MASTER_ADDR"},
            "MASTER_ADDR is not set and 8 ranks run on more than one host",
        ),
        ({**CONTRACT, "MASTER_PORT": "0"}, "MASTER_PORT=0 is no port"),
        ({**CONTRACT, "LOCAL_RANK": "4"}, "LOCAL_RANK=4 with RANK=3: it is rank 3's place on its host, from 0 to 3"),
        ({**CONTRACT, "LOCAL_WORLD_SIZE": "1"}, "LOCAL_RANK=1 with RANK=3: it is rank 3's place on its host, from 0 to 0"),
        ({**CONTRACT, "LOCAL_WORLD_SIZE": "9"}, "LOCAL_WORLD_SIZE=9 with WORLD_SIZE=8"),
        ({**INDEXED, "JOB_COMPLETION_INDEX": "8"}, "JOB_COMPLETION_INDEX=8 with WORLD_SIZE=8"),
        ({**CONTRACT, "RANK": "0", "LOCAL_RANK": "0", "JOB_COMPLETION_INDEX": "1"}, "RANK=0 but JOB_COMPLETION_INDEX=1"),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_NODEID": "2"}, "says nothing of node 2 (SLURM_NODEID)"),
        ({**SLURM, "RANK": "0", "WORLD_SIZE": "8", "LOCAL_RANK": "0"}, "RANK=0 but SLURM_PROCID=3"),
        # exported with mpirun -x, so every process believes to be rank 0
        ({**OPENMPI, "RANK": "0", "WORLD_SIZE": "8"}, "RANK=0 but OMPI_COMM_WORLD_RANK=3: unset RANK so that mpirun's own value counts"),
    ],
)
def test_half_a_contract_is_refused_by_name(environ: dict[str, str], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        read_launch(environ)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "host"),
    [("gpu[03-07,9],login", "gpu03"), ("a,b", "a"), ("solo", "solo"), ("n[1,3]-ib", "n1-ib"), ("p-[0001-0002]", "p-0001")],
)
def test_the_first_host_of_a_node_list(nodes: str, host: str) -> None:
    assert first_host(nodes) == host
