"""Reads from the driver's library NVML, through its C interface: the driver version, and a GPU's energy counter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

_LIBRARY = "libnvidia-ml.so.1"
_VERSION_SIZE = 80


def driver_version() -> str | None:
    """Returns the version of the driver; None if NVML cannot be used."""
    library = _load()
    text = ctypes.create_string_buffer(_VERSION_SIZE)
    if library is None or library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(_VERSION_SIZE)) != 0:
        return None
    return text.value.decode()


def energy_meter(pci_bus_id: str) -> Callable[[], float] | None:
    """Returns a function that reads the joules that a GPU used since its driver started; None if not supported."""
    library = _load()
    device = ctypes.c_void_p()
    if library is None or library.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.encode(), ctypes.byref(device)) != 0:
        return None
    millijoules = ctypes.c_ulonglong()

    def read() -> float:
        status = library.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(millijoules))
        if status != 0:
            raise OSError(f"NVML cannot read the energy counter: status {status}")
        return millijoules.value / 1e3

    try:
        read()
    except OSError:
        return None
    return read


@cache
def _load() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None
