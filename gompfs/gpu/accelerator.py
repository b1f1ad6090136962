"""The interface of what devices do for an engine besides decoding blocks for the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # imported for types only: they need NumPy, and blocks are decoded without NumPy
    from gompfs.gpu.device.arrays import ArrayDevice, TextDevice


class Accelerator(Protocol):
    """Says which work devices do, and gives the devices. Several threads may call the methods at once.

    The methods raise EngineUnavailableError if the engine must use a device and cannot.
    """

    def arrays(self, num_symbols: int) -> ArrayDevice | None:
        """Returns the device that traverses grammars of `num_symbols` symbols, or None if the CPU does it."""

    def search(self, num_bytes: int) -> Sequence[TextDevice]:
        """Returns the devices that search `num_bytes` of text, or none if the CPU does it."""

    def resident_memory(self) -> ResidentMemory | None:
        """Returns the memory in which words may stay for statistics, or None if nothing may stay."""


class ResidentMemory(Protocol):
    """Device memory in which the words of archives stay."""

    @property
    def is_asked_for(self) -> bool:
        """Whether the user asked for the devices. Otherwise they should be used only where they are faster."""

    def open(self) -> tuple[Sequence[ArrayDevice], int]:
        """Returns the devices, and how many bytes of the memory of each one archive may keep. May start the devices.

        Raises EngineUnavailableError if they cannot be used.
        """

    def call_if_needed(self, give_back: Callable[[], None]) -> None:
        """Has `give_back` called, once, when the memory is needed for something else. Holds it weakly."""
