"""`down`: jobs, then platform, then proof that nothing is left."""

import boto3
from rich.console import Console

from infra import labels
from local.aws.inventory import Leftover, emulator_session, leftovers
from local.errors import LocalStackError
from trainyard.project import PLATFORM
from trainyard.session import Session


def take_down(session: Session, console: Console) -> None:
    """Destroy both stacks and ask the cloud what is still there.

    Raises:
        LocalStackError: a destroy failed, or something is left over; it is listed, and the local stack is kept to look at.
    """
    for stack in (session.workloads, session.platform):
        if not stack.exists():
            console.print(f"{stack.project.title}: there is no stack {session.stack}", highlight=False, soft_wrap=True)
            continue
        with session.progress.step(f"destroy the {stack.project.title} stack") as step:
            summary = stack.destroy(lambda seen, step=step: step.update(f"{seen.touched} resources"))
        console.print(f"{stack.project.title}: {summary.text()}", highlight=False, soft_wrap=True)
    with session.progress.step("ask AWS what is left"):
        found = what_is_left(session)
    if found:
        lines = "\n".join(f"  {item}" for item in found)
        raise LocalStackError(f"{len(found)} resources of stack {session.stack} are still there:\n{lines}", log=session.progress.log)
    if session.below:
        with session.progress.step("stop the local stack"):
            session.below.destroy()
    console.print("Nothing is left.")


def what_is_left(session: Session) -> list[Leftover]:
    """Resources that carry the stack's own tag, or that of its cluster (Karpenter's instances, volumes of claims)."""
    tags = {labels.TAG_STACK: f"{PLATFORM.name}/{session.stack}"}
    region = str(session.settings["trainyard:aws"]["region"])
    cluster = session.settings["trainyard:cluster"]["name"]
    tags[f"kubernetes.io/cluster/{cluster}"] = "*"
    if session.aws_endpoint:
        return leftovers(emulator_session(region), tags, endpoint=session.aws_endpoint)
    return leftovers(boto3.session.Session(region_name=region), tags)
