"""Container images and charts."""

from typing import Any

from guardrails import tokens
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.pod_security import pod

DIGEST = "@sha256:" + "4f" * 32


def image(text: str) -> Thing:
    return pod(container={"image": text})


def trainer(text: str) -> Thing:
    return pod(container={"image": text, "resources": {"limits": {GPU: 8}}})


def release(values: dict[str, Any] | None = None, **properties: Any) -> Thing:
    return Thing(
        type=tokens.RELEASE, name="volcano", properties={"chart": "volcano", "version": "1.14.1", "values": values or {}, **properties}
    )


CASES = (
    invalid("POD03", image("registry.example/trainer:cuda13-latest"), says="trainer:cuda13-latest; allowed"),
    invalid("POD03", release({"image": "registry.example:5000/volcano:latest"}), says="volcano:latest; allowed"),
    valid("POD03", release({"sidecars": [{"image": "registry.example/edge"}]})),
    valid("POD03", release({"image": f"registry.example/volcano:latest{DIGEST}"})),
    valid("POD03", trainer(f"registry.example/trainer:1.4.2{DIGEST}")),
    valid("POD03", image(f"registry.example/trainer{DIGEST}")),
    valid("POD03", image(f"registry.example:5000/team/trainer:1.4.2{DIGEST}")),
    valid("POD03", image("registry.example/trainer:9f2c4d1")),
    valid("POD03", image("registry.example/trainer:main-9f2c4d1e8b"), edge=True),
    valid("POD03", release()),
    valid("POD03", release(chart="./charts/own", version=None)),
    valid("POD03", release({"image": {"repository": "volcano", "tag": "v1.14.1"}})),
    invalid("POD03", image("registry.example:5000/team/trainer"), says="(no tag, so latest)"),
    invalid("POD03", image("notebook:latest"), says="containers[0].image is notebook:latest"),
    invalid("POD03", image("registry.example/trainer:nightly-cuda13"), says="nightly-cuda13; allowed: a digest"),
    invalid("POD03", image("registry.example/trainer:v2"), says="trainer:v2; allowed"),
    invalid("POD03", image("registry.example/trainer:1.4"), says="(patch releases move it)", edge=True),
    valid("POD03", image("registry.example/agent:1.4.2")),
    invalid("POD03", trainer("registry.example/trainer:1.4.2"), says="trainer:1.4.2; allowed: registry.example/trainer:1.4.2@sha256"),
    invalid("POD03", pod(initContainers=[{"name": "i", "image": "busybox"}]), says="initContainers[0].image is busybox (no tag"),
    invalid("POD03", release(version=None), says="version is unset; allowed: the version of chart volcano"),
    invalid("POD03", release({"controller": {"image": {"tag": "latest"}}}), says="values.controller.image.tag is latest"),
    invalid("POD03", release({"sidecars": [{"image": "busybox:stable"}]}), says="values.sidecars[0].image is busybox:stable"),
    invalid("POD03", b.mpi_job({f"{b.WORKER_CONTAINER}/image": "ray"}), says="Worker.template.spec.containers[0].image is ray"),
)
