"""Wait until every worker's sshd answers: `wait_for_workers.py NAME-PATTERN COUNT PORT SECONDS`, with `{}` for the index in the pattern.

Runs before an MPI launcher starts. The operator makes the first launcher when all workers are ready, but not a later one: after a worker
was lost, mpirun would fail to resolve its successor's name again and again until the launcher's retries were used up.
"""

import socket
import sys
import time

POLL_SECONDS = 1.0
REPORT_SECONDS = 10.0
CONNECT_SECONDS = 2.0


def answers(host: str, port: int) -> bool:
    """Whether `host` resolves and something listens on `port` there."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            return True
    except OSError:
        return False


def main(pattern: str, count: int, port: int, seconds: float) -> int:
    """Wait; returns 0 when all answer, 1 with the names of the missing ones after `seconds`."""
    start = reported = time.monotonic()
    missing = [pattern.format(index) for index in range(count)]
    while missing := [host for host in missing if not answers(host, port)]:
        now = time.monotonic()
        if now - start > seconds:
            print(f"no answer from {', '.join(missing)} on port {port} within {seconds:g} s", file=sys.stderr)
            return 1
        if now - reported > REPORT_SECONDS:
            reported = now
            print(f"waiting for {len(missing)} of {count} workers, first {missing[0]}", flush=True)
        time.sleep(POLL_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
