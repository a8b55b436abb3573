"""The form all settings models keep: camelCase keys, no unknown ones, no silent conversion, immutable."""

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    """Base of every settings model."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True, strict=True, use_attribute_docstrings=True
    )


# A name that Kubernetes, EKS and IAM all accept.
DnsName = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]{0,40}[a-z0-9])?$")]
# Go duration in the units Karpenter's CRDs allow where only hours and minutes count.
Duration = Annotated[str, StringConstraints(pattern=r"^([0-9]+(s|m|h))+$")]
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(duration: str) -> int:
    """Return a Duration in seconds."""
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smh])", duration))
