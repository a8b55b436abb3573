"""Command line of the registrar."""

import argparse
import functools
import ipaddress
import sys
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path

from local.errors import LocalStackError
from local.node.api import KubernetesApi
from local.registrar.instance import Instance, ec2_client, list_instances
from local.registrar.loop import Registrar, answers, run

PATIENCE_SECONDS = 60.0


def main(argv: Sequence[str] | None = None) -> int:
    """Register nodes until API server or emulator are gone for a minute. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m local.registrar", description="Registers a Node for every instance of Karpenter's.")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="how to reach the API server")
    parser.add_argument("--endpoint", type=_emulator, required=True, help="URL of the AWS emulator")
    parser.add_argument("--region", required=True, help="AWS region of the platform")
    parser.add_argument("--interval", type=float, default=2.0, metavar="SECONDS", help="time between two looks (default: %(default)s)")
    options = parser.parse_args(argv)
    client = functools.cache(functools.partial(ec2_client, options.endpoint, options.region))

    def instances() -> Sequence[Instance]:
        return list_instances(client())

    try:
        cluster = KubernetesApi.from_kubeconfig(options.kubeconfig, timeout_seconds=20)
    except LocalStackError as error:
        _report(str(error))
        return 1
    run(
        Registrar(cluster, instances, _report),
        reachable=functools.partial(answers, options.endpoint),
        patience_seconds=PATIENCE_SECONDS,
        interval_seconds=options.interval,
        report=_report,
    )
    return 0


def _emulator(url: str) -> str:
    """Refuse anything but an address of this machine's own: a Node made for an instance of AWS would be a lie."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        private = host == "localhost" or ipaddress.ip_address(host).is_private
    except ValueError:
        private = False
    if not url.startswith("http://") or not private:
        raise argparse.ArgumentTypeError(f"{url!r} is not the emulator, which is at http://<loopback or private address>:<port>")
    return url


def _report(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
