"""Grammars built by the GPU engine have the same bytes as those of the CPU, for any text and any amount of memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from grammars import make_text
from part_batches import batches, section_of_core, sections_of_batch

from gompfs.engine import Engine, select_engine
from gompfs.grammar import GrammarBuilder, RuleBuilder
from gompfs.options import GpuOptions, PackOptions
from gompfs.pack import open_source, pack_archive

pytestmark = pytest.mark.gpu
MIB = 1 << 20


@pytest.fixture(scope="module")
def gpu() -> Engine:
    return select_engine("gpu")


def rule_builder(engine: Engine) -> RuleBuilder:
    assert engine.accelerator is not None
    assert engine.accelerator.build_rules is not None
    return engine.accelerator.build_rules


def section(text: bytes, build_rules: RuleBuilder | None) -> bytes:
    builder = GrammarBuilder(build_rules=build_rules)
    builder.add_files([(1, text[: len(text) // 2]), (2, b"")])
    builder.begin_file(3)
    for start in range(len(text) // 2, len(text), MIB):
        builder.add_bytes(text[start : start + MIB])
    builder.end_file()
    return b"".join(builder.finish())


def test_batches(gpu: Engine) -> None:
    build_rules = rule_builder(gpu)
    for batch in batches():
        assert sections_of_batch(batch, build_rules) == [section_of_core(texts) for texts in batch]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["text", "one word", "short words"])
def test_many_parts(gpu: Engine, kind: str) -> None:
    """Parts of 8 MiB each, in more than one batch."""
    if kind == "text":
        pieces = [make_text(seed, MIB, 3000) for seed in range(8)]
        text = b"".join(pieces[(index * index) % 8][index * 1000 :] for index in range(160))
    elif kind == "one word":
        text = b"a " * (70 * MIB)
    else:
        text = make_text(5, 2 * MIB, 20, 0.0) * 10
    assert section(text, rule_builder(gpu)) == section(text, None)


@pytest.mark.usefixtures("empty_device_memory")
@pytest.mark.timeout(400)
def test_too_little_memory_makes_smaller_batches() -> None:
    text = make_text(3, 4 * MIB, 3000) * 10
    small = select_engine("gpu", gpu=GpuOptions(memory=160 << 20))
    assert section(text, rule_builder(small)) == section(text, None)


def test_packing_gives_the_same_archive(gpu: Engine, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(300):
        (tmp_path / f"tree/{number}").write_bytes(make_text(number % 7, 1000 * number))
    archives = []
    for engine in (gpu, select_engine("cpu")):
        target = tmp_path / f"{engine.name}.gomp"
        pack_archive([open_source(tmp_path / "tree")], target, PackOptions(), engine=engine)
        archives.append(target.read_bytes())
    assert archives[0] == archives[1]
