"""Everything that runs on a GPU, except the choice of it: decoding, cutting words, building and traversing grammars.

- `device`: one GPU with its decode kernels, memory and resident payloads; `kernels` finds the CUDA sources,
  `compiled_kernels` those that were compiled before, and `cuda` loads them.
- `batch`: decodes a batch of blocks, slice by slice, into memory of the host.
- `spread`: divides work among several devices, and has the threads that give it to them.
- `accelerator`: the interface of the work that a device does besides decoding.
- `arrays`: the interfaces of a device that computes with arrays, and of one that also decodes blocks into its memory.
  `cupy_arrays`, with `staging`, and `cupy_text` implement them with CuPy. The modules below need nothing else, so that
  tests run them with NumPy and with kernels that are built for the host.
- `words`: cuts text into words, and makes the dictionary; `tokens`: numbers the words of the parts of a grammar.
- `repair`: builds the rules of a grammar.
- `forest`: the rules and terms of a grammar in device memory; `traversal`: counts terms, top-down or bottom-up;
  `tables`: the local tables of a traversal, and the sorted pairs that are its result.
"""
