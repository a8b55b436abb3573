"""Checks of hosts and links inside the job, before any weight is made; `python -m training.preflight` runs them alone."""
