"""Facts the rules rest on, as data with source and date."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@cache
def load(name: str) -> Mapping[str, Any]:
    """The facts in `<name>.json`, with `source` and `date`."""
    return json.loads((_FOLDER / f"{name}.json").read_text())


@dataclass(frozen=True)
class InstanceType:
    """What an EC2 instance type offers a training pod."""

    name: str
    accelerator: str
    count: int
    """Accelerators of the instance."""
    efa: int
    """Most EFA interfaces of the instance; 0 where it has none."""
    cards: int
    """Network cards."""

    @property
    def counted_as(self) -> tuple[str, ...]:
        """The resources in which Kubernetes counts the accelerators, the one that pods ask for first."""
        neuron = self.accelerator.startswith(("Trainium", "Inferentia"))
        return ("aws.amazon.com/neuron", "aws.amazon.com/neuroncore") if neuron else ("nvidia.com/gpu",)


@cache
def instance_types() -> dict[str, InstanceType]:
    """Accelerated instance types by name."""
    data = json.loads((_FOLDER / "instances.json").read_text())
    return {name: InstanceType(name=name, **fields) for name, fields in data["types"].items()}


@cache
def lustre_throughput() -> dict[str, list[int]]:
    """`<deployment type>/<storage type>` -> legal MB/s per TiB."""
    return json.loads((_FOLDER / "lustre.json").read_text())["throughput"]


@cache
def custom_resource_schemas() -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Type token -> schema of the custom resource, and the parts that schemas refer to by `$ref`."""
    data = json.loads((_FOLDER / "crds.json").read_text())
    return data["kinds"], data["shared"]


@cache
def efa_interfaces() -> Mapping[str, int]:
    """Most EFA interfaces of every instance type that is known, 0 where it has none."""
    fleet = {f"{family}.{size}": count for family, sizes in load("fleet")["efa"].items() for size, count in sizes.items()}
    return {**fleet, **{name: instance.efa for name, instance in instance_types().items()}}


def network_cards(name: str) -> int:
    """Network cards of an instance type; most have one."""
    instance = instance_types().get(name)
    return instance.cards if instance else load("fleet")["cards"].get(name, 1)


def first_efa_card(name: str) -> int:
    """The first network card of an instance type that takes EFA; most begin with card 0."""
    return load("instances")["firstEfaCard"].get(name, 0)
