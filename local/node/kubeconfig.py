"""Kubeconfig files with everything inline, so that they can be copied and read from any folder."""

import base64
import json
from pathlib import Path

from local.node.pki import Pki


def write_kubeconfig(path: Path, pki: Pki, *, server: str, user: str) -> None:
    """Write the kubeconfig of the certificate `user` (a file stem in the folder of `pki`) for the API server at `server`."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "trainyard-local",
        "clusters": [{"name": "trainyard-local", "cluster": {"server": server, "certificate-authority-data": _encode(pki.authority)}}],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _encode(pki.folder / f"{user}.crt"),
                    "client-key-data": _encode(pki.folder / f"{user}.key"),
                },
            }
        ],
        "contexts": [{"name": "trainyard-local", "context": {"cluster": "trainyard-local", "user": user}}],
    }
    # JSON is YAML, and needs no parser to be right.
    text = json.dumps(document, indent=1)
    if not path.exists() or path.read_text() != text:
        path.touch(mode=0o600)
        path.write_text(text)


def _encode(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
