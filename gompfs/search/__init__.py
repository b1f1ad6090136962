"""Searches the files of an archive for patterns, as ripgrep searches a tree. The work is done in native/search."""
