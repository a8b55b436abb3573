"""What the pack is called, for everyone who shows it."""

PACK_NAME = "trainyard-guardrails"
VERSION = "0.1.0"
