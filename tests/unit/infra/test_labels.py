"""Label keys: a taint never locks an agent out, and a job's tolerations are those of its pool."""

import pytest

from infra import labels

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("accelerator", ["nvidia", "neuron", None])
def test_agents_and_jobs_tolerate_every_taint_of_a_pool(accelerator):
    taints = {taint["key"] for taint in labels.pool_taints(accelerator)}
    assert taints <= {toleration["key"] for toleration in labels.agent_tolerations()}
    assert taints == {toleration["key"] for toleration in labels.pool_tolerations(accelerator)}


def test_every_training_pool_is_tainted():
    assert all(labels.pool_taints(accelerator) for accelerator in ("nvidia", "neuron", None))


def test_label_keys_are_legal():
    keys = [value for name, value in vars(labels).items() if name.isupper() and isinstance(value, str) and "/" in value]
    assert len(keys) > 15
    for key in keys:
        prefix, _, name = key.partition("/")
        assert len(name) <= 63
        assert prefix == prefix.lower()
