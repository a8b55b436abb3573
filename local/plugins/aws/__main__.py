"""The plug-in's process: `python -m local.plugins.aws` (what the engine starts as `pulumi-resource-aws`)."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType


def _without_sdk() -> None:
    """Make the protocol's generated code importable without the Pulumi SDK around it, which would cost half of the start-up."""
    spec = PathFinder.find_spec("pulumi")
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent
    for name, place in (("pulumi", folder), ("pulumi.runtime", folder / "runtime"), ("pulumi.runtime.proto", folder / "runtime" / "proto")):
        package = ModuleType(name)
        package.__path__ = [str(place)]
        sys.modules[name] = package


if __name__ == "__main__":
    _without_sdk()
    from local.plugins.aws.serve import serve

    serve()
