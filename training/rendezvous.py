"""How ranks meet: name lookup with retries, a store served by rank 0, and a roll call that names who is missing or came twice."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from datetime import timedelta

from torch.distributed import PrefixStore, Store, TCPStore

from training.errors import RendezvousError
from training.launch import Launch

_POLL_SECONDS = 0.05
_FIRST_RETRY_SECONDS = 0.2
_LONGEST_RETRY_SECONDS = 5.0
_MANY = 16


def meet(launch: Launch, timeout_seconds: int, keep_waiting: Callable[[], None]) -> Store:
    """Wait until every rank has come, and return the store that they share.

    `keep_waiting` is called while polling and may raise to give up. Raises RendezvousError, naming ranks, when the time is over.
    """
    deadline = time.monotonic() + timeout_seconds
    wait_for_name(launch.master_addr, deadline, keep_waiting)
    store = _store(launch, deadline, timeout_seconds, keep_waiting)
    # A launcher's own store outlives a restart of its ranks; the attempt keeps old arrivals apart from new ones.
    shared = PrefixStore(f"trainyard/{launch.attempt}", store)
    try:
        roll_call(shared, launch, deadline, timeout_seconds, keep_waiting)
    except RendezvousError:
        raise
    except RuntimeError as error:
        where = f"{launch.master_addr}:{launch.master_port}"
        raise RendezvousError(f"rank 0 at {where} ended while rank {launch.rank} waited for the others; its log says why") from error
    return PrefixStore("group", shared)


def _store(launch: Launch, deadline: float, timeout_seconds: int, keep_waiting: Callable[[], None]) -> Store:
    """Serve the store, or reach it. In a thread: one that waits for its server, or for a server that is silent, lets no signal through."""

    def make() -> None:
        try:
            store = TCPStore(
                launch.master_addr,
                launch.master_port,
                world_size=launch.world_size,
                is_master=launch.rank == 0 and not launch.store_is_served,
                timeout=timedelta(seconds=max(1.0, deadline - time.monotonic())),
                wait_for_workers=False,
            )
            made.set_result(store)
        except Exception as error:
            made.set_exception(error)

    made: Future[Store] = Future()
    threading.Thread(target=make, name="store", daemon=True).start()
    while not wait([made], _POLL_SECONDS).done:
        keep_waiting()
    try:
        return made.result()
    except (RuntimeError, ValueError) as error:
        raise RendezvousError(_no_store(launch, timeout_seconds, error)) from error


def wait_for_name(host: str, deadline: float, keep_waiting: Callable[[], None]) -> None:
    """Retry the lookup: a pod's name may enter DNS after its neighbours have started."""
    delay = _FIRST_RETRY_SECONDS
    while True:
        keep_waiting()
        try:
            socket.getaddrinfo(host, None)
            return
        except socket.gaierror as error:
            if time.monotonic() + delay > deadline:
                raise RendezvousError(f"MASTER_ADDR={host} does not resolve ({error}); it must be the DNS name of rank 0's host") from None
        time.sleep(delay)
        delay = min(delay * 2, _LONGEST_RETRY_SECONDS)


def roll_call(store: Store, launch: Launch, deadline: float, timeout_seconds: int, keep_waiting: Callable[[], None]) -> None:
    """Note this rank's arrival and wait for all the others."""
    me = f"{socket.gethostname()} (pid {os.getpid()})"
    _claim(store, launch.rank, me, deadline, keep_waiting)
    store.set(f"arrived/{launch.rank}", json.dumps({"who": me, "world_size": launch.world_size}))
    expected = [f"arrived/{rank}" for rank in range(launch.world_size)]
    with _taken_back(store, [f"arrived/{launch.rank}"], f"claim/{launch.rank}"):
        complete = _wait(store, expected, deadline, keep_waiting)
    if not complete:
        missing = [rank for rank in range(launch.world_size) if not store.check([f"arrived/{rank}"])]
        raise RendezvousError(
            f"after {timeout_seconds} s {len(missing)} of {launch.world_size} ranks have not come to "
            f"{launch.master_addr}:{launch.master_port}: {_ranks(missing)}; look at their logs"
        )
    if launch.rank == 0:
        _compare_worlds(store, launch.world_size)


def _claim(store: Store, rank: int, me: str, deadline: float, keep_waiting: Callable[[], None]) -> None:
    """Take the place of this rank. Raises RendezvousError if another process has it."""
    if store.add(f"claim/{rank}", 1) == 1:
        return
    with _taken_back(store, [], f"claim/{rank}"):
        came = _wait(store, [f"arrived/{rank}"], deadline, keep_waiting)
    store.add(f"claim/{rank}", -1)
    other = json.loads(store.get(f"arrived/{rank}"))["who"] if came else "another process"
    raise RendezvousError(f"rank {rank} came twice: {other} and {me}; give every process its own rank")


@contextmanager
def _taken_back(store: Store, keys: list[str], claim: str) -> Generator[None]:
    """Take these keys and one claim back should this rank be asked to stop: the others are to miss it, and another may take its place."""
    try:
        yield
    except BaseException:
        with suppress(RuntimeError):
            for key in keys:
                store.delete_key(key)
            store.add(claim, -1)
        raise


def _compare_worlds(store: Store, world_size: int) -> None:
    for rank in range(world_size):
        key = f"arrived/{rank}"
        if not store.check([key]):
            raise RendezvousError(f"rank {rank} has left while the last of the others came; its log says why")
        arrival = json.loads(store.get(key))
        if arrival["world_size"] != world_size:
            raise RendezvousError(f"rank {rank} on {arrival['who']} was started for {arrival['world_size']} ranks, rank 0 for {world_size}")


def _wait(store: Store, keys: list[str], deadline: float, keep_waiting: Callable[[], None]) -> bool:
    while not store.check(keys):
        keep_waiting()
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _ranks(ranks: list[int]) -> str:
    more = f" and {len(ranks) - _MANY} more" if len(ranks) > _MANY else ""
    return "ranks " + ", ".join(map(str, ranks[:_MANY])) + more


def _no_store(launch: Launch, timeout_seconds: int, error: Exception) -> str:
    where = f"{launch.master_addr}:{launch.master_port}"
    if launch.rank == 0 and not launch.store_is_served:
        return f"rank 0 cannot listen on {where}: {str(error).splitlines()[0]}; set MASTER_PORT to a free port"
    return f"rank 0 has not come: nothing answered rank {launch.rank} at {where} within {timeout_seconds} s"
