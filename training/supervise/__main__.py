"""`python -m training.supervise --nproc-per-node 8 -m training.train --config run.yaml` on one node, with restarts in about a second.

Several nodes, the same command on each but for the node's rank:

    python -m training.supervise --nnodes 2 --node-rank 0 --master-addr node-0 --nproc-per-node 8 -m training.train --config run.yaml

A rank that dies, however it does, is noticed at once; all ranks of all nodes end and are forked again from processes that have
imported everything, and resume from the newest checkpoint. The exit code is the ranks' own: 0 done, 75 saved on request (start me
again), 76 hung, 78 configuration refused (never restarted), 1 any other failure once the restarts are used up. The last line names
the rank and the reason. SIGTERM, SIGINT and SIGUSR1 go to the ranks, which save and end.
"""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from training.exit_codes import ExitCode
from training.launch import COMPLETION_INDEX, DEFAULT_PORT, LOOPBACK, LaunchError, first_host
from training.schema import ConfigError
from training.supervise.agent import Agent, Node
from training.supervise.budget import RestartBudget
from training.supervise.coordinator import Coordinator
from training.supervise.ranks import Program
from training.supervise.server import fork_server

# Agents of all nodes may come at once.
_BACKLOG = 1024


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError("(the command line)", " ".join(sys.argv[1:]), message)


def main(arguments: Sequence[str]) -> int:
    """Launch and keep up the ranks of this node; gives their exit code."""
    # Until ranks run there is nothing to be saved: leave, to be started again.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, _leave)
    try:
        options, program = _read(list(arguments))
        node, listener = _node(options)
        pid = _serve(node, listener, options) if listener else None
        program.warm()
    except (ConfigError, LaunchError) as error:
        return _refuse(str(error), ExitCode.CONFIG)
    except OSError as error:
        return _refuse(f"{type(error).__name__}: {error}", ExitCode.FAILED)
    agent = Agent(node, program, pid)
    agent.catch_signals()
    return agent.run()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m training.supervise", description="Run the ranks of this node, and start them again when one dies.")
    parser.add_argument("--nnodes", type=int, default=1, help="nodes in all (1)")
    parser.add_argument("--nproc-per-node", default="auto", help="ranks on each node: a number, or auto for one a GPU and 1 without any")
    parser.add_argument("--node-rank", type=int, help="this node, from 0; an indexed Job's index or Slurm's node otherwise")
    parser.add_argument("--master-addr", help="name of node 0; the first node of a Slurm step otherwise")
    parser.add_argument("--master-port", type=int, help=f"port of rank 0 (a free one on a single node, {DEFAULT_PORT} on several)")
    parser.add_argument("--control-port", type=int, help="port of node 0's coordinator (the one after the master port)")
    parser.add_argument("--max-restarts", type=int, default=3, help="restarts of all ranks within the window (3)")
    parser.add_argument("--restart-window", type=float, default=3600.0, metavar="SECONDS", help="time over which restarts count (3600)")
    parser.add_argument(
        "--rendezvous-timeout", type=float, default=900.0, metavar="SECONDS", help="how long nodes wait for each other (900)"
    )
    parser.add_argument("--shutdown-timeout", type=float, default=120.0, metavar="SECONDS", help="how long ranks have to save (120)")
    parser.add_argument("-m", nargs=1, metavar="MODULE ...", help="what every rank runs; all that follows are its own arguments")
    return parser


def _read(arguments: list[str]) -> tuple[argparse.Namespace, Program]:
    """The options before `-m`, and the program after it."""
    at = arguments.index("-m") if "-m" in arguments else len(arguments)
    options = _parser().parse_args(arguments[:at])
    if at + 1 >= len(arguments):
        raise ConfigError("-m", None, "the module that every rank runs, such as -m training.train --config run.yaml")
    return options, Program(arguments[at + 1], arguments[at + 2 :])


def _node(options: argparse.Namespace) -> tuple[Node, socket.socket | None]:
    """This node's place, and on node 0 the socket that the coordinator listens on. Raises ConfigError naming the option."""
    _check(options)
    alone = options.nnodes == 1
    rank = _node_rank(options)
    master_port = options.master_port or (_free_port() if alone else DEFAULT_PORT)
    control_port = options.control_port or (0 if alone else master_port + 1)
    listener = None
    if rank == 0:
        listener = _listen(LOOPBACK if alone else "", control_port)
        control_port = listener.getsockname()[1]
    node = Node(
        rank=rank,
        nodes=options.nnodes,
        processes=_processes(options.nproc_per_node),
        master_addr=LOOPBACK if alone and not options.master_addr else _master_addr(options),
        master_port=master_port,
        control_port=control_port,
        rendezvous_seconds=options.rendezvous_timeout,
        shutdown_seconds=options.shutdown_timeout,
    )
    return node, listener


def _check(options: argparse.Namespace) -> None:
    for name, least in (("nnodes", 1), ("max_restarts", 0), ("restart_window", 1), ("rendezvous_timeout", 1), ("shutdown_timeout", 0)):
        if getattr(options, name) < least:
            raise ConfigError(f"--{name.replace('_', '-')}", getattr(options, name), f"at least {least}")
    for name in ("master_port", "control_port"):
        if getattr(options, name) is not None and not 1 <= getattr(options, name) <= 65535:
            raise ConfigError(f"--{name.replace('_', '-')}", getattr(options, name), "a port from 1 to 65535")


def _node_rank(options: argparse.Namespace) -> int:
    told = {"--node-rank": options.node_rank}
    told |= {name: os.environ.get(name) for name in (COMPLETION_INDEX, "SLURM_NODEID")}
    ranks = {name: int(value) for name, value in told.items() if value is not None and str(value).isdigit()}
    if options.nnodes > 1 and not ranks:
        raise ConfigError("--node-rank", options.node_rank, f"this node's place, from 0 to {options.nnodes - 1}")
    if len(set(ranks.values())) > 1:
        raise ConfigError(
            "--node-rank", options.node_rank, "what the launcher says: " + ", ".join(f"{name}={rank}" for name, rank in ranks.items())
        )
    rank = next(iter(ranks.values()), 0)
    if not 0 <= rank < options.nnodes:
        raise ConfigError(next(iter(ranks)), rank, f"a place from 0 to --nnodes - 1 = {options.nnodes - 1}")
    return rank


def _processes(text: str) -> int:
    if text in ("auto", "gpu"):
        gpus = len([path for path in Path("/dev").glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()])
        if gpus or text == "auto":
            return max(1, gpus)
    if not text.isdigit() or int(text) < 1:
        raise ConfigError("--nproc-per-node", text, "a whole number of at least 1, auto, or gpu where there are GPUs")
    return int(text)


def _master_addr(options: argparse.Namespace) -> str:
    if options.master_addr:
        return options.master_addr
    nodes = os.environ.get("SLURM_STEP_NODELIST")
    if not nodes:
        raise ConfigError("--master-addr", None, "the DNS name of node 0, which every node can reach")
    return first_host(nodes)


def _listen(address: str, port: int) -> socket.socket:
    """On all addresses of both families where there is none, since a node's name may stand for either."""
    if address or not socket.has_dualstack_ipv6():
        return socket.create_server((address, port), backlog=_BACKLOG)
    return socket.create_server((address, port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as server:
        return server.getsockname()[1]


def _serve(node: Node, listener: socket.socket, options: argparse.Namespace) -> int:
    budget = RestartBudget(options.max_restarts, options.restart_window)
    pid = fork_server(listener, Coordinator(node.nodes, node.processes, budget), options.rendezvous_timeout)
    listener.close()
    return pid


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    # Written and ended by system calls: an exception from here would be lost in any import that goes on after whatever it meets, and
    # a print could come in the middle of another.
    try:
        os.write(2, f"supervisor | {signal.Signals(number).name} came before the ranks were started\n".encode())
    finally:
        os._exit(ExitCode.RESTART)


def _refuse(reason: str, code: ExitCode) -> int:
    print(f"supervisor | ended with exit code {int(code)} ({code.name.lower()}): {reason}", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
