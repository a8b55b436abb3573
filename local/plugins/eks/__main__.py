"""The plug-in's process: `python -m local.plugins.eks <engine address>` (what the engine starts as `pulumi-resource-eks`)."""

import sys

from pulumi.provider import main

from local.plugins.eks.provider import EksProvider

if __name__ == "__main__":
    main(EksProvider(), sys.argv[1:])
