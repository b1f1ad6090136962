"""Decodes and encodes blocks on GPUs, for all other packages.

- `device`: arrays, kernels, pinned memory and streams of a GPU, and the division of work among several.
- `decode`: decodes blocks; each device has its slots, heads and resident payloads.
- `encode`: parses and encodes blocks.
- `accelerator`: the interface of the work that a device does besides decoding.

Code that computes statistics or searches on a GPU is in `gompfs.statistics.gpu` and `gompfs.search.gpu`.
"""
