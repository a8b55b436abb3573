"""The node's launcher with warm spares: `python -m training.supervise <options> -m training.train ...`, with torchrun's names for options.

One process a node imports everything once and forks its ranks, at the start and after each failure, so that a restart costs no second
import. The agents of all nodes meet at a coordinator on node 0: when a rank dies anywhere, all ranks of all nodes end and start again
together, from the newest checkpoint.
"""
