"""A `sqlenv serve` that ends with this process."""

import atexit
import json
import subprocess

from .command import HERE, MAIN, node


class Server:
    """Starts a server on a free port. It ends with `stop()`, at the end of a `with` block or with this process.

    with Server("--data", "bundled", "--step-budget", "10") as server:
        print(server.url)
    """

    def __init__(self, *flags: str) -> None:
        ends = (HERE / "end_with_parent.mjs").as_uri()
        command = [node(), "--import", ends, str(MAIN), "serve", "--port", "0", "--json", "--quiet", *flags]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.stop)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"sqlenv serve {' '.join(flags)} exited with {self._process.wait()}")
        self.url: str = json.loads(line)["url"]

    def stop(self) -> None:
        """Lets running steps finish and ends the server."""
        atexit.unregister(self.stop)
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
