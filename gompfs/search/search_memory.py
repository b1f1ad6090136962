"""What searches of an archive on devices keep for the next one."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from gompfs.archive import Archive
from gompfs.forks import call_in_child
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from gompfs.gpu.device.arrays import TextDevice
    from gompfs.search.gpu.text_on_device import TextOnDevice


class SearchMemory:
    """The text of an archive on devices. Thread-safe."""

    def __init__(self, archive: Archive) -> None:
        """For searches of `archive`."""
        self._archive = archive
        self._forget()
        call_in_child(self, SearchMemory._forget)

    def _forget(self) -> None:
        """Called in a forked child, too, which cannot use the devices of its parent."""
        self._lock = threading.Lock()
        self._texts: list[TextOnDevice] = []

    def texts(self, devices: Sequence[TextDevice]) -> list[TextOnDevice]:
        """Returns the blocks of the stream as text in the memory of devices, divided among them."""
        from gompfs.search.gpu.text_on_device import texts_on_devices  # needs NumPy

        with self._lock:
            if [text.device for text in self._texts] != list(devices):
                self._texts = texts_on_devices(self._archive, devices)
            return self._texts
