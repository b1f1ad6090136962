"""Decodes blocks on a GPU. There is one way: a PlanDecoder passes blocks of a source to an output, slice by slice.

- `block_source`: the interface of sources. `archive_source`: blocks of an archive; `buffer_source`: blocks in memory.
- `plan_decoder`: reads, uploads and decodes slices. `outputs`: where the contents go; `layout`: how slices are cut.
- `device`: one GPU with its decode kernels and memory: `slots`, `payload_store`, and heads of parts in `head_store`,
  with `head_memory` and `head_opener`.
- `buffers`: batches of an engine, and compressed buffers; `shares`: their division among several devices.
- `text`: blocks of text that stay on the device, for searches.
"""
