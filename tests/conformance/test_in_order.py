"""Items that several threads work on, and that are taken in order (native/common/in_order.h)."""

from __future__ import annotations

import subprocess

from native_builds import in_order_program


def test_steps_that_fail_or_take_long() -> None:
    """Threads that were without work during a long step work again after it."""
    done = subprocess.run([in_order_program()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "4 threads\n"), done.stderr
