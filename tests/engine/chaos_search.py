"""Would a recovery find what a stack holds, if the state had lost it?"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.engine.chaos_stack import Ground
from trainyard.recovery.aws_kinds import REPEATABLE
from trainyard.recovery.deployment import Deployment
from trainyard.recovery.search import Search
from trainyard.recovery.wanted import Wanted


def not_found_again(ground: Ground) -> list[str]:
    """Resources of the stack that would not be found, each alone, in either way that a kill can lose one."""
    state = Deployment(ground.stack.export())
    search = Search(ground.session, ground.stack, lambda waiting: None)
    return [line for resource in state.resources for line in _lost(state, search, resource)]


def _lost(state: Deployment, search: Search, resource: Mapping[str, Any]) -> Iterator[str]:
    real = resource.get("custom") and not resource["type"].startswith(("pulumi:", "eks:"))
    if not real or resource["type"] in REPEATABLE:
        return
    for wanted in (_begun(resource), _planned(resource)):
        found = search.find(wanted, state.ids(wanted.kind) - {resource["id"]}) if search.knows(wanted) else None
        if found is None or found.id != resource["id"]:
            how = "begun" if wanted.pending else "planned"
            yield f"{wanted.kind} {wanted.name} ({how}): {found.id if found else 'nothing'} instead of {resource['id']}"


def _begun(resource: Mapping[str, Any]) -> Wanted:
    """As the state of a killed engine holds it."""
    return Wanted(resource={key: value for key, value in resource.items() if key not in ("id", "outputs")}, pending=True)


def _planned(resource: Mapping[str, Any]) -> Wanted:
    """As a preview after a plug-in's death plans it: made-up names end in other digits."""
    inputs = dict(resource.get("inputs") or {})
    for prop in inputs.get("__defaults") or ():
        if isinstance(inputs.get(prop), str) and inputs[prop][-7:].isalnum() and inputs[prop][-8:-7] == "-":
            inputs[prop] = inputs[prop][:-7] + "0123456"
    kept = {key: value for key, value in resource.items() if key not in ("id", "outputs")}
    return Wanted(resource={**kept, "inputs": inputs}, pending=False)
