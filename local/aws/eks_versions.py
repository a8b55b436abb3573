"""Kubernetes versions that EKS offers, newest last, and their platform version. Checked 2026-11-29.

The newest three are in standard support, the two before in extended support.
"""

from infra.versions import KUBERNETES

KUBERNETES_VERSIONS = ("1.32", "1.33", "1.34", "1.35", "1.36")
DEFAULT_VERSION = KUBERNETES
STANDARD_SUPPORT = KUBERNETES_VERSIONS[-3:]
