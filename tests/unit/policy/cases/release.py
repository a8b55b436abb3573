"""Objects in the values of Helm releases."""

from typing import Any

from guardrails import tokens
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}"
ASSET = {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17"}
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def release(values: dict[str, Any], **properties: Any) -> Thing:
    return Thing(type=tokens.RELEASE, name="app", properties={"chart": "app", "values": values, **properties})


def application(**helm: Any) -> Thing:
    return Thing(type=tokens.APPLICATION, name="app", properties={"spec": {"source": {"chart": "app", "helm": helm}}})


CASES = (
    valid("HLM01", release({"replicas": 2})),
    valid("HLM01", release({"extraObjects": [OBJECT]})),
    valid("HLM01", release({"extraManifests": ["apiVersion: v1\nkind: ConfigMap\n"]})),
    valid("HLM01", release({"sub": {"extraDeploy": []}, "note": "kind: {{ x }}"})),
    valid("HLM01", release({}, valueYamlFiles=[{**ASSET, "text": "a: 1"}])),
    valid("HLM01", release({"extraNotes": [TEMPLATE]}), edge=True),
    valid("HLM01", application(values="extraObjects: []", valuesObject={"extraObjects": [OBJECT]})),
    valid("HLM01", Thing(type=tokens.LIST, properties={"items": [OBJECT]})),
    invalid(
        "HLM01", Thing(type=tokens.LIST, properties={"items": [OBJECT, {"metadata": {"name": "a"}}]}), says="items[1] is an item without"
    ),
    valid("HLM01", application(values="replicas: {{ .replicas }}")),
    invalid(
        "HLM01",
        Thing(type=tokens.APPLICATION, name="app", properties={"spec": {"sources": [{"ref": "values"}, {"helm": {"values": TEMPLATE}}]}}),
        says="spec.sources[1].helm.values is a template",
    ),
    invalid("HLM01", application(values=f"extraObjects:\n- {TEMPLATE}"), says="spec.source.helm.values is a template"),
    invalid("HLM01", application(valuesObject={"extraObjects": [TEMPLATE]}), says="helm.valuesObject.extraObjects[0] is a template"),
    invalid("HLM01", release({"extraObjects": [TEMPLATE]}), says="values.extraObjects[0] is a template"),
    invalid("HLM01", release({"extraDeploy": TEMPLATE}), says="values.extraDeploy is a template"),
    invalid("HLM01", release({"sub": {"manifests": {"a": TEMPLATE}}}), says="values.sub.manifests.a is a template"),
    invalid("HLM01", release({"extraManifests": ["kind: [ConfigMap"]}), says="text that can't be read"),
    invalid("HLM01", release({}, valueYamlFiles=[{**ASSET, "path": "values.yaml"}]), says="valueYamlFiles[0] is (content of values.yaml)"),
    invalid("HLM01", release({"ExtraResources": [{"a": [TEMPLATE]}]}), says="ExtraResources[0].a[0] is a template", edge=True),
    # Objects that only a template makes, with or without a kind in sight.
    *(
        invalid("HLM01", release({"extraObjects": [text]}), says="values.extraObjects[0] is a template")
        for text in (
            '{{ include "app.trainer" . }}',
            "{{- range .Values.jobs }}\n---\n{{ toYaml . }}\n{{- end }}",
            "{{ tpl .Values.pod . }}",
        )
    ),
    valid("HLM01", release({"extraObjects": [{**OBJECT, "data": {"note": "{{ .kind }} kind: {{ x }}", "broken": "a: ["}}]})),
)
