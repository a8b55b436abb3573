"""The form of every kind of job: one ConfigMap with the run, one object that a controller turns into pods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pulumi
import pulumi_kubernetes as kubernetes

from infra.component import child_options, token
from infra.outputs import PlatformOutputs
from workloads import contract
from workloads.errors import JobError
from workloads.naming import content_name
from workloads.place import Platform
from workloads.plan import JobPlan, plan_job
from workloads.pod import job_labels
from workloads.spec import JobSpec


@dataclass(frozen=True, kw_only=True)
class JobArgs:
    """A job and where it goes."""

    spec: JobSpec
    """The job."""
    platform: PlatformOutputs
    """Outputs of the platform's stack."""
    image: str | None = None
    """Trainer image of jobs that name none."""
    path: str = "job"
    """Where the job stands in the settings; messages start with it."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A job's object, as a function of its name and its ConfigMap's."""

    api_version: str
    """API group and version."""
    object_kind: str
    """Kind of the object."""
    scripts: tuple[str, ...]
    """Scripts that the pods run from the ConfigMap."""
    spec: Callable[[JobPlan, str, str], dict[str, Any]]
    """The object's spec from the plan, the object's name and the ConfigMap's name."""


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A job's two objects, ready to be sent."""

    name: str
    """Name of both objects; carries the hash of their content."""
    labels: Mapping[str, str]
    """Labels of both objects."""
    data: Mapping[str, str]
    """Content of the ConfigMap."""
    spec: Mapping[str, Any]
    """Spec of the job's object."""


def render(plan: JobPlan, manifest: Manifest) -> Rendered:
    """Return the objects of a job. A change of anything in them changes their name."""
    scripts = {name: contract.script(name) for name in manifest.scripts}
    data = {contract.CONFIG_FILE: plan.train.to_json(), **scripts}
    neutral = [plan.spec.attempt, data, manifest.spec(plan, plan.spec.name, plan.spec.name)]
    name = content_name(plan.spec.name, neutral)
    return Rendered(name=name, labels=job_labels(plan), data=data, spec=manifest.spec(plan, name, name))


class TrainingJob(pulumi.ComponentResource):
    """A training job. Kinds are its subclasses; each brings its manifest."""

    manifest: ClassVar[Manifest]

    job_name: pulumi.Output[str]
    """Name of the job's object in the cluster."""
    namespace: pulumi.Output[str]
    """Its namespace."""
    world_size: pulumi.Output[int]
    """Ranks in all."""
    global_batch: pulumi.Output[int]
    """Samples per optimizer step."""
    run_directory: pulumi.Output[str]
    """Folder of the run's checkpoints and metrics, as the pods see it."""

    def __init__(self, name: str, args: JobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {"spec": args.spec.model_dump(mode="json", by_alias=True, exclude_none=True), "image": args.spec.image or args.image}
        super().__init__(token("workloads", type(self).__name__), name, props, opts)
        plan = Platform.resolve(args.platform).apply(lambda platform: self._plan(args, platform))
        rendered = plan.apply(lambda known: render(known, self.manifest))
        config = self._create_config(name, plan, rendered)
        self._create_job(name, plan, rendered, config)
        self.job_name = rendered.apply(lambda known: known.name)
        self.namespace = plan.apply(lambda known: known.platform.namespace)
        self.world_size = plan.apply(lambda known: known.world.size)
        self.global_batch = plan.apply(lambda known: known.batch.global_batch)
        self.run_directory = plan.apply(lambda known: str(known.train.run_directory))
        self.register_outputs(
            {
                "job_name": self.job_name,
                "namespace": self.namespace,
                "world_size": self.world_size,
                "global_batch": self.global_batch,
                "run_directory": self.run_directory,
            }
        )

    def _plan(self, args: JobArgs, platform: Platform) -> JobPlan:
        """Plan the job; what its author has to change, or had better, reaches them as a message, at preview."""
        try:
            plan = plan_job(args.spec, platform, image=args.image)
        except JobError as error:
            raise pulumi.RunError(str(error.under(args.path))) from None
        for warning in plan.warnings:
            pulumi.log.warn(f"{args.path}.train.{warning}", self)
        return plan

    def _create_config(self, name: str, plan: pulumi.Output[JobPlan], rendered: pulumi.Output[Rendered]) -> kubernetes.core.v1.ConfigMap:
        return kubernetes.core.v1.ConfigMap(
            f"{name}-config",
            metadata=_metadata(plan, rendered),
            data=rendered.apply(lambda known: dict(known.data)),
            immutable=True,
            opts=child_options(self),
        )

    def _create_job(
        self, name: str, plan: pulumi.Output[JobPlan], rendered: pulumi.Output[Rendered], config: kubernetes.core.v1.ConfigMap
    ) -> kubernetes.apiextensions.CustomResource:
        return kubernetes.apiextensions.CustomResource(
            f"{name}-job",
            api_version=self.manifest.api_version,
            kind=self.manifest.object_kind,
            metadata=_metadata(plan, rendered),
            spec=rendered.apply(lambda known: dict(known.spec)),
            # Pods mount the ConfigMap by name, which the engine cannot see in the spec.
            # The old job goes first: two of them would need twice the nodes and write to the same checkpoints.
            opts=child_options(self, depends_on=[config], delete_before_replace=True),
        )


def _metadata(plan: pulumi.Output[JobPlan], rendered: pulumi.Output[Rendered]) -> kubernetes.meta.v1.ObjectMetaArgs:
    return kubernetes.meta.v1.ObjectMetaArgs(
        name=rendered.apply(lambda known: known.name),
        namespace=plan.apply(lambda known: known.platform.namespace),
        labels=rendered.apply(lambda known: dict(known.labels)),
    )
