"""The index of an archive: names, inodes, extents and the positions of blocks.

`reader` and `writer` are not imported here: reading an archive must not load modules that only packing needs.
"""
