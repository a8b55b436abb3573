"""Prove that every way of spreading a run computes the single-process run: `python -m training.parity`.

    python -m training.parity --write docs/parity.md       the whole table
    python -m training.parity --ranks 2 --only FSDP2       what matches, on two ranks
    python -m training.parity --json results.json          for a program to read

Each case trains the same small model on the same samples in fp32, on real processes of this machine with gloo. Its losses are compared step
by step with those of one process, and its weights after the last step, gathered, with that process's. Ranks are forked from this process,
which has imported everything already: on two cores, starting eight ranks otherwise takes longer than their training.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from training.parity_cases import CASES, GLOBAL_BATCH, LENGTH, STEPS, Case

LOSS_TOLERANCE = 1e-5
"""Largest relative deviation of any step's loss."""
NORM_TOLERANCE = 1e-4
"""Largest relative deviation of any step's gradient norm before clipping."""
WEIGHT_TOLERANCE = 3e-4
"""Largest deviation of any weight after the last step, as a share of the largest weight of its tensor."""


@dataclass(frozen=True)
class Result:
    """How far a case is from its reference."""

    name: str
    strategy: str
    ranks: int
    loss_deviation: float
    """Largest relative deviation of a step's loss."""
    norm_deviation: float
    """Largest relative deviation of a step's global gradient norm."""
    weight_deviation: float
    """Largest deviation of a weight, as a share of the largest in its tensor."""
    tokens_per_second: float
    """Best step, over all ranks."""

    @property
    def holds(self) -> bool:
        """Whether all deviations are within their tolerance."""
        return self.loss_deviation <= LOSS_TOLERANCE and self.norm_deviation <= NORM_TOLERANCE and self.weight_deviation <= WEIGHT_TOLERANCE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code: 0 if every case holds."""
    parser = argparse.ArgumentParser(prog="python -m training.parity", description="Compare every strategy with a single process.")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4, 8], help="numbers of ranks to run (default: all)")
    parser.add_argument("--only", nargs="*", help="cases whose name contains one of these")
    parser.add_argument("--exactly", nargs="*", help="cases with one of these names, such as 'DDP, 2 ranks'")
    parser.add_argument("--write", type=Path, help="file for the table, in Markdown")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if case.ranks in options.ranks and _is_chosen(case, options.only, options.exactly)]
    if not cases:
        print("no case matches; known are:", *(case.name for case in CASES), sep="\n  ", file=sys.stderr)
        return 2
    results = list(compare(cases))
    if options.write:
        options.write.write_text(markdown(results), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return 0 if len(results) == len(cases) and all(result.holds for result in results) else 1


def _is_chosen(case: Case, only: Sequence[str] | None, exactly: Sequence[str] | None) -> bool:
    return (not only or any(part in case.name for part in only)) and (not exactly or case.name in exactly)


def compare(cases: Iterable[Case]) -> Iterator[Result]:
    """Run each case, and each reference once; says what it finds as it goes. A case that fails is said and left out."""
    # Before torch is imported: with more threads it starts a pool of them, which does not survive a fork.
    os.environ.update(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", DS_ACCELERATOR="cpu")
    from training.parity_ranks import deviation, import_everything, run_case

    import_everything()
    references: dict[str, dict] = {}
    for case in cases:
        reference = case.reference()
        key = reference.config().to_json()
        try:
            if key not in references:
                references[key] = run_case(reference)
            outcome = run_case(case)
            result = _result(case, outcome, deviation(outcome, references[key]))
        except RuntimeError as error:
            print(f"FAILED  {case.name}: {error}", flush=True)
            continue
        print(f"{'ok    ' if result.holds else 'DIFFERS'}  {_line(result)}", flush=True)
        yield result


def _result(case: Case, outcome: dict, deviations: tuple[float, float, float]) -> Result:
    return Result(
        name=case.name,
        strategy=case.strategy,
        ranks=case.ranks,
        loss_deviation=deviations[0],
        norm_deviation=deviations[1],
        weight_deviation=deviations[2],
        tokens_per_second=GLOBAL_BATCH * LENGTH / min(outcome["seconds"]),
    )


def _line(result: Result) -> str:
    return (
        f"{result.name:45} loss {result.loss_deviation:.1e}  norm {result.norm_deviation:.1e}  weights {result.weight_deviation:.1e}"
        f"  {result.tokens_per_second:.0f} tokens/s"
    )


def markdown(results: Sequence[Result]) -> str:
    """The table and what it says."""
    rows = [
        f"| {result.strategy} | {result.ranks} | {result.loss_deviation:.1e} | {result.norm_deviation:.1e} | {result.weight_deviation:.1e} "
        f"| {result.tokens_per_second:,.0f} | {'yes' if result.holds else '**no**'} |"
        for result in results
    ]
    return _TEXT.format(
        steps=STEPS, loss=LOSS_TOLERANCE, norm=NORM_TOLERANCE, weight=WEIGHT_TOLERANCE, batch=GLOBAL_BATCH, rows="\n".join(rows)
    )


_TEXT = """# Parity

Every way of spreading a run over ranks computes the same run. `python -m training.parity --write docs/parity.md`, in the training
environment, trains one small model {steps} optimizer steps under each strategy, global batch {batch} whatever the ranks, in fp32 on the CPU
(gloo), and compares with one process that has no wrapper at all:

- loss: the largest relative deviation of any step's loss; it holds up to {loss:g}. What remains is the order of sums.
- norm: the largest relative deviation of the global gradient norm before clipping; it holds up to {norm:g}.
- weights: the largest deviation of any weight after the last step, gathered, as a share of the largest weight of its tensor; it holds up to
  {weight:g}. AdamW divides by the root of the second moment, so that rounding in a near-zero gradient moves a weight by more than rounding.
- tokens/s: the best step over all ranks together. All ranks share this machine's cores, so it says what a strategy costs here and nothing
  of what it gains on many GPUs.

| strategy | ranks | loss | norm | weights | tokens/s | holds |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""

if __name__ == "__main__":
    sys.exit(main())
