"""The platform program: settings in, platform made, contract out."""

import pulumi

from infra.outputs import PlatformOutputs
from infra.platform import Platform
from infra.providers import aws_provider
from infra.settings import PlatformSettings, load


def main(settings: PlatformSettings) -> PlatformOutputs:
    """Make the platform that `settings` describe and export its contract."""
    provider = aws_provider(settings.aws)
    platform = Platform(settings.cluster.name, settings, pulumi.ResourceOptions(providers=[provider]))
    platform.outputs.export()
    return platform.outputs


# Wrong settings are a pulumi.RunError: the engine shows their list, and no traceback.
main(load())
