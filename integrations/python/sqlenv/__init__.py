"""SQLEnv from Python: the server and command of the npm package, and a taskset for verifiers (`vf-eval sqlenv`)."""

from .server import Server

__version__ = "0.1.0"
__all__ = ["SQLEnvEnv", "SQLEnvTaskset", "Server", "load_environment"]


def __getattr__(name: str) -> object:
    # Importing verifiers takes seconds, and Server does not need it.
    if name in __all__:
        from . import taskset

        return getattr(taskset, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
