"""Starts ranks by forking one process that has imported torch and DeepSpeed already. Runs in the training environment, without pytest.

Importing takes seconds of CPU per rank and start; a fork takes milliseconds, and the rank is as real: a process of its own, with its own
signals, memory and exit code. Requests are JSON lines on stdin, one answer line each on stdout:

    {"start": [arguments], "environ": {...}, "output": "file", "module": "training.train"}  ->  {"pid": 123}
    {"damage": "checkpoint"}                                   ->  {"damage": [what is wrong with it]}
    {"poll": 123}                                              ->  {"code": null | exit code, negative for a signal}
    {"import": [modules]}                                      ->  {}, once ranks forked from now on have them
"""

import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

_running: set[int] = set()


def main() -> None:
    """Serve requests until stdin closes, then end what still runs."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import_everything()
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        answers.write(json.dumps(answer(request)) + "\n")
        answers.flush()
    for pid in _running:
        os.kill(pid, signal.SIGKILL)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What was asked for."""
    if "import" in request:
        for module in request["import"]:
            importlib.import_module(module)
        return {}
    if "start" in request:
        return {"pid": start(request)}
    if "damage" in request:
        return {"damage": find_damage(Path(request["damage"]))}
    return {"code": poll(request["poll"])}


def find_damage(checkpoint: Path) -> list[str]:
    """In a process of its own, since the one that ranks are forked from must have no threads or buffers."""
    from training import storage

    receiver, sender = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(sender, json.dumps(storage.find_damage(checkpoint)).encode())
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answers:
        found = answers.read()
    os.waitpid(pid, 0)
    return json.loads(found)


def import_everything() -> None:
    """What a rank imports; none of it computes anything before the fork."""
    for module in ("deepspeed", "torch._dynamo", "training.loop", "training.engines.pytorch", "training.engines.deepspeed"):
        importlib.import_module(module)


def start(request: dict[str, Any]) -> int:
    """Fork a rank; gives its process id."""
    pid = os.fork()
    if pid:
        _running.add(pid)
        return pid
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(request["environ"])
    code = 70
    try:
        code = importlib.import_module(request["module"]).main(request["start"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def poll(pid: int) -> int | None:
    """Exit code of a rank that has ended."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    _running.discard(pid)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
