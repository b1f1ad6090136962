"""The one place where an engine is chosen; it says why."""

from __future__ import annotations

from gompfs.engine.base import Engine
from gompfs.errors import EngineUnavailableError, OptionError

ENGINE_NAMES = ("auto", "cpu", "gpu", "reference")


def select_engine(name: str = "auto", num_threads: int = 0) -> Engine:
    """The engine of that name, on `num_threads` host threads (0: one per core).

    `auto` takes the CPU, as this release has no GPU engine. Raises EngineUnavailableError for `gpu`,
    OptionError for a name that is none of ENGINE_NAMES.
    """
    if name in ("auto", "cpu"):
        from gompfs.engine.cpu import CpuEngine

        reason = "asked for" if name == "cpu" else "auto: this release decodes on the CPU only"
        return CpuEngine(num_threads, reason)
    if name == "reference":
        from gompfs.engine.reference import ReferenceEngine

        return ReferenceEngine()
    if name == "gpu":
        raise EngineUnavailableError("this release has no gpu engine; use --engine cpu or auto")
    raise OptionError(f"no engine {name!r}; there are {', '.join(ENGINE_NAMES)}")
