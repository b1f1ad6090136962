"""The helper of mount(8): `mount.gompfs ARCHIVE[:ARCHIVE...] DIRECTORY [-fnsv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]`.

mount(8) runs /sbin/mount.TYPE, so /sbin needs links named mount.gompfs and mount.fuse.gompfs to this program. Exit
statuses are those of mount(8).
"""

from __future__ import annotations

import getopt
import sys
from collections.abc import Sequence

from gompfs.cli.application import EXIT_USAGE, print_error, run
from gompfs.errors import OptionError
from gompfs.options import MountOptions, split_source
from gompfs.remote import hide_secrets_of_process

_USAGE = "usage: mount.gompfs ARCHIVE[:ARCHIVE...] DIRECTORY [-fnsv] [-o OPTIONS]"
_EXIT_USAGE = 1  # of mount(8): wrong usage or permissions
_EXIT_FAILURE = 32  # of mount(8): a mount failed


def main() -> None:
    """Mount as sys.argv says, and exit with the status."""
    arguments = sys.argv[1:]
    hide_secrets_of_process()
    sys.exit(mount(arguments))


def mount(arguments: Sequence[str]) -> int:
    """Run one call from mount(8) and return the exit status."""
    try:
        flags, operands = getopt.gnu_getopt(arguments, "fnsvN:o:t:")
        source, directory = operands
    except (getopt.GetoptError, ValueError):
        print_error(_USAGE)
        return _EXIT_USAGE
    if any(flag == "-f" for flag, _ in flags):
        return 0  # a dry run
    options = ",".join(value for flag, value in flags if flag == "-o")
    try:
        archives = split_source(source, MountOptions.parse(options).several)
    except OptionError as error:
        print_error(str(error))
        return _EXIT_USAGE
    status = run(["mount", "-o", options, "--", *archives, directory])
    return {0: 0, EXIT_USAGE: _EXIT_USAGE}.get(status, _EXIT_FAILURE)
