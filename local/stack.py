"""The whole local stack as one thing: tools, images, AWS emulator, Kubernetes node, and what ties them together."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra import labels
from local.account import prepare_account
from local.aws.emulator import Emulator, Endpoint
from local.errors import LocalStackError
from local.images.catalogue import controller_images
from local.images.trainer import trainer_image
from local.node.layout import Layout
from local.node.node import Node
from local.paths import REPOSITORY, cache_dir, state_dir
from local.process import find_daemon, start_daemon
from local.progress import Progress
from local.toolchain.environments import training_environment
from local.toolchain.system import NODE_PACKAGES, ensure_packages
from local.toolchain.tools import CHARTS, CLUSTER, CONTROLLERS, ensure

SYSTEM_POOL = "system"
BIND_VARIABLE = "TRAINYARD_BIND"
"""Private address of this machine on which the emulator answers too, for the controllers of an existing cluster."""
EMULATED = (
    "AWS: every API call goes to an emulator on loopback; nothing costs anything and no instance runs",
    "EKS: the control plane is real Kubernetes on this machine; managed add-ons are records in the emulator",
    "Karpenter: the real controller launches instances in the emulator; their nodes and pods are simulated by kwok",
    "Lustre and EFS: file systems are records in the emulator; claims are mounted as folders of this machine by a stand-in CSI node",
    "Device plug-ins: their DaemonSets are created and match no node here, since there is no device",
)
"""What `make up` says of its limits."""


@dataclass(frozen=True, kw_only=True)
class NodeParts:
    """What comes with a node of our own, and a cluster that was there before lacks."""

    trainer_image: str
    training_python: Path
    """Interpreter of the training environment, the one that pods use."""
    volumes: Path
    """Folder that holds, per CSI driver and volume handle, what pods see in their claims."""


@dataclass(frozen=True, kw_only=True)
class Running:
    """What a started local stack offers to the programs that run on it."""

    aws: Endpoint
    kubeconfig: Path
    charts: Mapping[str, Path]
    node: NodeParts | None
    """None where an existing cluster takes the node's place."""


class LocalStack:
    """The local stack of one state folder."""

    def __init__(self, state: Path | None = None) -> None:
        self.state = state or state_dir()
        self.emulator = Emulator(self.state / "aws")
        self._node_state = self.state / "node"
        self._registrar = self.state / "registrar.pid"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; there once the node was started."""
        return Layout(self._node_state).kubeconfig

    @property
    def volumes(self) -> Path:
        """Folder of the claims' contents."""
        return Layout(self._node_state).volumes

    def start(self, progress: Progress, *, existing: Path | None = None) -> Running:
        """Have everything running; what runs already is left alone. `existing` is the kubeconfig of a cluster to use instead of a node.

        Raises:
            LocalStackError: the machine lacks something, a build failed, or a part does not come up.
        """
        charts = dict(ensure([CHARTS], progress))
        if existing:
            if not existing.is_file():
                raise LocalStackError(f"trainyard:kubernetes.kubeconfig = {existing}: there is no such file on this machine")
            aws = self.start_aws(progress, also_bind=os.environ.get(BIND_VARIABLE))
            return Running(aws=aws, kubeconfig=existing, charts=charts, node=None)
        ensure_packages(NODE_PACKAGES)
        tools = ensure([CLUSTER, CONTROLLERS], progress)
        environment = training_environment(progress)
        out = cache_dir() / "images"
        archives = controller_images(tools, charts, out, progress)
        trainer = trainer_image(out, REPOSITORY / "training", progress)
        node = self.node(tools, environment)
        node.start(progress)
        with progress.step("load container images"):
            node.import_images([*(archive.path for archive in archives), trainer.path])
        aws = self.start_aws(progress, also_bind=node.host_ip)
        self._start_registrar(aws)
        parts = NodeParts(trainer_image=trainer.reference, training_python=environment / "bin" / "python", volumes=self.volumes)
        return Running(aws=aws, kubeconfig=node.kubeconfig, charts=charts, node=parts)

    def start_aws(self, progress: Progress, also_bind: str | None = None) -> Endpoint:
        """Have the emulator running, with what every account has; enough for a preview."""
        endpoint = self.emulator.start(progress, also_bind=also_bind)
        prepare_account(endpoint)
        return endpoint

    def node(self, binaries: Mapping[str, Path], trainer_env: Path | None = None) -> Node:
        """The Kubernetes node; it plays the part of the platform's system pool, in the region's first zone."""
        region = self.emulator.region
        node_labels = {labels.POOL: SYSTEM_POOL, labels.REGION: region, labels.ZONE: f"{region}a", labels.CAPACITY_TYPE: "on-demand"}
        return Node(self._node_state, binaries, trainer_env=trainer_env, labels=node_labels)

    def stop(self) -> None:
        """End every process; data stays for the next start."""
        registrar = find_daemon(self._registrar)
        if registrar:
            registrar.stop()
        Node(self._node_state, {}).stop()
        self.emulator.stop()

    def destroy(self) -> None:
        """End every process and remove the data of node and emulator."""
        self.stop()
        Node(self._node_state, {}).destroy()
        self.emulator.forget()

    def was_started(self) -> bool:
        """Whether a node of this state folder exists, running or not."""
        return self.kubeconfig.exists()

    def _start_registrar(self, aws: Endpoint) -> None:
        if find_daemon(self._registrar):
            return
        start_daemon(
            [sys.executable, "-m", "local.registrar", "--kubeconfig", self.kubeconfig, "--endpoint", aws.url, "--region", aws.region],
            log=self.state / "logs" / "registrar.log",
            pid_file=self._registrar,
            cwd=REPOSITORY,
        )
