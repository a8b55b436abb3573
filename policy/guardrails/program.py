"""All resources of a program, as a stack rule sees them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from guardrails.rule import Resource
from guardrails.secret import Secrets


class Program(Sequence[Resource]):
    """A sequence of resources with an index by type, so that a rule need not walk them all."""

    def __init__(self, resources: Iterable[Resource], *, whole: bool = True, news: Sequence[Resource] = ()) -> None:
        self.whole = whole
        """False while resources are still being registered: what is not there may yet come."""
        self.news = news
        """What has just been registered; empty where all is judged at once."""
        self.memo: dict[Any, Any] = {}
        """What was worked out of these resources already."""
        self._resources = list(resources)
        self._by_type: dict[str, list[Resource]] = defaultdict(list)
        self._by_urn: dict[str, Resource] = {}
        for resource in self._resources:
            self._by_type[resource.type].append(resource)
            self._by_urn.setdefault(resource.urn, resource)

    @overload
    def __getitem__(self, index: int) -> Resource: ...
    @overload
    def __getitem__(self, index: slice) -> list[Resource]: ...
    def __getitem__(self, index: int | slice) -> Resource | list[Resource]:
        return self._resources[index]

    def __len__(self) -> int:
        return len(self._resources)

    @cached_property
    def secrets(self) -> Secrets:
        """The secret texts of all resources. Numbers of others are no secrets: they would blot out the same number everywhere."""
        # What was read from a secret text is a part of that text.
        mine = (resource.secrets for resource in self._resources if resource.secrets and not resource.concealed)
        return frozenset(text for secrets in mine for text in secrets if isinstance(text, str) and len(text) > 2)

    def has(self, types: Iterable[str]) -> bool:
        """Whether there is a resource of one of `types`."""
        return any(self._by_type.get(kind) for kind in types)

    def of(self, *types: str) -> Iterator[Resource]:
        """The resources of `types`, those of the first type first."""
        for kind in types:
            yield from self._by_type.get(kind, ())

    def is_news(self, resource: Resource) -> bool:
        """Whether it has just been registered; all is news where the program is judged as a whole."""
        return not self.news or any(resource is each for each in self.news)

    def source(self, resource: Resource, key: str, *types: str) -> Resource | None:
        """The resource of one of `types` (of any, where none is given) that the property `key` takes its value from."""
        for urn in resource.sources.get(key, ()):
            found = self._by_urn.get(urn)
            if found is not None and (not types or found.type in types):
                return found
        return None

    def refers(self, resource: Resource, key: str, target: Resource) -> bool:
        """Whether the property `key` is the id of `target`: by where it comes from, or as a literal where both are known."""
        if target.urn and target.urn in resource.sources.get(key, ()):
            return True
        value, own = resource.at(key), target.at("id")
        return value.present and value.known and own.present and own.known and value.value == own.value
