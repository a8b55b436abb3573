"""A program that ranks run in place of the trainer: the trainer, which prints the most that its parameters took while they were made."""

import gc

import torch

from training import train
from training.model import Transformer


def main(arguments: list[str]) -> int:
    """`<the trainer's arguments>`; under ZeRO-3."""
    from deepspeed.runtime.zero.partition_parameters import Init

    convert, most, models = Init._convert_to_deepspeed_param, [0], []

    def note(division: Init, parameter: torch.nn.Parameter) -> None:
        convert(division, parameter)
        if not models:
            models.extend(found for found in gc.get_objects() if isinstance(found, Transformer))
        most[0] = max(most[0], sum(map(_bytes_of_parameters, models)))

    Init._convert_to_deepspeed_param = note
    code = train.main(arguments)
    print(f"at most {most[0]} bytes", flush=True)
    return code


def _bytes_of_parameters(model: torch.nn.Module) -> int:
    """Of all that are not on the meta device, and of the parts that this rank keeps of them."""
    parameters = [parameter for parameter in model.parameters() if not parameter.is_meta]
    parts = [part for parameter in parameters if (part := getattr(parameter, "ds_tensor", None)) is not None]
    return sum(tensor.untyped_storage().nbytes() for tensor in (*parameters, *parts))
