"""The SQLite index of an archive: names, inodes, extents and the places of blocks.

`reader` and `writer` are imported by name: reading an archive does not load what only packing needs.
"""
