"""Stacks to kill: the AWS half of the platform on an emulator of its own, or the whole platform on a whole local stack."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes import client, config
from rich.console import Console

from local.account import prepare_account
from local.aws.emulator import Emulator
from local.aws.inventory import emulator_session, inventory
from local.paths import REPOSITORY
from local.progress import Progress
from local.toolchain.engine import engine_environment
from tests.engine.pulumi_project import runtime_file
from trainyard.engine import Engine
from trainyard.project import LOCAL_STACK, PLATFORM, Project, merge, read_config
from trainyard.session import Session, open_session
from trainyard.stack import Stack

PROGRAM = REPOSITORY / "tests" / "engine" / "programs" / "aws_part" / "__main__.py"


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A stack and what is below it."""

    session: Session
    stack: Stack
    endpoint: str
    before: frozenset[str]
    """What account and cluster hold before any run."""

    def left(self) -> frozenset[str]:
        """What a destroy left behind."""
        return holdings(self.session, self.endpoint) - self.before

    def cut_short(self) -> list[str]:
        """What AWS makes by more than one call and has only half of."""
        ec2, iam = (emulator_session().client(service, endpoint_url=self.endpoint) for service in ("ec2", "iam"))
        gateways = [each["InternetGatewayId"] for each in ec2.describe_internet_gateways()["InternetGateways"] if not each["Attachments"]]
        profiles = [each["InstanceProfileName"] for each in iam.list_instance_profiles()["InstanceProfiles"] if not each["Roles"]]
        untagged = [str(each) for each in inventory(self.endpoint) if each.kind == "s3 bucket" and not each.tags]
        return [*gateways, *profiles, *untagged]

    @property
    def environment(self) -> Mapping[str, str]:
        """The engine's environment."""
        return self.stack.engine.environment

    def run_whole(self) -> None:
        """Run the command that gets killed to its end."""
        with self.session.progress.log.open("ab") as log:
            subprocess.run(self.argv(), cwd=self.stack.project.folder, env=dict(self.environment), stdout=log, stderr=log, check=True)

    def argv(self) -> list[str]:
        """The command that gets killed: what `make up` runs after its preview."""
        words = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--stack", self.stack.name]
        return [*words, "--config-file", str(self.stack.config)]


def holdings(session: Session, endpoint: str) -> frozenset[str]:
    """Everything in the account; in the cluster, namespaces and the records of Helm releases."""
    found = {str(each) for each in inventory(endpoint)}
    if session.running:
        api = config.new_client_from_config(config_file=str(session.running.kubeconfig))
        core = client.CoreV1Api(api)
        listed = (core.list_namespace(), core.list_secret_for_all_namespaces(label_selector="owner=helm"))
        items = (item for each in listed for item in api.sanitize_for_serialization(each)["items"])
        found |= {f"{item['metadata'].get('namespace', 'namespace')} {item['metadata']['name']}" for item in items}
    return frozenset(found)


def aws_ground(folder: Path, emulator: Emulator) -> Ground:
    """The AWS half in `folder`. TRAINYARD_STATE must be set."""
    aws = emulator.start()
    prepare_account(aws)
    project = Project(name=PLATFORM.name, title="platform", folder=folder / "program")
    project.folder.mkdir()
    (project.folder / "Pulumi.yaml").write_text(runtime_file(f"name: {project.name}\n", virtualenv=sys.prefix))
    (project.folder / "__main__.py").write_text(PROGRAM.read_text())
    settings = merge(read_config(PLATFORM.config_file(LOCAL_STACK)), {"trainyard:aws": {"endpoint": aws.url}})
    file = project.folder / "Pulumi.chaos.yaml"
    file.write_text(yaml.safe_dump({"config": settings}))
    progress = Progress(folder / "engine.log", total=0, console=Console(quiet=True))
    engine = Engine(environment={**engine_environment(), **aws.environment}, log=progress.log)
    stack = Stack(project=project, name="chaos", engine=engine, config=file)
    session = Session(
        stack="chaos", progress=progress, engine=engine, platform=stack, workloads=stack, settings=settings, aws_endpoint=aws.url
    )
    return Ground(session=session, stack=stack, endpoint=aws.url, before=holdings(session, aws.url))


def whole_ground(folder: Path) -> Ground:
    """The platform as `make up` makes it, on a local stack of its own. TRAINYARD_STATE must be set."""
    session = open_session(LOCAL_STACK, Progress(folder / "engine.log", total=0, console=Console(quiet=True)), start=True)
    assert session.aws_endpoint is not None
    before = holdings(session, session.aws_endpoint)
    return Ground(session=session, stack=session.platform, endpoint=session.aws_endpoint, before=before)
