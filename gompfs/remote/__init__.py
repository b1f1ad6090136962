"""Archives at URLs: on web servers, and on all other stores that fsspec knows.

- `urls`: what a URL is, and how messages show it.
- `remote_file`: an archive at a URL as an ArchiveFile. It fetches what is missing in the cache.
- `sources`: fetch ranges of one file, and notice that it was replaced.
- `link_speed`: how much to request at once.
- `chunk_cache`: what was fetched, on disk.

fsspec is imported when the first URL is opened.
"""

from gompfs.format import ArchiveFile, LocalFile
from gompfs.remote.urls import hide_secrets_of_process, is_url, shown_url

__all__ = ["hide_secrets_of_process", "is_url", "open_file", "shown_url"]


def open_file(path: str) -> ArchiveFile:
    """Opens the file of an archive, given by a path or a URL. Raises OSError, and GompfsError."""
    if not is_url(path):
        return LocalFile.open(path)
    from gompfs.remote.remote_file import open_url

    return open_url(path, {})
