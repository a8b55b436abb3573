"""Reading the stack's configuration into validated models."""

import json
from collections.abc import Mapping
from typing import Any

from pulumi.runtime import config as runtime_config
from pydantic import ValidationError

from infra.component import PACKAGE
from infra.settings.errors import Fault, SettingsError, faults_of
from infra.settings.model import PlatformSettings
from infra.settings.rules import broken_rules

_PREFIX = f"{PACKAGE}:"


def load() -> PlatformSettings:
    """Return the settings of the current stack; raises SettingsError listing every fault."""
    everything: Mapping[str, Any] = {**runtime_config.get_config_env(), **runtime_config.CONFIG.get()}
    return parse({key.removeprefix(_PREFIX): _decode(value) for key, value in everything.items() if key.startswith(_PREFIX)})


def parse(raw: Mapping[str, Any]) -> PlatformSettings:
    """Return validated settings from plain data keyed without the `trainyard:` prefix; raises SettingsError listing every fault."""
    try:
        settings = PlatformSettings.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        raise SettingsError(faults_of(error, PlatformSettings, _PREFIX)) from None
    faults = broken_rules(settings)
    if faults:
        raise SettingsError(faults)
    return settings


def _decode(value: Any) -> Any:
    """Return a configuration value as data: Pulumi hands maps, lists, numbers and booleans over as JSON text, strings as they are."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


__all__ = ["Fault", "load", "parse"]
