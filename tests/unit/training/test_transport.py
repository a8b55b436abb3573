"""NCCL's log says which network it took; the shapes are those of its versions and of the plug-in's, with hosts and numbers of our own."""

from pathlib import Path

import pytest

from training.preflight.transport import NcclLog, Transport, parse_transport

pytestmark = pytest.mark.unit

EFA = """\
worker-0:41:77 [0] NCCL INFO Bootstrap: Using eth0:10.0.3.4<0>
worker-0:41:77 [0] NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v11)
worker-0:41:77 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.17.2
worker-0:41:77 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 16 nics)
worker-0:41:77 [0] NCCL INFO Using network Libfabric
"""
OLD_EFA = """\
worker-0:21:21 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)
worker-0:21:21 [0] NCCL INFO Using network AWS Libfabric
"""
NO_PLUGIN = """\
worker-0:41:77 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so
worker-0:41:77 [0] NCCL INFO NET/IB : No device found.
worker-0:41:77 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.3.4<0>
worker-0:41:77 [0] NCCL INFO Using network Socket
"""
# A plug-in that is there, but finds no device in the pod.
FALLEN_BACK = """\
worker-0:41:77 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.17.2
worker-0:41:77 [0] NCCL WARN NET/OFI No eligible providers were found
worker-0:41:77 [0] NCCL INFO Failed to initialize NET plugin Libfabric
worker-0:41:77 [0] NCCL INFO Initialized NET plugin Socket
worker-0:41:77 [0] NCCL INFO Assigned NET plugin Socket to comm
"""
TCP_PROVIDER = """\
worker-0:41:77 [0] NCCL INFO NET/OFI Selected provider is tcp;ofi_rxm, fabric is 10.0.3.0/24 (found 1 nics)
worker-0:41:77 [0] NCCL INFO Using network Libfabric
"""
INFINIBAND = """\
worker-0:7:19 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB
worker-0:7:19 [0] NCCL INFO Using network IB
"""


@pytest.mark.parametrize(
    ("log", "kind", "interfaces", "trouble"),
    [
        (EFA, "efa", 16, ""),
        (OLD_EFA, "efa", 4, ""),
        (NO_PLUGIN, "sockets", None, "Could not find: libnccl-net.so"),
        (FALLEN_BACK, "sockets", None, "No eligible providers"),
        (TCP_PROVIDER, "tcp", 1, ""),
        (INFINIBAND, "infiniband", None, ""),
        ("", "unknown", None, ""),
        ("worker-0:7:19 [0] NCCL INFO Using network AWS Libfabric\n", "unknown", None, ""),
        ("worker-0:7:19 [0] NCCL INFO Using network FasTrak\n", "fastrak", None, ""),
        # Each communicator says it again; a later one may have lost the fabric.
        (EFA + NO_PLUGIN, "sockets", None, "Could not find"),
    ],
    ids=["efa", "old-efa", "no-plug-in", "fallen-back", "tcp", "infiniband", "empty", "no-provider", "other", "twice"],
)
def test_the_network_that_nccl_took_is_named(log: str, kind: str, interfaces: int | None, trouble: str) -> None:
    transport = parse_transport(log.splitlines())
    assert (transport.kind, transport.interfaces) == (kind, interfaces)
    assert trouble in transport.trouble
    assert bool(trouble) == bool(transport.trouble)


def test_a_transport_reads_well() -> None:
    assert str(Transport("efa", 16)) == "EFA, 16 interfaces"
    assert str(Transport("sockets", trouble="no plug-in")) == "sockets (TCP) (no plug-in)"


def test_nccl_is_asked_to_write_its_log_and_a_log_of_the_user_s_is_left_alone(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    log = NcclLog(environ)
    assert (environ["NCCL_DEBUG"], environ["NCCL_DEBUG_SUBSYS"]) == ("INFO", "INIT,NET")
    Path(environ["NCCL_DEBUG_FILE"]).write_text(EFA)
    assert log.transport() == Transport("efa", 16)
    Path(environ["NCCL_DEBUG_FILE"]).unlink()
    assert log.transport().kind == "unknown"

    own = {"NCCL_DEBUG": "INFO"}
    assert NcclLog(own).transport().kind == "unknown"
    assert own == {"NCCL_DEBUG": "INFO"}

    file = tmp_path / "nccl.log"
    file.write_text(NO_PLUGIN)
    assert NcclLog({"NCCL_DEBUG": "TRACE", "NCCL_DEBUG_FILE": str(file)}).transport().kind == "sockets"
