"""`gompfs pack --for`: what an archive is packed for sets its codec, level and sizes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gompfs.codec import Codec
from gompfs.errors import OptionError
from gompfs.options import PURPOSES, PackOptions


def packed(gompfs: Any, tree: Any, *options: str) -> dict[str, Any]:
    assert gompfs("pack", "-q", "-f", *options, tree, "new.gomp").status == 0
    facts: dict[str, Any] = json.loads(gompfs("info", "--json", "new.gomp").output)
    return facts


@pytest.mark.parametrize("purpose", PURPOSES)
def test_info_shows_what_an_archive_was_packed_for(gompfs: Any, tree: Any, purpose: str) -> None:
    facts = packed(gompfs, tree, "--for", purpose)
    options = PackOptions.for_purpose(purpose)
    assert facts["meta"]["for"] == purpose
    assert facts["block_size"] == options.block_size
    assert (options.codec is Codec.GOMPRESSO_BYTE) == ("gompresso-byte" in facts["codecs"])
    assert f"packed for {purpose}" in [" ".join(line.split()) for line in gompfs("info", "new.gomp").lines]
    assert gompfs("add", "-q", tree / "docs", "new.gomp").status == 0
    assert json.loads(gompfs("info", "--json", "new.gomp").output)["meta"]["for"] == purpose
    assert gompfs("verify", "-q", "new.gomp").status == 0


def test_other_options_win(gompfs: Any, tree: Any) -> None:
    facts = packed(gompfs, tree, "--for", "training", "-b", "64K")
    assert facts["block_size"] == 64 << 10
    assert "gompresso-byte" in facts["codecs"]
    facts = packed(gompfs, tree, "--for", "training", "--codec", "gompresso-bit")
    assert facts["block_size"] == 32 << 10
    assert "gompresso-byte" not in facts["codecs"]
    assert PackOptions.for_purpose("size", level=1).level == 1


def test_without_it_nothing_is_noted(gompfs: Any, tree: Any) -> None:
    assert "for" not in packed(gompfs, tree)["meta"]


def test_unknown_ones_are_refused(gompfs: Any, tree: Any) -> None:
    assert gompfs("pack", "--for", "beauty", tree, "new.gomp").status == 2
    with pytest.raises(OptionError, match="unknown purpose 'beauty'; use size or speed or training"):
        PackOptions.for_purpose("beauty")
