"""What Ray Train does around a worker: it makes the process group, runs the loop in a thread beside the main one, and ends the group."""

import threading
import traceback

import torch.distributed as dist

from training.ray_worker import train_worker


def main(arguments: list[str]) -> int:
    """Run a worker; gives 0 if its loop returned, 3 if it raised."""
    dist.init_process_group("gloo")
    raised: list[BaseException] = []

    def work() -> None:
        try:
            train_worker({"arguments": arguments})
        except Exception as error:
            raised.append(error)
            traceback.print_exc()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    dist.destroy_process_group()
    return 3 if raised else 0
