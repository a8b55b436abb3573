"""Serve the pack to the Pulumi engine: `pulumi preview --policy-pack policy`."""

from pulumi_policy import PolicyPack

from guardrails import PACK_NAME, policies

PolicyPack(name=PACK_NAME, policies=policies())
