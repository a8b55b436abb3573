"""Everything the local stack runs on: Python environments, tools built from pinned Go modules, and which of them are in use."""
