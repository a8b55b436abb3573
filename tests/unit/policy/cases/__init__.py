"""The truth tables of the rules, one module for each domain module of the pack, each ending in `CASES`.

    from tests.unit.policy import builders as b
    from tests.unit.policy.case import invalid, valid

    CASES = (
        valid("FSX02", b.lustre(deploymentType="SCRATCH_2", storageCapacity=1200)),
        invalid("FSX02", b.lustre(deploymentType="SCRATCH_2", perUnitStorageThroughput=200), says="perUnitStorageThroughput is 200"),
        valid("FSX04", b.lustre(..., storageCapacity=2400), edge=True),
        invalid("EFA04", b.efa_group(...), b.node_pool(), says="egress is without one"),     # several things are one program
    )

A thing is `Thing(type=, properties=, name=, sources=)`; `analyzer.UNKNOWN` is a value that preview can't know, and `sources`
says, per property, which other thing of the case it comes from. `builders.py` holds one valid thing of each kind; change one
place of it with `changed` (or the builder's `changes`). A builder that only one domain needs belongs into that domain's module.

Each rule needs at least 4 valid and 4 invalid cases, and boundary values beside them (`edge=True`); `test_cases.py` counts.
Every case is judged through the analyzer service, and gets without further writing:

* `test_cases.py`: its verdict, its words, the form of the message;
* `test_unknowns.py`: each value of an invalid case replaced by an unknown: still refused, or listed as not evaluated;
  each key of every case removed: no rule raises;
* `test_routes.py`: a Kubernetes object also as an item of a List, and in the values and in text of a Helm release: same verdict;
* `test_fuzz.py`: mutations of types, units, enums, keys and sizes: no rule raises.
"""

import importlib
import pkgutil

from tests.unit.policy.case import Case

CASES: tuple[Case, ...] = tuple(
    case for module in pkgutil.iter_modules(__path__) for case in importlib.import_module(f"{__name__}.{module.name}").CASES
)
