"""Loggers that import the module logging for their first message. Its import takes as long as opening an archive."""

from __future__ import annotations

import sys

from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable
    from typing import Any

_set_up: list[Callable[[], None]] = []


def set_up_with(function: Callable[[], None]) -> None:
    """Call a function before the first message of a logger of this module."""
    _set_up.append(function)


def set_up() -> None:
    """Call these functions now."""
    while _set_up:
        _set_up.pop()()


def log_to_stderr() -> None:
    """Have all messages written to standard error."""
    import logging

    logging.basicConfig(format="gompfs: %(message)s", level=logging.INFO)


def shut_down() -> None:
    """Write what has not been written yet, before the process ends."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.shutdown()


class Logger:
    """The logger of a name in the module logging."""

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, message: str, *values: Any) -> None:
        """Log a message for developers."""
        self._logger().debug(message, *values)

    def info(self, message: str, *values: Any) -> None:
        """Log a message that needs no action."""
        self._logger().info(message, *values)

    def warning(self, message: str, *values: Any) -> None:
        """Log a warning."""
        self._logger().warning(message, *values)

    def error(self, message: str, *values: Any, cause: BaseException | None = None) -> None:
        """Log an error, and where the exception `cause` was raised if messages for developers are logged too."""
        import logging

        logger = self._logger()
        logger.error(message, *values, exc_info=cause if logger.isEnabledFor(logging.DEBUG) else None)

    def _logger(self) -> logging.Logger:
        import logging

        set_up()
        return logging.getLogger(self._name)
