"""One command's view of a stack: the engine, the two stacks, and the local stack below them where there is one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.paths import state_dir
from local.progress import Progress
from local.stack import LocalStack, Running
from local.toolchain.engine import engine_environment
from local.toolchain.tools import ENGINE, ensure
from trainyard.engine import Engine
from trainyard.project import LOCAL_STACK, PLATFORM, WORKLOADS, merge, read_config, write_effective_config
from trainyard.stack import Stack


@dataclass(kw_only=True)
class Session:
    """What a command works with."""

    stack: str
    progress: Progress
    engine: Engine
    platform: Stack
    workloads: Stack
    settings: Mapping[str, Any]
    """The platform's configuration as it stands in its stack file, keyed `trainyard:<section>`."""
    below: LocalStack | None = None
    running: Running | None = None
    aws_endpoint: str | None = None
    """The emulator's URL; None is AWS."""

    @property
    def is_local(self) -> bool:
        """Whether the stack runs on this machine."""
        return self.below is not None


def log_file(command: str) -> Path:
    """Where a command's output goes."""
    return state_dir() / "logs" / f"{command}.log"


def open_session(stack: str, progress: Progress, *, start: bool, overrides: Mapping[str, Any] | None = None) -> Session:
    """Have the tools of the engine, and on `local` what the stack runs on; `start` decides whether a node is made where none is.

    `overrides` are settings of the platform on top of the local stack's file.

    Raises:
        LocalStackError: something can't be had or does not start.
    """
    ensure([ENGINE], progress)
    if stack != LOCAL_STACK:
        engine = Engine(environment=engine_environment(local=False), log=progress.log)
        platform = Stack(project=PLATFORM, name=stack, engine=engine)
        workloads = Stack(project=WORKLOADS, name=stack, engine=engine)
        settings = read_config(PLATFORM.config_file(stack))
        return Session(stack=stack, progress=progress, engine=engine, platform=platform, workloads=workloads, settings=settings)
    below = LocalStack()
    existing = _existing_cluster(overrides)
    running = below.start(progress, existing=existing) if start or below.was_started() else None
    aws = running.aws if running else below.start_aws(progress)
    engine = Engine(environment={**engine_environment(), **aws.environment}, log=progress.log)
    platform_config = write_effective_config(PLATFORM, merge(_platform_settings(running, aws.url), overrides or {}))
    workloads_config = write_effective_config(WORKLOADS, _workloads_settings(running))
    return Session(
        stack=stack,
        progress=progress,
        engine=engine,
        platform=Stack(project=PLATFORM, name=stack, engine=engine, config=platform_config),
        workloads=Stack(project=WORKLOADS, name=stack, engine=engine, config=workloads_config),
        settings=read_config(platform_config),
        below=below,
        running=running,
        aws_endpoint=aws.url,
    )


def _platform_settings(running: Running | None, endpoint: str) -> Mapping[str, Any]:
    """What only this machine knows of the platform's settings. Without a node the cluster is as unknown as on a new AWS account."""
    found: dict[str, Any] = {"trainyard:aws": {"endpoint": endpoint}}
    if running:
        environment = {**running.aws.environment, "AWS_ENDPOINT_URL": running.aws.node_url or running.aws.url}
        found["trainyard:kubernetes"] = {"kubeconfig": str(running.kubeconfig)}
        found["trainyard:addons"] = {
            "karpenter": {
                "chart": str(running.charts["karpenter-chart"]),
                "crdChart": str(running.charts["karpenter-crd-chart"]),
                "env": environment,
                # The image made here has a digest of its own; the chart's is that of the published one.
                "values": {"controller": {"image": {"digest": ""}}},
            },
            "volcano": {"chart": str(running.charts["volcano-chart"])},
            "mpiOperator": {"manifest": str(running.charts["mpi-operator-manifest"])},
        }
    return found


def _workloads_settings(running: Running | None) -> Mapping[str, Any]:
    return {"trainyard-workloads:image": running.node.trainer_image} if running and running.node else {}


def _existing_cluster(overrides: Mapping[str, Any] | None) -> Path | None:
    """The kubeconfig that the settings name, where a cluster that is there already is to be used."""
    settings = merge(read_config(PLATFORM.config_file(LOCAL_STACK)), overrides or {})
    named = (settings.get("trainyard:kubernetes") or {}).get("kubeconfig")
    return Path(named).expanduser() if named else None
