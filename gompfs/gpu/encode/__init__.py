"""Encodes blocks on a GPU, with the bytes of the CPU.

- `encoder`: passes slices of a batch through the device.
- `parser` and `backward_parser`: launch the kernels that cut blocks into sequences.
- `encode_kernels`: launches the kernels that write payloads and check them.
"""
