"""Container images and charts."""

from typing import Any

from guardrails import tokens
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.pod_security import pod

BESIDE = ("repository", "registry", "pullPolicy")
DIGEST = "@sha256:" + "4f" * 32


def image(text: str) -> Thing:
    return pod(container={"image": text})


def trainer(text: str) -> Thing:
    return pod(container={"image": text, "resources": {"limits": {GPU: 8}}})


def release(values: dict[str, Any] | None = None, **properties: Any) -> Thing:
    return Thing(
        type=tokens.RELEASE, name="volcano", properties={"chart": "volcano", "version": "1.14.1", "values": values or {}, **properties}
    )


def application(**source: Any) -> Thing:
    spec = {"project": "ml", "source": {"repoURL": "https://charts.example", "chart": "own", "targetRevision": "1.4.2", **source}}
    return Thing(type=tokens.APPLICATION, name="training", properties={"metadata": {"name": "training"}, "spec": spec})


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
    invalid("POD03", image("python:3-slim"), says="python:3-slim; allowed"),
    invalid("POD03", image("python:3.12-slim"), says="python:3.12-slim (patch releases move it)"),
    valid("POD03", image("python:3.12.4-slim"), edge=True),
    invalid("POD03", image("debian:bookworm"), says="debian:bookworm; allowed"),
    invalid("POD03", image("nginx:alpine"), says="nginx:alpine; allowed"),
    invalid("POD03", image("x:canary"), says="x:canary; allowed"),
    invalid("POD03", image("x:1.x"), says="x:1.x; allowed"),
    valid("POD03", image("debian:bookworm-20261103")),
    valid("POD03", image("registry.example/trainer:nightly-2026-11-03")),
    valid("POD03", image("nvcr.io/nvidia/pytorch:26.10-py3")),
    valid("POD03", image("cr.l5d.io/linkerd/proxy:stable-2.14.10")),
    valid("POD03", image("x:release-1.4.2"), edge=True),
    invalid("POD03", image("x:1.4.2-latest"), says="x:1.4.2-latest; allowed", edge=True),
    valid("POD03", image("registry.example/trainer:deadbeef")),
    invalid("POD03", release(version="^1.2"), says="version is ^1.2; allowed: the version of chart volcano"),
    invalid("POD03", release(version="*"), says="version is *"),
    invalid("POD03", release(version="latest"), says="version is latest"),
    invalid("POD03", release(version=""), says='version is ""'),
    invalid("POD03", release(version="1.14"), says="version is 1.14; allowed", edge=True),
    valid("POD03", release(version="v1.14.1-rc.1+build.7")),
    valid("POD03", release(chart=f"oci://registry.example/volcano{DIGEST}", version=None)),
    invalid("POD03", release({"basic": {"image_tag_version": "latest"}}), says="values.basic.image_tag_version is latest"),
    valid("POD03", release({"basic": {"image_tag_version": "v1.14.1"}})),
    valid("POD03", release({"image": {"repository": "volcano", "tag": "latest", "digest": "sha256:" + "4f" * 32}})),
    invalid("POD03", release({"image": {"repository": "volcano", "tag": "latest", "digest": ""}}), says="values.image.tag is latest"),
    invalid("POD03", release({"image": {"name": "volcano", "tag": "canary"}}), says="values.image.tag is canary"),
    # A tag may be of anything, unless its name or what stands beside it says that it is of an image.
    valid("POD03", release({"inputs": [{"tag": "kube"}]})),
    valid("POD03", release({"inputs": [{"tag": "9f2c4d1"}]}), edge=True),
    *(invalid("POD03", release({"web": {key: "x", "tag": "canary"}}), says="web.tag is canary") for key in BESIDE),
    invalid("POD03", release({"imageTag": "canary"}), says="values.imageTag is canary", edge=True),
    valid("POD03", release({"image": {"repository": "grafana", "tag": "latest", "sha": "4f" * 32}})),
    valid("POD03", release({"image": f"registry.example/volcano:nightly-cuda13{DIGEST}"})),
    invalid("POD03", application(helm={"parameters": [{"name": "web.image.tag", "value": "latest"}]}), says="value is latest"),
    invalid("POD03", application(helm={"valuesObject": {"image": {"tag": "latest"}}}), says="helm.valuesObject.image.tag is latest"),
    invalid("POD03", application(helm={"values": "image:\n  tag: latest\n"}), says="spec.source.helm.values.image.tag is latest"),
    invalid("POD03", application(helm={"parameters": [{"name": "image.tag", "value": "latest"}]}), says="parameters[0].value is latest"),
    invalid("POD03", application(kustomize={"images": ["trainer=registry.example/trainer:main"]}), says="images[0] is trainer=registry"),
    valid("POD03", application(helm={"values": "image: {tag: 1.4.2}", "parameters": [{"name": "replicas", "value": "2"}]})),
    valid("POD03", application(helm={"values": "image: {{ tag }}"})),
    valid("POD03", image("x:12345-linux"), edge=True),
    invalid("POD03", image("x:123-linux"), says="x:123-linux; allowed", edge=True),
    valid("POD03", release({"image": {"repository": "x", "tag": "{{ .Chart.AppVersion }}"}})),
)
