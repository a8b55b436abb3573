"""Looks in a cluster for objects and Helm releases that the state lacks."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import yaml
from kubernetes import config
from urllib3.exceptions import HTTPError

from local.errors import LocalStackError
from trainyard.recovery.wanted import Found, Wanted

RELEASE = "kubernetes:helm.sh/v3:Release"
# The provider's own field managers: an object without one was made by somebody else.
_MANAGER = "pulumi-kubernetes"


class ClusterSearch:
    """One cluster, as a provider of the state reaches it.

    Raises:
        LocalStackError: the kubeconfig is of no use.
    """

    def __init__(self, kubeconfig: str, context: str | None = None) -> None:
        try:
            document = yaml.safe_load(kubeconfig)
            self._api = config.new_client_from_config_dict(document, context=context, persist_config=False)
        except (yaml.YAMLError, config.ConfigException) as error:
            raise LocalStackError(f"the state's kubeconfig can't be used: {error}") from error
        self._kinds: dict[tuple[str, str], tuple[str, bool] | None] = {}

    def find(self, wanted: Wanted, taken: set[str]) -> Found | None:
        """The object or release if it exists and was made by the provider.

        Raises:
            LocalStackError: the API server does not answer.
        """
        found = self._release(wanted) if wanted.kind == RELEASE else self._object(wanted)
        return None if found is None or found.id in taken else found

    def _object(self, wanted: Wanted) -> Found | None:
        api_version, kind = wanted.known("apiVersion"), wanted.known("kind")
        metadata = wanted.inputs.get("metadata") or {}
        if not (api_version and kind and metadata.get("name")):
            return None
        served = self._served(api_version, kind)
        if served is None:
            return None
        plural, namespaced = served
        place = f"namespaces/{quote(metadata.get('namespace') or 'default')}/" if namespaced else ""
        live = self._get(f"{_root(api_version)}/{place}{plural}/{quote(metadata['name'], safe='')}")
        manager = _manager(live) if live else None
        if live is None or manager is None:
            return None
        name = live["metadata"]["name"]
        identifier = f"{live['metadata']['namespace']}/{name}" if namespaced else name
        return Found(id=identifier, outputs={"__fieldManager": manager, "__initialApiVersion": api_version})

    def _release(self, wanted: Wanted) -> Found | None:
        """The newest revision's record. Helm keeps one Secret for each."""
        name, namespace = wanted.known("name"), wanted.known("namespace") or "default"
        if not name:
            return None
        records = self._records(namespace, name)
        if not records:
            return None
        newest = max(records, key=lambda record: int(record["metadata"]["labels"]["version"]))
        return Found(id=f"{namespace}/{name}", condition=newest["metadata"]["labels"]["status"])

    def half_made(self, release: Mapping[str, Any]) -> str | None:
        """Name of the record of an upgrade that was cut short, for a release in the state; Helm refuses any other until it is gone."""
        inputs = release.get("inputs") or {}
        records = self._records(inputs.get("namespace") or "default", str(inputs.get("name")))
        newest = max(records, key=lambda record: int(record["metadata"]["labels"]["version"]), default=None)
        if newest is None or newest["metadata"]["labels"]["status"] not in ("pending-upgrade", "pending-rollback"):
            return None
        return newest["metadata"]["name"]

    def forget(self, namespace: str, record: str) -> None:
        """Delete the record of one revision."""
        self._call("DELETE", f"/api/v1/namespaces/{quote(namespace)}/secrets/{quote(record)}")

    def _records(self, namespace: str, name: str) -> list[dict[str, Any]]:
        selector = quote(f"owner=helm,name={name}")
        listed = self._get(f"/api/v1/namespaces/{quote(namespace)}/secrets?labelSelector={selector}")
        return listed["items"] if listed else []

    def _served(self, api_version: str, kind: str) -> tuple[str, bool] | None:
        """Plural and whether namespaced; None where the cluster does not know the kind (yet)."""
        if (api_version, kind) not in self._kinds:
            listed = self._get(_root(api_version)) or {}
            found = next((each for each in listed.get("resources", ()) if each["kind"] == kind and "/" not in each["name"]), None)
            self._kinds[api_version, kind] = (found["name"], found["namespaced"]) if found else None
        return self._kinds[api_version, kind]

    def _get(self, path: str) -> dict[str, Any] | None:
        return self._call("GET", path)

    def _call(self, method: str, path: str) -> dict[str, Any] | None:
        request = self._api.param_serialize(
            method=method, resource_path=path, header_params={"Accept": "application/json"}, auth_settings=["BearerToken"]
        )
        try:
            answer = self._api.call_api(*request, _request_timeout=30)
            body = answer.read()
        except HTTPError as error:
            raise LocalStackError(f"the cluster does not answer, so what a killed run made in it can't be told: {error}") from error
        if answer.status == 404:
            return None
        if answer.status >= 400:
            raise LocalStackError(f"the cluster refuses {method} {path} ({answer.status}): {body.decode(errors='replace')[:300]}")
        return json.loads(body)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _manager(live: Mapping[str, Any]) -> str | None:
    managers = (entry.get("manager", "") for entry in live["metadata"].get("managedFields") or ())
    return next((manager for manager in managers if manager.startswith(_MANAGER)), None)
