"""Which layers each stage of a pipeline has, and which stages each rank. Standard library only.

With one stage per rank the schedule is 1F1B. With several it is interleaved 1F1B: stage s is on rank s modulo the ranks, so that a
micro-batch goes through all ranks as often as each has stages.
"""

import itertools


def split_layers(num_layers: int, num_stages: int) -> list[range]:
    """Layers of each stage, in order. The first stages take one more where it does not come out even: the last has the head to compute."""
    share, rest = divmod(num_layers, num_stages)
    firsts = [stage * share + min(stage, rest) for stage in range(num_stages + 1)]
    return [range(first, after) for first, after in itertools.pairwise(firsts)]


def stages_of(rank: int, num_ranks: int, per_rank: int) -> list[int]:
    """Stages of one of the pipeline's ranks, in the order in which a micro-batch passes them."""
    return [rank + visit * num_ranks for visit in range(per_rank)]
