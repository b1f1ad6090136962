"""Archives in other libraries: fsspec, PyTorch, Dask, numcodecs and Zarr.

Users import them as `gompfs.filesystem`, `gompfs.torch` and so on. Each module imports its library, so none is imported
here.
"""
