"""What becomes of text if the encoder of its blocks is wrong (native/text/parts_builder.cpp)."""

from __future__ import annotations

import subprocess

import pytest
from native_builds import wrong_encoder_program


@pytest.mark.slow  # it compiles all of native/text
@pytest.mark.timeout(1200)
def test_text_is_encoded_in_another_way() -> None:
    """Parts that do not decode to their text get no head, and a block that does not decode is stored."""
    done = subprocess.run([wrong_encoder_program()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 heads, all parts wrong: 1, text: 1\n1 wrong, stored: 1\n"
