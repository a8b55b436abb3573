"""The one error a job's author sees: where it is, what it was and what is allowed."""

import json


class JobError(ValueError):
    """A refused setting of a job."""

    def __init__(self, path: str, value: object, allowed: str) -> None:
        super().__init__(f"{path}: {_show(value)} is refused; allowed: {allowed}")
        self.path = path
        self.value = value
        self.allowed = allowed

    def under(self, parent: str) -> "JobError":
        """The same refusal seen from the setting that holds this one."""
        return JobError(f"{parent}.{self.path}", self.value, self.allowed)


def _show(value: object) -> str:
    return "nothing" if value is None else json.dumps(value, default=repr)
