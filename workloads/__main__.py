"""Composition root of the jobs program: reads the settings, finds the platform, places each job."""

import pulumi
import pulumi_kubernetes as kubernetes

from infra import labels
from infra.outputs import PlatformOutputs
from workloads.job import JobArgs
from workloads.kinds import KINDS
from workloads.settings import PROJECT, Settings

settings = Settings.load()
platform = PlatformOutputs.from_stack(settings.platform)
provider = kubernetes.Provider("platform", kubeconfig=platform.kubeconfig)

jobs: dict[str, dict[str, object]] = {}
for index, spec in enumerate(settings.jobs):
    args = JobArgs(spec=spec, platform=platform, image=settings.image, path=f"{PROJECT}:jobs[{index}]")
    job = KINDS[spec.kind](spec.name, args, opts=pulumi.ResourceOptions(providers=[provider]))
    jobs[spec.name] = {
        "kind": spec.kind,
        "job": job.job_name,
        "namespace": job.namespace,
        "selector": f"{labels.JOB_NAME}={spec.name}",
        "world_size": job.world_size,
        "global_batch": job.global_batch,
        "run_directory": job.run_directory,
    }

pulumi.export("jobs", jobs)
