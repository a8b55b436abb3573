"""The learning rate as a pure function of the optimizer step, so that neither accumulation nor a resume can move it."""

import math


def learning_rate(step: int, *, peak: float, warmup_steps: int, decay_steps: int, floor: float) -> float:
    """Rate used by optimizer step `step`, counted from 0.

    Rises linearly so that step `warmup_steps` is the first at the peak, falls by a half cosine to `floor * peak` at `decay_steps`, and
    stays there: progress is bounded, so the cosine never turns up again after the horizon.
    """
    if step < 0 or not 0 <= warmup_steps < decay_steps:
        raise ValueError(f"step {step}, warmup_steps {warmup_steps}, decay_steps {decay_steps}: need step >= 0 and 0 <= warmup < decay")
    if step < warmup_steps:
        return peak * (step + 1) / (warmup_steps + 1)
    progress = min(1.0, (step - warmup_steps) / (decay_steps - warmup_steps))
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))
