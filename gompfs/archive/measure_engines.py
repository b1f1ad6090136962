"""Measures how fast the CPU and a GPU decode an archive in batches, as they are decoded ahead of readers.

    python -m gompfs.archive.measure_engines ARCHIVE

What it finds is kept for the engine `auto` (gompfs/engine/rates.py). A mount runs it once a month, while nobody reads:
a process of its own gives the memory of the GPU back.
"""

from __future__ import annotations

import os
import sys
import time

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.engine.rates import KnownRates, Rates
from gompfs.errors import EngineUnavailableError, GompfsError
from gompfs.threads import default_threads

_BATCH_BYTES = 16 << 20
_NUM_BATCHES = 8
_NICENESS = 10  # whoever begins to read meanwhile comes first


def measure_engines(path: str) -> tuple[float, float] | None:
    """Returns the speeds of the CPU and the GPU in bytes per second, or None if the archive has too few blocks.

    Raises EngineUnavailableError if there is no GPU, and the errors of Archive.
    """
    rates = Rates()
    for name in ("cpu", "gpu"):
        with Archive(path, engine=select_engine(name), cache_size=2 * _BATCH_BYTES) as archive:
            per_batch = _BATCH_BYTES // archive.block_size
            if archive.num_blocks < _NUM_BATCHES * per_batch:
                return None
            step = archive.num_blocks // _NUM_BATCHES
            for first in range(0, _NUM_BATCHES * step, step):
                numbers = list(range(first, first + per_batch))
                started = time.perf_counter()
                num_loaded = archive.blocks.reader.load(numbers, archive.engine.num_threads, name == "cpu")
                rates.note(name, num_loaded * archive.block_size, time.perf_counter() - started)
    return rates.measured


def main() -> None:
    """Measures, and keeps what was measured."""
    os.nice(_NICENESS)
    try:
        measured = measure_engines(sys.argv[1])
    except EngineUnavailableError as error:
        KnownRates(default_threads()).keep(1, 0)
        sys.exit(f"gompfs: {error}")
    except (GompfsError, OSError) as error:
        sys.exit(f"gompfs: {error}")
    if measured is not None:
        KnownRates(default_threads()).keep(*measured)
        sys.stdout.write("CPU {:.2f} GB/s, GPU {:.2f} GB/s\n".format(*(rate / 1e9 for rate in measured)))


if __name__ == "__main__":
    main()
