"""Decides for each statistic whether the CPU computes it or a device on which the words stay, and remembers the times.

With the engine `gpu`, the words are put on the device for the first question. With `auto`, this happens after
statistics have used as much CPU time as starting a GPU takes. Then each kind of question goes to the engine that
answered it faster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gompfs.errors import GompfsError, StatsUnavailableError
from gompfs.light_types import TYPE_CHECKING
from gompfs.log import Logger

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.gpu.accelerator import ResidentMemory
    from gompfs.statistics.gpu.resident_text import ResidentText
    from gompfs.statistics.report import Report

log = Logger(__name__)

_SECONDS_BEFORE_LOADING = 3.0
"""A GPU starts in about two seconds, and the words have to be read once more."""
_TRY_CPU_ABOVE = 0.05
"""Seconds of a question on the device above which `auto` measures the CPU once too."""
CPU, GPU, RESIDENT = "cpu", "gpu", "gpu-resident"
"""The engine of an answer: the CPU; a GPU to which the words are brought for it; a GPU on which the words stay."""


class AnswerTimes:
    """The questions of one kind that one engine has answered, and the seconds until their first bytes were there."""

    def __init__(self, count: int = 0, seconds: float = 0.0) -> None:
        self.count = count
        self.seconds = seconds

    @property
    def mean(self) -> float:
        """Seconds per question."""
        return self.seconds / max(self.count, 1)


class Answering:
    """Chooses the engine for the statistics of an archive. Thread-safe."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._text: ResidentText | None = None
        self._is_over = False
        self._state = ""
        self._times: dict[tuple[str, str], AnswerTimes] = {}

    @property
    def reason(self) -> str:
        """Where the words are, and why, as text for users."""
        return self._state or "the words are read for each statistic"

    def all_times(self) -> dict[tuple[str, str], AnswerTimes]:
        """Returns the times of the computed answers, by kind of question and engine."""
        with self._lock:
            return {key: AnswerTimes(times.count, times.seconds) for key, times in self._times.items()}

    def describe_times(self) -> str:
        """Returns for each kind of question the engines that answered it and their mean times, as text for users."""
        described = [
            f"{kind}: {engine} {times.mean * 1e3:.1f} ms ({times.count})"
            for (kind, engine), times in sorted(self.all_times().items())
        ]
        return ", ".join(described) or "none yet"

    def answer(
        self,
        kind: str,
        on_device: Callable[[ResidentText], Report],
        otherwise: Callable[[], tuple[Report, str]],
    ) -> Report:
        """Returns what `on_device` returns for words that stay on the device, or else what `otherwise` returns.

        `kind` names questions that take about the same time. `otherwise` also returns CPU or GPU. If the device has too
        little memory, its words are dropped.
        """
        text = self._text_for(kind)
        if text is not None:
            report = self._ask(text, kind, on_device)
            if report is not None:
                return report
        started = time.perf_counter()
        report, engine = otherwise()
        self._note(kind, engine, time.perf_counter() - started)
        return report

    def _ask(self, text: ResidentText, kind: str, on_device: Callable[[ResidentText], Report]) -> Report | None:
        """Returns None if the device cannot answer."""
        with text.lock:
            if text.is_released:
                return None
            started = time.perf_counter()
            try:
                report = on_device(text)
            except StatsUnavailableError as error:
                log.info("statistics: %s on %s: %s", kind, text.device_names, str(error))
                return None
            except MemoryError:
                report = None
        if report is None:
            self.drop(f"{text.device_names} had too little memory for {kind}")
        else:
            self._note(kind, RESIDENT, time.perf_counter() - started)
        return report

    def give_back(self) -> None:
        """Frees the device memory, because something else needs it."""
        self.drop("the memory was needed for reading")

    def drop(self, why: str) -> None:
        """Frees the device memory. No words are put there any more."""
        with self._lock:
            text, self._text = self._text, None
            self._is_over, self._state = True, f"the words are not on the GPU: {why}"
        if text is not None:
            log.info("statistics: %s", self._state)
            text.release()

    def _note(self, kind: str, engine: str, seconds: float) -> None:
        with self._lock:
            times = self._times.setdefault((kind, engine), AnswerTimes())
            times.count += 1
            times.seconds += seconds
        log.debug("statistics: %s on the %s, %.1f ms", kind, engine, seconds * 1e3)

    def _text_for(self, kind: str) -> ResidentText | None:
        """Returns the words on the device if a question should use them. Puts them there if it is time."""
        accelerator = self._archive.engine.accelerator
        memory = None if accelerator is None or self._is_over else accelerator.resident_memory()
        if memory is None:
            return None
        if self._text is None and (memory.is_asked_for or self._seconds_without_device() > _SECONDS_BEFORE_LOADING):
            with self._loading:
                if self._text is None and not self._is_over:
                    self._load(memory)
        return self._text if memory.is_asked_for or self._is_faster_on_device(kind) else None

    def _load(self, memory: ResidentMemory) -> None:
        from gompfs.statistics.gpu.resident_text import ResidentText
        from gompfs.statistics.traversal import PhaseTimes

        started = time.perf_counter()
        try:
            text = ResidentText.load(self._archive, *memory.open(), PhaseTimes())
        except (GompfsError, MemoryError, ImportError) as error:
            self.drop(str(error) or "it has too little memory")
            return
        memory.call_if_needed(self.give_back)
        with self._lock:
            is_over, self._text = self._is_over, None if self._is_over else text
        if is_over:
            text.release()
            return
        seconds = time.perf_counter() - started
        with self._lock:
            self._state = f"{text.describe()}; put there in {seconds:.1f} s"
            log.info("statistics: %s", self._state)

    def _seconds_without_device(self) -> float:
        with self._lock:
            return sum(times.seconds for (_, engine), times in self._times.items() if engine != RESIDENT)

    def _is_faster_on_device(self, kind: str) -> bool:
        with self._lock:
            resident = self._times.get((kind, RESIDENT))
            others = [times.mean for engine in (CPU, GPU) if (times := self._times.get((kind, engine))) is not None]
        if resident is None:
            return True
        return resident.mean < min(others) if others else resident.mean <= _TRY_CPU_ABOVE
