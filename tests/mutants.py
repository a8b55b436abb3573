"""Mutation testing of the policy pack with mutmut: which small changes of the pack no test of it notices.

    .venv/bin/python -m tests.mutants [MODULE ...] [--lived] [--at-least 95]

It works on a copy in build/mutants, where a run that was cut short goes on and those that lived are judged again. It ends with 1 where
fewer mutants are killed than `--at-least` per cent. `--lived` shows those that lived, as differences, after the last run. The whole pack
takes an hour on two cores.
"""

import argparse
import collections
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from local.paths import REPOSITORY

FOLDER = REPOSITORY / "build" / "mutants"
PACK = "guardrails"
_TESTS = "tests/unit/policy"
# The sweeps over all rules at once notice a change of anything, an hour of CPU later; the tables must notice it by themselves.
_SWEEPS = ("test_fuzz.py", "test_unknowns.py", "test_own_stacks.py")
# A mutant is switched on in the process under test and in no other.
_IN_PROCESS = "not own_folder"
# What pytest does besides running tests costs more than most mutants' tests: 0.25 s of CPU with it, 0.07 s without.
_UNNEEDED = ("cacheprovider", "unraisableexception", "threadexception", "hypothesispytest", "xdist", "logging", "junitxml", "doctest")
_ARGUMENTS = [
    *(f"--ignore={_TESTS}/{name}" for name in _SWEEPS),
    *("-k", _IN_PROCESS),
    *("--assert=plain",),
    # Shared functions have thousands of tests: two seconds of looking for them, without it.
    *("-p", "tests.unit.policy.named"),
    *(word for plugin in _UNNEEDED for word in ("-p", f"no:{plugin}")),
]
# Of CPU time; mutmut doubles the sum. Tests of shared functions take minutes, and a loop without end must not take hours there.
_TIMES, _SECONDS = 1.0, 20.0
_CONFIGURATION = f"""
[tool.mutmut]
source_paths = ["{PACK}"]
also_copy = ["local", "docs"]
pytest_add_cli_args_test_selection = ["{_TESTS}"]
pytest_add_cli_args = {json.dumps(_ARGUMENTS)}
track_dependencies = false
use_git_change_detection = false
timeout_multiplier = {_TIMES}
timeout_constant = {_SECONDS}
[tool.pytest.ini_options]
addopts = "--strict-markers"
pythonpath = ["."]
filterwarnings = ["ignore::DeprecationWarning"]
markers = ["unit", "policy", "slow"]
"""
# mutmut's names of what became of a mutant; a mutant that runs for ever or ends the interpreter is noticed too.
_KILLED = ("killed", "timeout", "segfault")
_LIVED = ("survived", "no tests", "suspicious")


def prepare() -> None:
    """Copy the pack and its tests; what mutmut has found out already stays, and counts where the function is still the same."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for source, name in ((REPOSITORY / "policy" / PACK, PACK), (REPOSITORY / "local", "local"), (REPOSITORY / "docs", "docs")):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        shutil.copytree(source, FOLDER / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(FOLDER / "tests", ignore_errors=True)
    shutil.copytree(REPOSITORY / _TESTS, FOLDER / _TESTS, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("tests", "tests/unit"):
        shutil.copyfile(REPOSITORY / folder / "__init__.py", FOLDER / folder / "__init__.py")
    (FOLDER / "pyproject.toml").write_text(_CONFIGURATION)
    # mutmut takes a data file over once, and never looks at it again.
    for data in (FOLDER / "mutants" / PACK).rglob("*.json"):
        data.unlink()
    # Nor does it forget a module that is gone.
    for mutated in (FOLDER / "mutants" / PACK).rglob("*.py"):
        if not (FOLDER / PACK / mutated.relative_to(FOLDER / "mutants" / PACK)).exists():
            mutated.unlink()
            mutated.with_name(f"{mutated.name}.meta").unlink(missing_ok=True)
    # Nor does it ask a test that it knows for functions that are new.
    (FOLDER / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)


def mutmut(*words: str) -> int:
    """Run mutmut on the copy; its exit code."""
    return subprocess.run([sys.executable, "-m", "mutmut", *words], cwd=FOLDER, check=False).returncode


def verdicts() -> Mapping[str, str]:
    """What became of each mutant."""
    from mutmut.stats import status_by_exit_code

    found: dict[str, str] = {}
    for path in sorted((FOLDER / "mutants" / PACK).rglob("*.meta")):
        found |= {name: status_by_exit_code[code] for name, code in json.loads(path.read_text())["exit_code_by_key"].items()}
    return found


def among(chosen: tuple[str, ...]) -> Mapping[str, str]:
    """The verdicts on the chosen modules; on all where none is chosen."""
    return {name: verdict for name, verdict in verdicts().items() if not chosen or name.startswith(chosen)}


def report(found: Mapping[str, str]) -> float:
    """Print how many mutants of each module were killed; the share of all, in per cent."""
    killed: collections.Counter[str] = collections.Counter()
    total: collections.Counter[str] = collections.Counter()
    for name, verdict in found.items():
        module = name.split(".x")[0].removeprefix(f"{PACK}.")
        total[module] += 1
        killed[module] += verdict in _KILLED
    for module in sorted(total, key=lambda each: killed[each] / total[each]):
        print(f"{module:24} {killed[module]:5} of {total[module]:5} killed, {100 * killed[module] / total[module]:5.1f} %")
    share = 100 * killed.total() / total.total()
    print(f"{'all':24} {killed.total():5} of {total.total():5} killed, {share:5.1f} %")
    return share


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and report; 1 where too many lived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="modules of the pack, such as fsx (default: all)")
    parser.add_argument("--lived", action="store_true")
    parser.add_argument("--at-least", type=float, default=95.0, metavar="PERCENT")
    options = parser.parse_args(arguments)
    chosen = tuple(f"{PACK}.{module}." for module in options.modules)
    if not options.lived:
        prepare()
        lived = [name for name, verdict in among(chosen).items() if verdict in _LIVED]
        for names in ([lived] if lived else []) + [[f"{start}*" for start in chosen]]:
            ended = mutmut("run", *names)
            if ended:
                return ended
    found = among(chosen)
    if options.lived:
        for name, verdict in found.items():
            if verdict not in _KILLED:
                mutmut("show", name)
    return int(report(found) < options.at_least)


if __name__ == "__main__":
    sys.exit(main())
