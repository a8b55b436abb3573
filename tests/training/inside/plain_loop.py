"""The shortest loop that trains a model of the library: transformers, peft and AdamW, with nothing of ours but the numbers it is given.

`SETTINGS`, a JSON file: folder, text, length, samples, steps, lr (one per step), weight_decay, clip_norm, adapter (start values), output.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F


def main(arguments: list[str]) -> int:
    """Train on the first samples of the text, all of them in each step, and write each step's loss before the update."""
    torch.set_num_threads(1)
    settings = json.loads(Path(arguments[0]).read_text())
    model = load(settings)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in trained if parameter.dim() >= 2], "weight_decay": settings["weight_decay"]},
        {"params": [parameter for parameter in trained if parameter.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], betas=(0.9, 0.95), eps=1e-8)
    length, samples = settings["length"], settings["samples"]
    text = torch.tensor(list(Path(settings["text"]).read_bytes()))
    tokens, targets = (text[start : start + samples * length].view(samples, length) for start in (0, 1))
    losses = []
    for lr in settings["lr"]:
        loss = F.cross_entropy(model(input_ids=tokens).logits.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, settings["clip_norm"])
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    Path(settings["output"]).write_text(json.dumps(losses))
    return 0


def load(settings: dict) -> Any:
    """The model, with an adapter that starts from given values if the settings name a file of them."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(settings["folder"], dtype=torch.float32).train()
    if settings["adapter"]:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, settings["adapter"], is_trainable=True)
    return model
