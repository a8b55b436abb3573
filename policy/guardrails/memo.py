"""What was worked out of a resource once, for rules that come back to it with every resource of the program."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from guardrails.rule import Resource

_Texts = ParamSpec("_Texts")
_Result = TypeVar("_Result")


def remembered(work: Callable[Concatenate[Resource, _Texts], _Result]) -> Callable[Concatenate[Resource, _Texts], _Result]:
    """Have what depends on the properties of one resource (and on texts) worked out once for each; nobody may change the result."""

    @wraps(work)
    def once(resource: Resource, *texts: _Texts.args, **named: _Texts.kwargs) -> _Result:
        place = (work, texts)
        if place not in resource.memo:
            resource.memo[place] = work(resource, *texts, **named)
        return resource.memo[place]

    return once
