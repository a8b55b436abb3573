"""The kinds of job. A new one is a module with a subclass of TrainingJob, its word in `workloads.spec.Kind` and a line here."""

from workloads.job import TrainingJob
from workloads.mpi_job import MpiJob
from workloads.spec import Kind
from workloads.volcano_job import VolcanoJob

KINDS: dict[Kind, type[TrainingJob]] = {"mpi": MpiJob, "volcano": VolcanoJob}
