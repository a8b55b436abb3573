"""The jobs program: job specifications, one component per kind of job, and the pure functions that turn the first into the second."""
