"""One piece of this rank's work in a thread of its own, looked at from the training loop."""

import threading
from collections.abc import Callable
from typing import Any


class BackgroundWork:
    """Starts at once. It touches files and memory, and no collective: which rank is how far is agreed on in the loop."""

    def __init__(self, what: str, action: Callable[[], Any]) -> None:
        self.what = what
        """For messages, such as "writing the checkpoint of step 20"."""
        self.result: Any = None
        """What the action gave, once it has finished well."""
        self.failure: str | None = None
        """Why it failed, if it did."""
        self._action = action
        # Not a daemon: an ordinary end of the process waits for it. A kill doesn't, and leaves an unpublished folder.
        self._thread = threading.Thread(target=self._run, name=what)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it is still at work."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Until it has finished, well or not."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self.result = self._action()
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
