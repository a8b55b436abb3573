"""What is wrong with the hosts, from the facts of all ranks: pure, so every finding has a test without the hardware."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from training.config import PreflightConfig
from training.preflight.facts import Facts
from training.preflight.transport import Transport

# NCCL keeps buffers of its channels in /dev/shm for each pair of ranks on a host.
_SHARED_MIB_PER_RANK = 64
_MANY = 4


@dataclass(frozen=True)
class Findings:
    """Problems end the run; warnings do not."""

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check_facts(facts: Sequence[Facts], config: PreflightConfig, *, needed_mib: int) -> Findings:
    """Compare the ranks with each other and with what the run needs; `needed_mib` is one rank's state."""
    findings = Findings()
    findings.problems.extend(_other_versions(facts))
    findings.problems.extend(_shared_devices(facts))
    findings.problems.extend(_too_few_devices(facts))
    findings.problems.extend(_too_little_memory(facts, needed_mib))
    findings.problems.extend(_too_little_shared_memory(facts, config))
    findings.problems.extend(_clock_skew(facts, config.max_clock_skew_seconds))
    findings.warnings.extend(_idle_devices(facts))
    findings.warnings.extend(_limited_memlock(facts))
    findings.warnings.extend(_fabric_without_device(facts))
    return findings


def check_transport(transports: Sequence[Transport], facts: Sequence[Facts], config: PreflightConfig) -> Findings:
    """Hold what NCCL took on each rank to what the run demands."""
    others = [rank for rank, transport in enumerate(transports) if transport.kind != "efa"]
    if not others:
        return Findings()
    first = others[0]
    text = (
        f"NCCL does not use EFA but {transports[first]} on {_ranks(others)}; rank {first} on {facts[first].host} sees "
        f"{facts[first].efa_devices} EFA interfaces: request vpc.amazonaws.com/efa, and have aws-ofi-nccl in the image"
    )
    if config.transport == "efa":
        return Findings(problems=[text])
    expected = any(fact.efa_devices or fact.fabric == "efa" for fact in facts)
    return Findings(warnings=[text] if expected and len({fact.host for fact in facts}) > 1 else [])


def check_bandwidth(gigabytes_per_second: float, config: PreflightConfig) -> Findings:
    """Hold the measured bus bandwidth to the least that is accepted."""
    least = config.min_bandwidth_gb_per_second
    if least is None or gigabytes_per_second >= least:
        return Findings()
    return Findings(
        problems=[f"bus bandwidth is {gigabytes_per_second:.2f} GB/s; preflight.min_bandwidth_gb_per_second asks for {least:g}"]
    )


def _other_versions(facts: Sequence[Facts]) -> list[str]:
    wrong: dict[str, list[int]] = defaultdict(list)
    for rank, fact in enumerate(facts):
        for name in facts[0].versions.keys() | fact.versions.keys():
            here, there = fact.versions.get(name, "none"), facts[0].versions.get(name, "none")
            if here != there:
                wrong[f"{name} {here}, where rank 0 has {there}"].append(rank)
    return [f"{_ranks(ranks)} ({facts[ranks[0]].host}) have {what}; start all ranks from one image" for what, ranks in wrong.items()]


def _shared_devices(facts: Sequence[Facts]) -> list[str]:
    users: dict[tuple[str, str], list[int]] = defaultdict(list)
    for rank, fact in enumerate(facts):
        if fact.device_id:
            users[fact.host, fact.device_id].append(rank)
    return [
        f"{_ranks(ranks)} share one device of {host}; start one rank per device" for (host, _), ranks in users.items() if len(ranks) > 1
    ]


def _too_few_devices(facts: Sequence[Facts]) -> list[str]:
    """A rank that sees exactly one device was given it by its launcher."""
    return [
        f"rank {rank} on {fact.host} sees {fact.num_devices} devices for {fact.expected_ranks} ranks of its host"
        for rank, fact in enumerate(facts)
        if fact.device == "cuda" and fact.expected_ranks and 1 < fact.num_devices < fact.expected_ranks
    ]


def _idle_devices(facts: Sequence[Facts]) -> list[str]:
    idle = {
        fact.host: f"{fact.host} has {fact.num_devices} devices but {fact.expected_ranks} ranks; the others stay idle"
        for fact in facts
        if fact.device == "cuda" and fact.expected_ranks and fact.num_devices > max(1, fact.expected_ranks)
    }
    return list(idle.values())


def _too_little_memory(facts: Sequence[Facts], needed_mib: int) -> list[str]:
    """Ranks on CPUs share their host's memory; each accelerator has its own."""
    sharing: dict[str, int] = defaultdict(int)
    for fact in facts:
        sharing[fact.host] += 1
    problems = {}
    for rank, fact in enumerate(facts):
        users = sharing[fact.host] if fact.device == "cpu" else 1
        if needed_mib * users > fact.free_mib:
            others = f", as do all {users} ranks there" if users > 1 else ""
            text = f"rank {rank} on {fact.host} needs {needed_mib} MiB for its state{others}, and {fact.free_mib} MiB are free"
            problems.setdefault(fact.host if fact.device == "cpu" else str(rank), text)
    return list(problems.values())[:_MANY]


def _too_little_shared_memory(facts: Sequence[Facts], config: PreflightConfig) -> list[str]:
    problems = {}
    for fact in facts:
        automatic = _SHARED_MIB_PER_RANK * (fact.expected_ranks or 1) if fact.device == "cuda" and (fact.expected_ranks or 1) > 1 else 0
        least = automatic if config.min_shared_memory_mib is None else config.min_shared_memory_mib
        if fact.shared_memory_mib < least:
            problems[fact.host] = (
                f"/dev/shm of {fact.host} has {fact.shared_memory_mib} MiB; {least} MiB are needed: mount a memory-backed volume"
            )
    return list(problems.values())


def _clock_skew(facts: Sequence[Facts], most: float) -> list[str]:
    times = [fact.time for fact in facts]
    skew = max(times) - min(times)
    if skew <= most:
        return []
    slow, fast = times.index(min(times)), times.index(max(times))
    hosts = f"rank {slow} on {facts[slow].host} is {skew:.1f} s behind rank {fast} on {facts[fast].host}"
    return [f"clocks differ: {hosts}; preflight.max_clock_skew_seconds allows {most:g}"]


def _limited_memlock(facts: Sequence[Facts]) -> list[str]:
    limited = {fact.host: fact.memlock_mib for fact in facts if fact.efa_devices and fact.memlock_mib is not None}
    return [f"{host} may pin only {mib} MiB (memlock); EFA registers more than that" for host, mib in limited.items()]


def _fabric_without_device(facts: Sequence[Facts]) -> list[str]:
    blind = [rank for rank, fact in enumerate(facts) if fact.fabric == "efa" and not fact.efa_devices]
    return [f"FI_PROVIDER is efa but {_ranks(blind)} see no EFA interface: the pod did not request vpc.amazonaws.com/efa"] if blind else []


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:_MANY])) + (f" and {len(ranks) - _MANY} more" if len(ranks) > _MANY else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"
