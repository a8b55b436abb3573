"""The Pulumi SDKs warn of their own deprecated classes when they are imported; that says nothing about the platform."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:pulumi_.*")
