"""A name that enters DNS late is waited for, for so long and no longer."""

import socket
from dataclasses import dataclass, field

import pytest

from training.errors import RendezvousError
from training.rendezvous import wait_for_name

pytestmark = pytest.mark.training
HOST = "pretrain-worker-0.pretrain"


@dataclass
class Clock:
    """Time that passes only while somebody sleeps."""

    now: float = 100.0
    sleeps: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps.append(seconds)


@dataclass
class Dns:
    """A lookup that fails so many times first."""

    failures: int
    asked: list[str] = field(default_factory=list)

    def getaddrinfo(self, host: str, port: None) -> list:
        self.asked.append(host)
        if len(self.asked) <= self.failures:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [port]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("training.rendezvous.time", found)
    return found


def dns(monkeypatch: pytest.MonkeyPatch, failures: int) -> Dns:
    found = Dns(failures)
    monkeypatch.setattr(socket, "getaddrinfo", found.getaddrinfo)
    return found


def test_a_name_that_enters_dns_late_is_waited_for(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    lookups, waits = dns(monkeypatch, failures=2), []
    wait_for_name(HOST, clock.now + 60, lambda: waits.append(clock.now))
    assert lookups.asked == [HOST] * 3
    assert clock.sleeps == [0.2, 0.4]
    assert len(waits) == 3, "a rank that waits must show that it is alive"


def test_a_name_that_never_comes_is_named_before_the_time_is_over(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    lookups, deadline = dns(monkeypatch, failures=10**6), clock.now + 60
    with pytest.raises(RendezvousError, match=rf"MASTER_ADDR={HOST} does not resolve \(.*not known\); it must be the DNS name of rank 0"):
        wait_for_name(HOST, deadline, lambda: None)
    assert deadline - 5 < clock.now <= deadline
    assert max(clock.sleeps) == 5, "a name that is there by now is found within that time"
    assert len(lookups.asked) == len(clock.sleeps) + 1


def test_waiting_for_a_name_can_be_given_up(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    dns(monkeypatch, failures=10**6)

    def give_up() -> None:
        if clock.now > 103:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        wait_for_name(HOST, clock.now + 60, give_up)
    assert clock.now <= 103 + 5
