"""The one process on the host that a node hangs on: `python3 -m local.node.supervisor <spec.json>`.

It makes the namespaces, starts `Init` in them as process 1, and links them to the host. Whatever ends either of the two ends
all processes inside, and with the last of them the kernel removes mounts, interfaces and rules.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from dataclasses import asdict
from pathlib import Path

from local.errors import LocalStackError
from local.node import filesystem, namespaces, network
from local.node.cgroup import CgroupTree
from local.node.init import WAITED, Init
from local.node.layout import BIN, Layout
from local.node.network import Link
from local.node.spec import SupervisorSpec
from local.process import Daemon

_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_READY = b"."


def main(argv: list[str]) -> int:
    """Run a node until SIGTERM or until its process 1 ends. Returns the exit status."""
    spec = SupervisorSpec.read(Path(argv[1]))
    link = Link(interface=spec.interface, host_ip=spec.host_ip, node_ip=spec.node_ip)
    cgroups = CgroupTree(spec.copy_id)
    cgroups.remove()
    cgroups.create()
    ours, theirs = socket.socketpair()
    init = _fork_into_new_pid_namespace(spec, link, ours, theirs)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _forward(init))
    theirs.close()
    Layout(Path(spec.state)).init_pid.write_text(json.dumps(asdict(Daemon.of(init))))
    try:
        # One byte once the network namespace is there, one back when the link to the host is.
        if ours.recv(1) == _READY:
            network.connect_host(link, init)
            ours.send(_READY)
        return os.waitstatus_to_exitcode(os.waitpid(init, 0)[1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(init, signal.SIGKILL)
        network.remove_host_end(link.interface)
        cgroups.remove()


def _forward(init: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(init, signal.SIGTERM)


def _fork_into_new_pid_namespace(spec: SupervisorSpec, link: Link, ours: socket.socket, theirs: socket.socket) -> int:
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    namespaces.unshare(namespaces.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        ours.close()
        os._exit(_run_init(spec, link, theirs))
    # Later children, such as `ip`, belong to the host again.
    namespaces.setns(own, namespaces.CLONE_NEWPID)
    os.close(own)
    return pid


def _run_init(spec: SupervisorSpec, link: Link, parent: socket.socket) -> int:
    try:
        # The kernel ends this process, and as process 1 takes all others along, even where the parent was killed.
        namespaces.die_with_parent(signal.SIGKILL)
        # A signal that comes before the loop of `Init` waits for it.
        signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
        os.setsid()
        namespaces.unshare(namespaces.CLONE_NEWNS | namespaces.CLONE_NEWNET | namespaces.CLONE_NEWUTS | namespaces.CLONE_NEWIPC)
        socket.sethostname(spec.node_name)
        # Neither the user's credentials nor a proxy of theirs is any of the daemons' business.
        os.environ.clear()
        os.environ.update(PATH=os.pathsep.join((str(BIN), *_PATH)), HOME="/root", LANG="C.UTF-8")
        filesystem.enter_private_files(spec)
        os.chdir("/")
        parent.send(_READY)
        if parent.recv(1) != _READY:
            raise LocalStackError(f"the supervisor could not make the link {link.interface} to the host")
        parent.close()
        network.configure_node(link)
        Init(spec).run()
    except Exception:
        # This goes to the supervisor's log, which the caller shows.
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
