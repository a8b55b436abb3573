"""Carries rows of the table out: create, read, update and delete one resource."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local.plugins.aws.clients import Clients
from local.plugins.aws.diff import compare, equivalent, projected
from local.plugins.aws.errors import AwsError, InitFailed
from local.plugins.aws.live import live_inputs, state_of, visible
from local.plugins.aws.row import Call, Row, Update, creating_call
from local.plugins.aws.run import Run, search, waited
from local.plugins.aws.schema import TypeSchema

_RETRY_SECONDS: Final = 45.0
_TOKEN_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Found:
    """A resource as it is in AWS."""

    resource_id: str
    inputs: dict[str, Any]
    state: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lifecycle:
    """One resource type with what it takes to carry it out."""

    row: Row
    schema: TypeSchema
    clients: Clients
    timeout: float = 0.0
    """Seconds that the program allows for a wait; 0 leaves it to the row."""

    def create(self, urn: str, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Make the resource; its identifier and state.

        Raises:
            AwsError: nothing was made.
            InitFailed: it was made, and something after that went wrong.
        """
        run = self._run(urn, inputs)
        self._make(run)
        run.state |= self._named_by_id(run.resource_id)
        try:
            self._finish_creation(run)
            described = waited(run, self.row.created)
        except AwsError as error:
            raise InitFailed(str(error), resource_id=run.resource_id, state=self._state_or_inputs(run)) from error
        if described is None:
            raise AwsError(f"{self.row.token} {run.resource_id} was made but can't be found", code="Vanished")
        return run.resource_id, state_of(run, described)

    def read(self, urn: str, resource_id: str, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> "Found | None":
        """The resource as it is in AWS now, or None where it is gone. Inputs and state may be empty (import)."""
        run = self._run(urn, inputs, resource_id=resource_id, state=state)
        described = run.describe()
        if described is None:
            return None
        if not state and self.row.id_parts:
            # What was given to import is another spelling of the identifier.
            run.made = described
            run.resource_id = self._identify(run)
        return Found(run.resource_id, live_inputs(run, described, importing=not state), state_of(run, described))

    def update(
        self, urn: str, resource_id: str, olds: Mapping[str, Any], state: Mapping[str, Any], news: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Change what differs; the new state.

        Raises:
            InitFailed: one of the changes was refused; the state says which were made.
        """
        run = self._run(urn, news, resource_id=resource_id, state=state, olds=olds)
        changed = self._changed(run)
        try:
            self._apply_updates(run, changed)
            run.apply_tags(state.get("tagsAll") or {}, news.get("tagsAll") or {})
            described = waited(run, self.row.updated)
        except AwsError as error:
            raise InitFailed(str(error), resource_id=resource_id, state=self._state_or_inputs(run)) from error
        if described is None:
            raise AwsError(f"{self.row.token} {resource_id} does not exist any more; run `pulumi refresh`", code="Vanished")
        return state_of(run, described)

    def delete(self, urn: str, resource_id: str, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Remove the resource and wait until it is gone. One that is gone already counts as removed."""
        run = self._run(urn, inputs, resource_id=resource_id, state=state)
        if self.row.delete is None:
            return
        step = self.row.delete
        try:
            run.retried(lambda: run.do(step), self.row.retry_delete, self.timeout or _RETRY_SECONDS)
        except AwsError as error:
            # "Not found" may be said of something else that the deletion touches, so look before believing it.
            if not error.is_gone(self.row.gone) or run.describe() is not None:
                raise
        if self.row.deleted is not None:
            waited(run, self.row.deleted, deleting=True)

    def _make(self, run: Run) -> None:
        """Make the resource. A token remembers what was made with it before, even if that is deleted by now; then a new one is used."""
        call = creating_call(self.row)
        for attempt in range(_TOKEN_ATTEMPTS):
            run.attempt = attempt
            made = run.retried(lambda: run.do(self.row.create, creating=True), self.row.retry_create, _RETRY_SECONDS)
            run.made = made if isinstance(made, Mapping) else {}
            run.resource_id = self._identify(run)
            if call is None or not call.token or run.describe() is not None:
                return

    def _run(
        self,
        urn: str,
        inputs: Mapping[str, Any],
        *,
        resource_id: str = "",
        state: Mapping[str, Any] | None = None,
        olds: Mapping[str, Any] | None = None,
    ) -> Run:
        known = dict(state or {})
        if resource_id:
            parts = _split_id(self.row, resource_id, importing=not state)
            if state:
                parts = {**self._named_by_id(resource_id), **parts}
            known |= {key: value for key, value in parts.items() if known.get(key) is None}
        return Run(
            row=self.row,
            schema=self.schema,
            clients=self.clients,
            urn=urn,
            inputs=inputs,
            state=known,
            olds=olds or {},
            resource_id=resource_id,
            timeout=self.timeout,
        )

    def _identify(self, run: Run) -> str:
        if not isinstance(self.row.id, str):
            return self.row.id(run)
        if "{" in self.row.id:
            return run.filled(self.row.id)
        found = search(self.row.id, run.made)
        if not found:
            raise AwsError(f"{self.row.token} was made, but AWS's answer holds no {self.row.id}", code="NoIdentifier")
        return str(found)

    def _named_by_id(self, resource_id: str) -> dict[str, Any]:
        """The property that is the identifier, which a call may name ("$associationId") before AWS has described the resource."""
        return {self.row.id: resource_id} if isinstance(self.row.id, str) and self.row.id.isidentifier() else {}

    def _finish_creation(self, run: Run) -> None:
        """Settings and tags that the creating call does not take."""
        given = {name for name in self.row.props if run.inputs.get(name) is not None}
        for update in self.row.updates:
            if isinstance(update, Update) and update.on_create:
                wanted = [name for name in update.takes if name in given and run.inputs[name] != self.row.props[name].default]
                if wanted:
                    update.run(run)
            elif isinstance(update, Call):
                self._do_update(run, update, [name for name in update.takes or () if name in given and self._is_late(name, run)])
        if self.row.tags is not None and not self.row.tags.create and not self.row.tags.spec:
            run.apply_tags({}, run.inputs.get("tagsAll") or {})

    def _is_late(self, name: str, run: Run) -> bool:
        prop = self.row.props[name]
        return prop.param == "" and not prop.write_only and run.inputs[name] != prop.default

    def _changed(self, run: Run) -> set[str]:
        """Properties whose declared value moved, or that a failed earlier change left behind."""
        changed = set(compare(self.row, run.olds, run.inputs).properties)
        for name, prop in self.row.props.items():
            live, wanted = run.state.get(name), run.inputs.get(name)
            if (
                wanted is not None
                and live is not None
                and not prop.write_only
                and not equivalent(prop, projected(live, wanted, prop), wanted)
            ):
                changed.add(name)
        return changed - {"tags", "tagsAll"}

    def _apply_updates(self, run: Run, changed: set[str]) -> None:
        handled = {name for name, prop in self.row.props.items() if prop.write_only}
        for update in self.row.updates:
            wanted = [name for name in update.takes or () if name in changed]
            if not wanted:
                continue
            handled |= set(wanted)
            if isinstance(update, Update):
                update.run(run)
            else:
                self._do_update(run, update, wanted)
        left = sorted(name for name in changed - handled if not self.row.props[name].replace)
        if left:
            raise AwsError(f"{self.row.token} has no way to change {', '.join(left)} in place", code="NotUpdatable")

    def _do_update(self, run: Run, call: Call, wanted: Sequence[str]) -> None:
        if call.each:
            for name in wanted:
                run.do(call, only=[name])
        elif wanted:
            run.do(call, only=self._sent(run, call, wanted))

    def _sent(self, run: Run, call: Call, wanted: Sequence[str]) -> list[str]:
        if call.whole:
            return [name for name in call.takes or () if run.inputs.get(name) is not None]
        return [name for name in call.takes or () if name in wanted or (call.all and run.inputs.get(name) is not None)]

    def _state_or_inputs(self, run: Run) -> dict[str, Any]:
        try:
            described = run.describe()
        except AwsError:
            described = None
        return state_of(run, described) if described is not None else {**run.state, **visible(run.inputs)}


def _split_id(row: Row, resource_id: str, *, importing: bool) -> dict[str, str]:
    """Properties that an identifier such as `cluster:addon` spells out."""
    template = row.id_parts if row.id_parts and importing else row.id if isinstance(row.id, str) and "{" in row.id else ""
    if not template or (row.id_parts and not importing):
        return {}
    pattern = "".join(f"(?P<{part[1:-1]}>.+?)" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", template))
    match = re.fullmatch(pattern, resource_id)
    if match is None:
        raise AwsError(f"{resource_id!r} is no identifier of {row.token}; its form is {template}", code="BadIdentifier")
    return match.groupdict()
