"""Peak rates of accelerators: what a matrix product could reach at most, without sparsity. Data; standard library only.

From NVIDIA's data sheets of each product (read 2026-11), which give tensor-core rates with sparsity where the footnote says so; those are
halved here. fp32 is the rate without TF32, which the trainer does not switch on.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Peak:
    """Rates of one product in TFLOP/s; None where it has no such unit."""

    words: tuple[str, ...]
    """All of them are in the name that the driver gives, in any case."""
    bf16: float | None
    fp16: float
    fp32: float


# The first that fits counts: variants of a product come before the product.
PEAKS = (
    Peak(("gb200",), 2500.0, 2500.0, 80.0),
    Peak(("b200",), 2250.0, 2250.0, 75.0),
    Peak(("h200", "nvl"), 835.0, 835.0, 60.0),
    Peak(("h200",), 989.0, 989.0, 67.0),
    Peak(("gh200",), 989.0, 989.0, 67.0),
    Peak(("h100", "nvl"), 835.0, 835.0, 60.0),
    Peak(("h100", "pcie"), 756.0, 756.0, 51.0),
    Peak(("h100",), 989.0, 989.0, 67.0),
    Peak(("a100",), 312.0, 312.0, 19.5),
    Peak(("l40s",), 362.0, 362.0, 91.6),
    Peak(("l4",), 121.0, 121.0, 30.3),
    Peak(("v100",), None, 125.0, 15.7),
    Peak(("t4",), None, 65.0, 8.1),
)


def peak_flops(device_name: str, precision: str) -> float | None:
    """Operations per second of a device in fp32, fp16 or bf16; None where it is not known, so that nothing is made up."""
    words = device_name.lower().replace("-", " ").split()
    for peak in PEAKS:
        if all(any(word == part or word.startswith(f"{part}_") for word in words) for part in peak.words):
            rate = getattr(peak, precision)
            return None if rate is None else rate * 1e12
    return None
