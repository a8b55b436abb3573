"""Ranks forked from a process that has imported everything: as real as started ones, each with its own memory, signals and exit code."""

import contextlib
import ctypes
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from training.exit_codes import ExitCode
from training.schema import ConfigError

_PR_SET_PDEATHSIG = 1
# Of importing on another core than the ranks; more threads in the process that forks would not survive the fork.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Program:
    """What every rank runs: a module with `main(arguments) -> exit code`, and `warm(arguments)` if it has imports to be done before."""

    module: str
    arguments: Sequence[str]

    def warm(self) -> None:
        """Import it and all that it will need. Raises ConfigError when it is no such module, and what its `warm` raises."""
        for name in _ONE_THREAD:
            os.environ.setdefault(name, "1")
        # Counts GPUs without starting the CUDA runtime, which no forked process could use again.
        os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
        try:
            module = importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            raise ConfigError("-m", self.module, f"a module that can be imported; {error}") from None
        if not hasattr(module, "main"):
            raise ConfigError("-m", self.module, "a module with a function main(arguments) that gives an exit code")
        getattr(module, "warm", lambda arguments: None)(list(self.arguments))

    def run(self) -> int:
        """Run it here and give its exit code."""
        return importlib.import_module(self.module).main(list(self.arguments)) or 0


def fork_rank(program: Program, environ: Mapping[str, str], leave_behind: Callable[[], None]) -> int:
    """Start a rank; gives its process id, which is that of its process group too. `leave_behind` closes there what is the parent's."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        # Here as well as there: whoever comes first, the group exists when it has to be ended.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    code = int(ExitCode.FAILED)
    try:
        _become_own_process(parent)
        leave_behind()
        os.environ.update(environ)
        if _has_used_cuda():
            os.execv(sys.executable, [sys.executable, "-m", program.module, *program.arguments])
        code = program.run()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(ExitCode.FAILED)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Without interpreter shutdown, as the trainer itself ends: it must not wait for peers in a collective.
        os._exit(code)


def _become_own_process(parent: int) -> None:
    """A process group of its own, the default signals, an end together with the parent's, and nothing to read."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(int(ExitCode.FAILED))
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)


def _has_used_cuda() -> bool:
    """Whether an import has started the CUDA runtime: then a fork is of no use, and the rank is started afresh."""
    torch = sys.modules.get("torch")
    return bool(torch and torch.cuda._is_in_bad_fork())
