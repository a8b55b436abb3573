"""Names that become host names."""

import re

HOST_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
"""What Kubernetes takes for the name of a service or a pod that is reached by name (RFC 1035): a letter first."""
