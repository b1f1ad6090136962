"""Tells systemd how a service of Type=notify does, as sd_notify(3) describes it: datagrams to $NOTIFY_SOCKET."""

from __future__ import annotations

import logging
import os

log = logging.getLogger(__name__)


def notify(**values: str) -> None:
    """Send assignments such as READY="1" or STATUS="..."; without $NOTIFY_SOCKET nobody is there to be told."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    import socket  # which takes milliseconds, in a mount without systemd too

    if address.startswith("@"):
        address = "\0" + address[1:]
    message = "\n".join(f"{name}={' '.join(value.splitlines())}" for name, value in values.items())
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.sendto(os.fsencode(message), address)
    except OSError as error:
        log.warning("systemd was not told %r: %s", message, error)
