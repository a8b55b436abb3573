"""Peak rates: found by the driver's name for the device, and None where nothing is known."""

import pytest

from training.peaks import PEAKS, peak_flops

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("NVIDIA H200", 989),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA B200", 2250),
        ("NVIDIA GB200", 2500),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
        ("Tesla T4", None),
        ("Tesla V100-SXM2-16GB", None),
        ("NVIDIA GeForce RTX 4090", None),
        ("NVIDIA A10G", None),
    ],
)
def test_bf16_peak_of_a_device(name: str, tflops: int | None) -> None:
    assert peak_flops(name, "bf16") == (None if tflops is None else tflops * 1e12)


def test_half_precision_is_never_slower_than_single() -> None:
    assert all(peak.fp16 > peak.fp32 for peak in PEAKS)
