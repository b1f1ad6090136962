"""A GPU: what decoding, encoding, statistics and searches share.

- `arrays`: the interfaces of a device that computes with arrays, and of one that also decodes blocks. `cupy_arrays`,
  with `pinned_copies`, implements the first one with CuPy. Statistics and searches need nothing else, so that tests run
  them with NumPy and with kernels that are built for the host.
- `kernel_sources` finds the CUDA sources, `compiled_kernels` those that were compiled before, and `cuda` loads them.
- `slot`: a stream, and the memory of the work on it; `host_copy`: copies to pinned memory.
- `spread`: divides work among several devices, and has the threads that give it to them.
- `caller_arrays`: arrays and streams of callers.
"""
