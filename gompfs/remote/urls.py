"""URLs of archives. Their user names, passwords and queries may be secrets, so nothing shows these."""

from __future__ import annotations

_IN_SCHEMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-")
_SECRETS = r"(?<=://)[^/\s@]*(?=@)|(?<=\?)[^\s'\",)>]+"


def is_url(path: str) -> bool:
    """Returns whether an archive is given by a URL, and not by a path."""
    scheme, separator, _ = path.partition("://")
    return separator != "" and scheme[:1].isalpha() and _IN_SCHEMES.issuperset(scheme)


def shown_url(text: str) -> str:
    """Returns a URL, or a text with URLs, without what may be secret; a path as it is."""
    if "://" not in text:
        return text
    import re  # takes as long as the rest of a start

    return re.sub(_SECRETS, "...", text)


def hide_secrets_of_process() -> None:
    """Overwrite the secrets of URLs among the arguments of this process, which every user can list.

    The memory of the arguments is what /proc/PID/cmdline shows.
    """
    import ctypes  # here, since commands on local archives need not wait for these
    import re

    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    with open("/proc/self/cmdline", "rb") as file:
        arguments = file.read()
    if len(arguments) != end - begin:
        return
    for argument in re.finditer(rb"[^\0]*://[^\0]*", arguments):
        for secret in re.finditer(_SECRETS.encode(), argument[0]):
            ctypes.memset(begin + argument.start() + secret.start(), ord("x"), len(secret[0]))
