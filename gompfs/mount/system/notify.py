"""Reports the state of a service of Type=notify to systemd by datagrams to $NOTIFY_SOCKET: see sd_notify(3)."""

from __future__ import annotations

import os

from gompfs.log import Logger

log = Logger(__name__)


def notify(**values: str) -> None:
    """Send assignments such as READY="1" or STATUS="...". Does nothing without $NOTIFY_SOCKET."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    import socket  # imported here, as it takes milliseconds that a mount without systemd does not need

    if address.startswith("@"):
        address = "\0" + address[1:]
    message = "\n".join(f"{name}={' '.join(value.splitlines())}" for name, value in values.items())
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.sendto(os.fsencode(message), address)
    except OSError as error:
        log.warning("systemd could not be notified of %r: %s", message, error)
