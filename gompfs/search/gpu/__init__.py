"""Searches on devices: which blocks may have matches.

- `text_on_device`: the blocks of an archive as text in device memory, batch by batch.
- `block_scan`: the kernels that search this text (kernels/search).
- `archive_scan`: the result of a scan of all blocks.
"""
