"""One look at whether a daemon is ready."""

import socket
import ssl
import urllib.error
import urllib.request

from local.node.spec import Probe

_TIMEOUT_SECONDS = 1.0


def is_ready(probe: Probe) -> bool:
    """True where the daemon answers now; never waits longer than a second."""
    return _answers(probe.url) if probe.url else _accepts(probe.unix)


def _answers(url: str) -> bool:
    # The daemons sign their own certificates for these loopback ports; nothing secret is sent.
    context = ssl._create_unverified_context() if url.startswith("https:") else None
    # No proxy of the caller's environment may stand between the supervisor and its daemons.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=_TIMEOUT_SECONDS) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_TIMEOUT_SECONDS)
        try:
            client.connect(path)
        except OSError:
            return False
    return True
