"""Builds the rules of grammars on a GPU (device_repair with CuPy)."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.engine.device_repair import build_rules, join_parts, split_parts
from gompfs.engine.kernel_source import compile_options, read_source
from gompfs.errors import EngineUnavailableError
from gompfs.grammar import PartsInRules, PartsInWords


class GpuRepair:
    """The kernels of repair.cu on the present device, compiled when they are first asked for."""

    arrays = cupy

    def __init__(self) -> None:
        self._module = cupy.RawModule(code=read_source("repair"), options=compile_options(), backend="nvrtc")

    def fetch(self, array: cupy.ndarray) -> NDArray[np.uint32]:
        """See ArrayDevice.fetch."""
        return np.asarray(cupy.asnumpy(array))

    def launch(
        self, kernel: str, num_ctas: int, num_threads: int, shared_bytes: int, arguments: tuple[Any, ...]
    ) -> None:
        """See ArrayDevice.launch: on the current stream."""
        values = tuple(np.uint32(value) if isinstance(value, int) else value for value in arguments)
        function = self._module.get_function(kernel)
        function((num_ctas,), (num_threads,), values, shared_mem=shared_bytes)

    def build_rules(self, parts: PartsInWords) -> PartsInRules:
        """See RuleBuilder. Where the device has too little memory, in halves; EngineUnavailableError for one part."""
        try:
            return build_rules(self, parts)
        except cupy.cuda.memory.OutOfMemoryError as error:
            if len(parts.num_words) == 1:
                raise EngineUnavailableError(f"the GPU has too little memory for a grammar: {error}") from None
        cupy.get_default_memory_pool().free_all_blocks()
        left, right = split_parts(parts)
        return join_parts(self.build_rules(left), self.build_rules(right))
