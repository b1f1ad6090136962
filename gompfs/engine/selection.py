"""Chooses the engine. No other module does; the engine's `reason` says why it was chosen."""

from __future__ import annotations

import os
import sys
from functools import cache

from gompfs.engine.base import Engine
from gompfs.errors import EngineUnavailableError, OptionError, pip_install
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from gompfs.engine.gpu import GpuEngine
    from gompfs.gpu.decode.device import Device
    from gompfs.options import GpuOptions

ENGINE_NAMES = ("auto", "cpu", "gpu")


def has_cupy() -> bool:
    """Returns whether CuPy is installed."""
    from importlib.machinery import PathFinder

    return "cupy" in sys.modules or PathFinder.find_spec("cupy") is not None


def select_engine(name: str = "auto", num_threads: int = 0, gpu: GpuOptions | None = None) -> Engine:
    """Returns the engine called `name`, with `num_threads` host threads (0: one per core).

    `gpu:0,1` names CUDA devices, and `gpu` limits what they may use. `auto` uses the CPU, and also a GPU if there is
    one and it decodes faster.

    Raises EngineUnavailableError for a GPU that cannot be used, and OptionError for a name that is not in ENGINE_NAMES.
    """
    kind, _, devices = name.partition(":")
    if kind not in ENGINE_NAMES or (devices and kind != "gpu"):
        raise OptionError(f"unknown engine {name!r}; use one of {', '.join(ENGINE_NAMES)}, and gpu:NUMBER,...")
    if kind == "gpu":
        return _gpu_engine(devices, num_threads, gpu)
    if kind == "auto" and has_cupy():
        from gompfs.engine.auto import AutoEngine

        return AutoEngine(num_threads, gpu)
    from gompfs.engine.cpu import CpuEngine

    return CpuEngine(num_threads, "asked for" if kind == "cpu" else "auto: the CPU, because CuPy is not installed")


def select_device(number: int, engine: Engine, options: GpuOptions) -> Device:
    """Returns the CUDA device with a number: the one that `engine` uses, or one with `options` for this process.

    Raises EngineUnavailableError if it cannot be used.
    """
    if not has_cupy():
        raise EngineUnavailableError(
            f"arrays on a GPU need CuPy: {pip_install('gpu-cuda13')}, or gpu-cuda12; or use device='cpu'"
        )
    from gompfs.engine.gpu import GpuEngine

    found = engine.device(number) if isinstance(engine, GpuEngine) else None
    if found is not None:
        return found
    device = _opened_for(os.getpid(), number, engine.num_threads, options).device(number)
    assert device is not None
    return device


@cache
def _opened_for(process: int, number: int, num_threads: int, options: GpuOptions) -> GpuEngine:
    """Returns the engine with one device that a process keeps. In a fork, the parent's cannot be used."""
    from gompfs.engine.gpu import GpuEngine

    return GpuEngine([number], num_threads, options=options)


def _gpu_engine(devices: str, num_threads: int, options: GpuOptions | None) -> Engine:
    try:
        numbers = [int(number) for number in (devices or "0").split(",")]
    except ValueError:
        raise OptionError(f"{devices!r} does not name CUDA devices; write gpu:0 or gpu:0,1") from None
    if len(set(numbers)) < len(numbers):
        raise OptionError(f"{devices!r} names a CUDA device twice")
    if not has_cupy():
        raise EngineUnavailableError(
            f"the gpu engine needs CuPy: {pip_install('gpu-cuda13')}, or gpu-cuda12; or use --engine cpu"
        )
    from gompfs.engine.gpu import GpuEngine

    return GpuEngine(numbers, num_threads, options=options)
