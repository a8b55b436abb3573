"""The form every component of Trainyard keeps: its type token and the options of its children."""

from collections.abc import Sequence
from typing import Any

import pulumi

PACKAGE = "trainyard"


def token(area: str, class_name: str) -> str:
    """Return the type token of a component: `area` is the name of its folder, `class_name` that of its class.

    The token is part of the URN of every resource below the component: renaming an area or a class needs an alias.
    """
    return f"{PACKAGE}:{area}:{class_name}"


def child_options(parent: pulumi.Resource, *, depends_on: Sequence[pulumi.Resource] = (), **extra: Any) -> pulumi.ResourceOptions:
    """Return options for a child of `parent`.

    Providers come to the child through its parent, so they are never given here. `depends_on` is for order that outputs cannot carry;
    every other option needs its reason at the place of use.
    """
    return pulumi.ResourceOptions(parent=parent, depends_on=list(depends_on) or None, **extra)
