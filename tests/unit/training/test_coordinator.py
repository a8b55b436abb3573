"""When ranks of all nodes start, stop and are given up, decided without a process or a clock."""

import pytest

from training.exit_codes import ExitCode
from training.supervise.budget import RestartBudget
from training.supervise.coordinator import Coordinator, JoinError, Orders

pytestmark = pytest.mark.unit


def coordinator(nodes: int = 2, restarts: int = 1) -> Coordinator:
    made = Coordinator(nodes, 2, RestartBudget(restarts, 3600.0))
    for node in range(nodes):
        assert made.join(node, f"host-{node}", nodes, 2, 0.0) == []
    return made


def running(restarts: int = 1) -> Coordinator:
    made = coordinator(restarts=restarts)
    assert [order["do"] for _, order in made.tick(1.0)] == ["start", "start"]
    return made


def fail(made: Coordinator, node: int = 1, code: int = -9, now: float = 100.0, *, final: bool = False) -> Orders:
    return made.failed(node, made.generation, node * 2, code, "was killed", now, final=final)


def test_ranks_start_once_all_nodes_have_come() -> None:
    made = Coordinator(2, 2, RestartBudget(1, 3600.0))
    made.join(1, "host-1", 2, 2, 0.0)
    assert made.is_waiting
    assert made.tick(1.0) == []
    made.join(0, "host-0", 2, 2, 2.0)
    assert made.tick(2.0) == [(1, {"do": "start", "generation": 0}), (0, {"do": "start", "generation": 0})]
    assert made.tick(3.0) == []


def test_one_lost_rank_starts_all_ranks_again_when_every_node_has_ended_its_own() -> None:
    made = running()
    orders = fail(made)
    assert {node for node, _ in orders} == {0, 1}
    assert orders[0][1]["why"] == "rank 2 of 4 on host-1 was killed; restart 1 of 1 of all ranks"
    assert fail(made, node=0) == [], "what follows from the first failure is no second one"
    made.ready(1, 0)
    assert made.tick(101.0) == []
    made.ready(0, 0)
    assert [order for _, order in made.tick(101.0)] == [{"do": "start", "generation": 1}] * 2


def test_spent_restarts_end_the_run_with_the_last_failure() -> None:
    made = running(restarts=0)
    ((_, order), _) = fail(made)
    assert (order["do"], order["code"], order["why"]) == ("exit", ExitCode.FAILED, "rank 2 of 4 on host-1 was killed")
    assert order["grace"] > 0, "the others may say why they end"


@pytest.mark.parametrize(("code", "final", "expected"), [(78, False, 78), (1, True, 1), (-9, True, 1)])
def test_what_a_restart_cannot_cure_is_not_restarted(code: int, final: bool, expected: int) -> None:
    made = running(restarts=9)
    assert {order["code"] for _, order in fail(made, code=code, final=final)} == {expected}


def test_a_hang_keeps_its_exit_code_when_restarts_are_spent() -> None:
    assert {order["code"] for _, order in fail(running(restarts=0), code=76)} == {76}


@pytest.mark.parametrize(("codes", "expected"), [([0, 0, 0, 0], 0), ([75, 75, 75, 75], 75), ([0, 0, 75, 75], 1)])
def test_the_ranks_codes_are_the_run_s(codes: list[int], expected: int) -> None:
    made = running()
    assert made.ended(0, 0, {0: codes[0], 1: codes[1]}) == []
    orders = made.ended(1, 0, {2: codes[2], 3: codes[3]})
    assert {order["code"] for _, order in orders} == {expected}
    assert made.verdict


def test_a_lost_node_is_waited_for_and_named_when_it_does_not_come() -> None:
    made = running()
    assert [order["do"] for _, order in made.lost(1, 100.0)] == ["stop"]
    made.ready(0, 0)
    assert made.tick(101.0) == []
    assert made.is_waiting
    ((_, order),) = made.overdue(60.0)
    assert order["why"].startswith("after 60 s nodes 1 of 2 have not come")


def test_a_node_that_starts_anew_takes_its_own_place() -> None:
    made = running()
    assert [order["do"] for _, order in made.join(1, "host-1", 2, 2, 100.0)] == ["stop"]
    made.ready(0, 0)
    assert [order["do"] for _, order in made.tick(101.0)] == ["start", "start"]


@pytest.mark.parametrize(
    ("node", "who", "nodes", "processes", "message"),
    [
        (2, "host-2", 2, 2, "node rank 2 of host-2 with 2 nodes: node ranks go from 0 to 1"),
        (1, "host-9", 2, 2, "node rank 1 came twice: host-1 and host-9"),
        (1, "host-1", 2, 4, "host-1 was started for 2 nodes x 4 ranks, node 0 for 2 x 2"),
    ],
)
def test_a_node_that_does_not_fit_is_refused_by_name(node: int, who: str, nodes: int, processes: int, message: str) -> None:
    with pytest.raises(JoinError) as caught:
        coordinator().join(node, who, nodes, processes, 1.0)
    assert message in str(caught.value)


def test_restarts_count_within_a_window_only() -> None:
    budget = RestartBudget(2, 100.0)
    assert [budget.take(now, 60.0) for now in (0.0, 50.0, 90.0)] == [0.0, 0.0, None]
    assert budget.take(101.0, 60.0) == 0.0


def test_tries_that_do_not_last_are_spaced_out() -> None:
    budget = RestartBudget(9, 1000.0)
    assert [budget.take(float(now), 1.0) for now in range(5)] == [0.0, 1.0, 2.0, 4.0, 8.0]
    assert budget.take(10.0, 60.0) == 0.0
