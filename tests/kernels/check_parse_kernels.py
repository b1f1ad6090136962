"""Compares sequences that come from the kernels on the host with those of the C++ core.

Usage: check_parse_kernels.py LIBRARY NUM_EXAMPLES SIZE, where LIBRARY is built from host_kernels.cpp, and SIZE is the
number of bytes parsed with each set of options. Since it has sanitizers, this is a process of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from host_device import HostDevice
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parse_cases import all_options, compare, contents, make_content

from gompfs.codec import CodecOptions

_LITTLE_SHARED_MEMORY = 48 << 10


def main(library: Path, num_examples: int, size: int) -> None:
    """Checks all options, with text and links in shared memory and without, and random blocks."""
    devices = [HostDevice(library), HostDevice(library, shared_memory=_LITTLE_SHARED_MEMORY)]
    options = list(all_options())
    for seed, each in enumerate(options):
        compare(devices[seed % 3 == 0], make_content(seed, size), 16 * (size // 23), each)

    @settings(max_examples=num_examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        device=st.sampled_from(devices),
        content=contents,
        block_size=st.integers(1, 40).map(lambda number: 16 * number),
        options=st.sampled_from(options),
    )
    def compare_any(device: HostDevice, content: bytes, block_size: int, options: CodecOptions) -> None:
        compare(device, content, block_size, options)

    compare_any()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
