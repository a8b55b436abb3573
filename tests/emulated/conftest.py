"""One emulator for the whole tier; a test makes what it needs and shares it with no other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.aws.emulator import Emulator
from tests.emulated.landscape import Clients, Network, clients, make_network


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    started = Emulator(Path(tmp_path_factory.mktemp("aws")))
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def aws(emulator: Emulator) -> Clients:
    return clients(emulator.endpoint)


@pytest.fixture
def network(aws: Clients) -> Network:
    return make_network(aws)
