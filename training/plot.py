"""Draw loss curves: `python -m training.plot runs/tiny/metrics.jsonl [more ...] -o loss.svg` (.svg, .png or .pdf).

One colour per run: training loss as a line, held-out loss as dots, each resume as a thin vertical line. The lower panel shows the learning
rate.
"""

import argparse
import sys
from pathlib import Path

from training.history import History, read_history

_SUFFIXES = (".svg", ".png", ".pdf")
_DASHES = ("-", "--", "-.", ":")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and give its exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.plot", description="Draw the loss curves of one or more runs.")
    parser.add_argument("metrics", nargs="+", type=Path, help="metrics.jsonl files")
    parser.add_argument("-o", "--output", type=Path, required=True, help="picture to write: " + ", ".join(_SUFFIXES))
    options = parser.parse_args(arguments)
    if options.output.suffix not in _SUFFIXES:
        return _fail(f"{options.output}: the name of the picture must end in {', '.join(_SUFFIXES)}")
    histories: dict[str, History] = {}
    for path in options.metrics:
        try:
            history = read_history(path)
        except OSError as error:
            return _fail(f"{path}: {error.strerror}")
        if not history.steps:
            return _fail(f"{path}: holds no optimizer step; is it a run's metrics.jsonl?")
        histories[_label(path, histories)] = history
    draw(histories, options.output)
    for label, history in histories.items():
        print(
            f"{label}: loss {history.first_loss:.4f} to {history.last_loss:.4f} in {max(history.steps)} steps, {len(history.starts)} starts"
        )
    print(f"wrote {options.output}")
    return 0


def draw(histories: dict[str, History], output: Path) -> None:
    """Write the picture of these runs, by label."""
    import matplotlib as mpl

    mpl.use("Agg")
    # The same metrics give the same file, byte for byte.
    mpl.rcParams["svg.hashsalt"] = "trainyard"
    from matplotlib import pyplot as plt

    figure, (losses, rates) = plt.subplots(2, 1, sharex=True, figsize=(9, 6), height_ratios=(3, 1), layout="constrained")
    for index, (label, history) in enumerate(histories.items()):
        # Runs that compute the same lie on top of each other: other dashes keep both visible.
        colour, dashes = f"C{index}", _DASHES[index % len(_DASHES)]
        steps = sorted(history.steps)
        losses.plot(steps, [history.steps[step]["loss"] for step in steps], color=colour, linestyle=dashes, linewidth=1.4, label=label)
        if history.evaluations:
            losses.plot(
                *zip(*sorted(history.evaluations.items()), strict=True), "o", color=colour, markersize=4, label=f"{label}, held out"
            )
        for start in history.starts[1:]:
            losses.axvline(start["step"] + 0.5, color=colour, linewidth=0.8, linestyle=":")
        rates.plot(steps, [history.steps[step]["lr"] for step in steps], color=colour, linestyle=dashes, linewidth=1.0)
    losses.set_ylabel("loss (nats per token)")
    losses.legend()
    losses.grid(alpha=0.3)
    rates.set_ylabel("learning rate")
    rates.set_xlabel("optimizer step")
    rates.grid(alpha=0.3)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, metadata={"Date": None} if output.suffix == ".svg" else None)
    plt.close(figure)


def _label(path: Path, taken: dict[str, History]) -> str:
    """Name of the run's folder, or the whole path where two runs have one name."""
    name = path.resolve().parent.name
    return str(path) if name in taken else name


def _fail(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
