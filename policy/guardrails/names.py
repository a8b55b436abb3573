"""Names that become host names."""

import re

HOST_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
"""What Kubernetes takes for the name of a service or a pod that is reached by name (RFC 1035): a letter first."""
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What it takes for the name of an object (RFC 1123 subdomain), whose length is bounded elsewhere."""
