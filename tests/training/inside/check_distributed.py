"""Which backend a rank takes, and why."""

import pytest

from training.distributed import choose_backend
from training.schema import ConfigError

pytestmark = pytest.mark.training


@pytest.mark.parametrize(
    ("requested", "num_gpus", "backend", "reason"),
    [
        ("auto", 0, "gloo", "no GPU visible"),
        ("auto", 1, "nccl", "1 GPUs visible"),
        ("auto", 8, "nccl", "8 GPUs visible"),
        ("gloo", 0, "gloo", "set in distributed.backend"),
        ("gloo", 8, "gloo", "set in distributed.backend"),
        ("nccl", 8, "nccl", "set in distributed.backend"),
    ],
)
def test_the_backend_follows_the_gpus_unless_it_is_set(requested: str, num_gpus: int, backend: str, reason: str) -> None:
    assert choose_backend(requested, num_gpus) == (backend, reason)


def test_nccl_without_a_gpu_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"distributed.backend: .*nccl.*auto or gloo: nccl needs a GPU and this rank sees none"):
        choose_backend("nccl", 0)
