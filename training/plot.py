"""Draw loss and throughput: `python -m training.plot runs/tiny/metrics.jsonl [more ...] -o loss.svg` (.svg, .png or .pdf).

One colour per run: training loss as a line, held-out loss as dots, each resume as a thin vertical line. Below it throughput, with
checkpoints as ticks at the bottom, and the learning rate.
"""

import argparse
import sys
from pathlib import Path
from statistics import median
from typing import Any

from training.history import History, read_history

_SUFFIXES = (".svg", ".png", ".pdf")
_DASHES = ("-", "--", "-.", ":")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and give its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m training.plot", description="Draw loss, throughput and learning rate of one or more runs."
    )
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
        losses = f"loss {history.first_loss:.4f} to {history.last_loss:.4f}"
        print(f"{label}: {losses} in {max(history.steps)} steps, {len(history.starts)} starts, {_speed(history)}")
    print(f"wrote {options.output}")
    return 0


def draw(histories: dict[str, History], output: Path) -> None:
    """Write the picture of these runs, by label."""
    import matplotlib as mpl

    mpl.use("Agg")
    # The same metrics give the same file, byte for byte.
    mpl.rcParams["svg.hashsalt"] = "trainyard"
    from matplotlib import pyplot as plt

    figure, (losses, speeds, rates) = plt.subplots(3, 1, sharex=True, figsize=(9, 7.5), height_ratios=(3, 1.2, 1), layout="constrained")
    for index, (label, history) in enumerate(histories.items()):
        # Runs that compute the same lie on top of each other: other dashes keep both visible.
        style = {"color": f"C{index}", "linestyle": _DASHES[index % len(_DASHES)]}
        _draw_losses(losses, label, history, style)
        speeds.plot(*history.series("tokens_per_second"), linewidth=1.0, **style)
        speeds.plot(sorted(history.checkpoints), [0] * len(history.checkpoints), "|", color=style["color"])
        rates.plot(*history.series("lr"), linewidth=1.0, **style)
    speeds.set_ylim(bottom=0)
    for panel, name in ((losses, "loss (nats per token)"), (speeds, "tokens per second"), (rates, "learning rate")):
        panel.set_ylabel(name)
        panel.grid(alpha=0.3)
    losses.legend()
    rates.set_xlabel("optimizer step")
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, metadata={"Date": None} if output.suffix == ".svg" else None)
    plt.close(figure)


def _draw_losses(panel: Any, label: str, history: History, style: dict[str, str]) -> None:
    panel.plot(*history.series("loss"), linewidth=1.4, label=label, **style)
    if history.evaluations:
        points = zip(*sorted(history.evaluations.items()), strict=True)
        panel.plot(*points, "o", color=style["color"], markersize=4, label=f"{label}, held out")
    for start in history.starts[1:]:
        panel.axvline(start["step"] + 0.5, color=style["color"], linewidth=0.8, linestyle=":")


def _speed(history: History) -> str:
    """Median throughput, and utilisation where it is known."""
    rates, utilisation = history.series("tokens_per_second")[1], history.series("mfu")[1]
    return f"{median(rates):,.0f} tokens/s" + (f", MFU {median(utilisation):.1%}" if utilisation else "")


def _label(path: Path, taken: dict[str, History]) -> str:
    """Name of the run's folder, or the whole path where two runs have one name."""
    name = path.resolve().parent.name
    return str(path) if name in taken else name


def _fail(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
