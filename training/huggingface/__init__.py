"""Causal language models of the transformers library, from a folder or a hub, on the same engines, loop and checkpoints."""
