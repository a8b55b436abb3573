"""What the precisions of a configuration are to torch."""

import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""By the names that `engine.precision` takes."""
