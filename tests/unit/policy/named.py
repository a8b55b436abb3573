"""A pytest plugin for runs that name thousands of tests, as mutation testing does once for every mutant.

pytest looks for each name among all tests of its module and makes every test of that module first. With this plugin
(`-p tests.unit.policy.named`) it goes through the modules once, and a module may ask `is_named` before it makes a test.
"""

from collections.abc import Sequence

import pytest

_NAMED = pytest.StashKey[frozenset[str]]()


def is_named(config: pytest.Config, test: str) -> bool:
    """Whether the run is to have the test of this node id; every test where none is named or the plugin isn't loaded."""
    return _NAMED not in config.stash or not config.stash[_NAMED] or test in config.stash[_NAMED]


def pytest_configure(config: pytest.Config) -> None:
    """Remember the tests that the command line names, and have their modules collected; nothing changes where it names a module too."""
    names = frozenset(config.args)
    if all("::" in name for name in names):
        config.stash[_NAMED] = names
        config.args = sorted({name.partition("::")[0] for name in names})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what isn't named."""
    items[:] = _of(config, items)


def _of(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The named ones among the tests.

    Raises:
        pytest.UsageError: a test is named that no module has.
    """
    found = [item for item in items if is_named(config, item.nodeid)]
    missing = config.stash.get(_NAMED, frozenset()) - {item.nodeid for item in found}
    if missing:
        raise pytest.UsageError(f"no such test: {', '.join(sorted(missing)[:3])}; name tests as --collect-only does")
    return found
