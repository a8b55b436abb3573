"""The random generators of one rank: seeded apart from the other ranks', saved and restored exactly."""

import json
import random
from typing import Any

import numpy as np
import torch


def seed_generators(seed: int, rank: int, step: int = 0) -> None:
    """Seed python, numpy and torch (CPU and GPU) from the run's seed, the rank and the step."""
    entropy = np.random.SeedSequence([seed, rank, step])
    first, second, third = (int(word) for word in entropy.generate_state(3))
    random.seed(first)
    np.random.seed(second)
    torch.manual_seed(third)


def generators_to_json() -> str:
    """State of every generator of this process."""
    algorithm, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": [algorithm, np.asarray(keys).tolist(), position, has_gauss, gauss],
        "torch": torch.get_rng_state().numpy().tobytes().hex(),
        "cuda": [device.numpy().tobytes().hex() for device in devices],
        "device": torch.cuda.current_device() if devices else None,
    }
    return json.dumps(state)


def generators_from_json(text: str) -> None:
    """Restore what `generators_to_json` gave."""
    state = json.loads(text)
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    algorithm, keys, *rest = state["numpy"]
    np.random.set_state((algorithm, np.array(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(_tensor(state["torch"]))
    devices = [_tensor(device) for device in state["cuda"]]
    if devices and torch.cuda.device_count() == len(devices):
        torch.cuda.set_rng_state_all(devices)
    elif devices and torch.cuda.is_available():
        # The launcher shows ranks other devices than before; what this rank drew from is what must go on.
        torch.cuda.set_rng_state(devices[state["device"]])


def _tensor(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)
