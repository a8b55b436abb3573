"""The launch contract: every launcher's variables give the same place, and half a contract is refused by name."""

import pytest

from training.launch import LaunchError, first_host, read_launch

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
PMI = {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MASTER_ADDR": "pod-0.job", "MASTER_PORT": "1234"}


@pytest.mark.parametrize(
    ("environ", "launcher", "address"),
    [
        (CONTRACT, "environment", "pod-0.job"),
        ({**CONTRACT, "TORCHELASTIC_RUN_ID": "x"}, "torchrun", "pod-0.job"),
        (OPENMPI, "mpirun", "pod-0.job"),
        (PMI, "pmi", "pod-0.job"),
        (SLURM, "srun", "gpu07"),
    ],
)
def test_every_launcher_gives_the_same_place(environ: dict[str, str], launcher: str, address: str) -> None:
    launch = read_launch(environ)
    assert (launch.rank, launch.world_size, launch.local_rank, launch.master_port) == (3, 8, 1, 1234)
    assert (launch.launcher, launch.master_addr) == (launcher, address)


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
