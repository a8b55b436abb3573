"""Valid settings, and recordings of the program under mocks; each test changes one thing."""

import copy
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pulumi
import yaml

from infra.settings import PlatformSettings, parse
from tests.recording import Recording, record

ROOT = Path(__file__).parents[3]
Raw = dict[str, Any]

# An output put into text raises, where it would else leave a warning in place of the value.
os.environ["PULUMI_ERROR_OUTPUT_STRING"] = "true"

_VALID: Raw = {
    "aws": {"region": "us-east-1"},
    "network": {"zones": ["us-east-1a", "us-east-1b", "us-east-1c"]},
    "cluster": {"name": "trainyard", "admins": [{"name": "admin", "principalArn": "arn:aws:iam::123456789012:role/admin"}]},
    "pools": [
        {
            "name": "p5",
            "instanceType": "p5.48xlarge",
            "zone": "us-east-1a",
            "efa": True,
            "placement": {"kind": "group"},
            "maxNodes": 4,
        }
    ],
    "storage": {
        "lustre": {
            "deploymentType": "PERSISTENT_2",
            "zone": "us-east-1a",
            "storageCapacityGib": 1200,
            "perUnitStorageThroughput": 125,
        },
        "efs": {"accessPoints": [{"name": "home", "path": "/home"}]},
    },
}


def valid(change: Callable[[Raw], Any] = lambda raw: None) -> Raw:
    """Return valid settings as plain data, after `change` has had its way with them."""
    raw = copy.deepcopy(_VALID)
    change(raw)
    return raw


def settings(change: Callable[[Raw], Any] = lambda raw: None) -> PlatformSettings:
    """Return valid settings, changed."""
    return parse(valid(change))


def stack_file(stack: str) -> Raw:
    """Return the settings of a committed stack file as plain data."""
    config = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    return {key.removeprefix("trainyard:"): value for key, value in config.items()}


def run_platform(raw: Mapping[str, Any], *, resolved: bool) -> Recording:
    """Record the whole platform that these settings describe, as the program at the root makes it."""
    from infra.platform import Platform
    from infra.providers import aws_provider

    found = parse(raw)

    def program() -> None:
        provider = aws_provider(found.aws)
        Platform(found.cluster.name, found, pulumi.ResourceOptions(providers=[provider])).outputs.export()

    return record(program, resolved=resolved)


def platform(*, resolved: bool = True) -> Recording:
    """Record the platform of the valid settings, once per test run."""
    return _recorded(resolved)


@cache
def _recorded(resolved: bool) -> Recording:
    return run_platform(valid(), resolved=resolved)
