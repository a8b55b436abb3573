"""Serve the pack to the Pulumi engine: `pulumi preview --policy-pack policy`."""

from guardrails import RULES
from guardrails.server import serve
from guardrails.service import Service

serve(Service(RULES))
