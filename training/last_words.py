"""Where a rank leaves the reason of its end, for the launcher to repeat on its own last line. Standard library only."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

FILE = "TRAINYARD_LAST_WORDS"
"""Names the file that the supervisor reads; it holds the reason as it is."""
_TORCHRUN_FILE = "TORCHELASTIC_ERROR_FILE"


def leave(reason: str, environ: Mapping[str, str] = os.environ) -> None:
    """Write the reason where the launcher looks for it. A disk that takes no more must not hide the reason itself, so errors pass."""
    torchrun = {"message": {"message": reason, "extraInfo": {"timestamp": str(int(time.time()))}}}
    for name, text in ((FILE, reason), (_TORCHRUN_FILE, json.dumps(torchrun))):
        if environ.get(name):
            try:
                Path(environ[name]).write_text(text, encoding="utf-8")
            except OSError:
                continue
