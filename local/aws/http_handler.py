"""One HTTP connection of the emulator. werkzeug's own handler closes after each answer, but SDKs keep connections."""

import io
import sys
import traceback
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler

WITHOUT_BODY = (204, 304)


class Handler(MotoRequestHandler):
    """Reads the whole request, answers it with the whole response, and waits for the next one on the same connection."""

    protocol_version = "HTTP/1.1"
    # Headers and body leave in one segment, else the peer's delayed acknowledgement costs 40 ms.
    wbufsize = -1
    disable_nagle_algorithm = True
    # An idle connection's thread ends after this many seconds.
    timeout = 300

    def run_wsgi(self) -> None:
        """Answer one request."""
        if self.headers.get("Expect", "").strip().lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        environ = self.make_environ()
        environ["wsgi.input"] = io.BytesIO(self._body(environ))
        status, headers, content = self._answer(environ)
        if status:
            self._send(status, headers, content)

    def _answer(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        started: dict[str, Any] = {"status": "200 OK", "headers": []}

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            started.update(status=status, headers=headers)

        application: Any = self.server.app
        try:
            content = b"".join(application(environ, start))
        except ConnectionError:
            # Dropped on purpose: no answer at all.
            self.close_connection = True
            return "", [], b""
        except Exception:  # A request must not end the process; the log tells what happened.
            traceback.print_exc(file=sys.stderr)
            return "500 InternalError", [], b"the emulator failed, see its log"
        return started["status"], started["headers"], content

    def _body(self, environ: dict[str, Any]) -> bytes:
        stream = environ["wsgi.input"]
        if environ.get("wsgi.input_terminated"):
            return stream.read()
        return stream.read(int(environ.get("CONTENT_LENGTH") or 0))

    def _send(self, status: str, headers: list[tuple[str, str]], content: bytes) -> None:
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        head = self.command == "HEAD"
        for name, value in headers:
            if name.lower() != "connection" and (head or name.lower() != "content-length"):
                self.send_header(name, value)
        if not head and int(code) not in WITHOUT_BODY:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not head and int(code) not in WITHOUT_BODY:
            self.wfile.write(content)
        self.wfile.flush()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing: a Karpenter that idles would fill the disk. The request log holds the last ones."""
