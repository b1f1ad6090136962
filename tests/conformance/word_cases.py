"""Texts and archives whose words a device finds, compared with plain Python and with the CPU.

As a program, with a sanitized library of the kernels for the host, runs all cases on the host in a process of its own.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from text_device_on_host import HostTextDevice

from gompfs._native.statistics import PostingsTask
from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.gpu import words as gpu_words
from gompfs.gpu.arrays import ArrayDevice, TextDevice
from gompfs.gpu.words import WordTable, padded_size
from gompfs.grammar import CountedWords
from gompfs.grammar.reference import split_words
from gompfs.model import WORD_RULES
from gompfs.options import PackOptions
from gompfs.pack import open_source, pack_archive
from gompfs.statistics import device_content
from gompfs.statistics.content import ContentText
from gompfs.statistics.content_words import content_grammars
from gompfs.statistics.device_content import DeviceText
from gompfs.statistics.postings import postings_report
from gompfs.statistics.word_counts import SortOrder, word_count_report

BLOCK_SIZE = 16 << 10
BATCH_BYTES = (8192, 30_000, 4 << 20)
_STRETCHES = [
    *(b"x" * 200, b"x" * 200 + b"a", b" ", b"\n", "é".encode(), b"\xe2\x80\x99", b"\0", b"a\0", b"a", "日本".encode()),
    *(b"\xe6", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xf4\x90\x80\x80", b"\r\n\t\v\f ", b"y", b"\x08", b"\x0e"),
    *(b"_", b"-", b"it's", b"@AZ[", b"`az{", b"/09:", b"\x7f\x80"),
]


def make_text(kind: int, rng: random.Random, size: int) -> bytes:
    """Returns text of numbers, random bytes, pieces with complete and incomplete UTF-8 characters, or no text."""
    if kind == 0:
        return b" ".join(b"%d" % min(int(rng.paretovariate(0.5)), 5000) for _ in range(size // 3))
    if kind == 1:
        return rng.randbytes(size)
    if kind == 2:
        return b"".join(rng.choices(_STRETCHES, k=size // 20))
    return b""


@contextmanager
def constant(module: ModuleType, name: str, value: int) -> Iterator[None]:
    """Changes a constant of a module during the `with` body."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def check_table(device: ArrayDevice, word_rule: str, hash_bits: int, seed: int, size: int = 1500) -> None:
    """Checks a word table.

    The result must not depend on whether words of more than 199 bytes are handled by the host or by the device.
    """
    for long_word in (199, 1 << 16):
        with constant(gpu_words, "_LONG_WORD", long_word):
            _check_table(device, word_rule, hash_bits, seed, size)


def _check_table(device: ArrayDevice, word_rule: str, hash_bits: int, seed: int, size: int) -> None:
    """Adds texts one after another to a table that begins with few slots. Some texts continue in the next one."""
    rng = random.Random(seed)
    table = WordTable(device, word_rule, num_slots=16, hash_bits=hash_bits)
    expected: Counter[bytes] = Counter()
    found = []
    rest = b""
    for number in range(5):
        text = rest + make_text(rng.randrange(4), rng, size)
        goes_on = number < 4 and rng.random() < 0.6
        padded = np.frombuffer(text.ljust(padded_size(len(text)), b"\n"), np.uint8)
        tokens, again = table.add(device.upload(padded), len(text), goes_on=goes_on)
        rest = text[len(text) - again :]
        words = split_words(text[: len(text) - again], word_rule)
        starts, ends = (device.download(array).tolist() for array in (tokens.starts, tokens.ends))
        assert [text[start:end] for start, end in zip(starts, ends, strict=True)] == words
        assert goes_on or not again
        expected.update(words)
        found.append((tokens.entries, words))
    dictionary = table.dictionary()
    bounds, content = device.download(dictionary.starts).tolist(), device.download(dictionary.bytes).tobytes()
    ordered = [content[start:end] for start, end in itertools.pairwise(bounds)]
    assert ordered == sorted(expected)
    assert device.download(dictionary.counts).tolist() == [expected[word] for word in ordered]
    ranks = device.download(dictionary.ranks)
    for entries, words in found:
        assert [ordered[rank] for rank in ranks[device.download(entries)]] == words


def odd_files() -> dict[str, bytes]:
    """Returns files with many kinds of beginnings, ends and sizes."""
    rng = random.Random(31)
    long = b"w" * 100_000
    contents = {
        "empty": b"", "one": b"word", "blank": b" \n\t\v\f\r" * 3000, "no newline": b"the last word is cut: wor",
        "goes on": b"d is none of the file before", "long": b"begin " + long + b"1 " + long + b"2",
        "long too": long + b"1", "binary": b"\0text " * 9000, "late nul": b"word ".ljust(8192, b".") + b"\0 after",
        "last nul": b"word ".ljust(8191, b".") + b"\0 after", "noise": rng.randbytes(70_000).replace(b"\0", b"0"),
        "text": make_text(0, rng, 150_000), "block": b"a" * (BLOCK_SIZE - 1) + b" " + b"b" * BLOCK_SIZE,
    }  # fmt: skip
    contents |= {f"tiny-{number}": make_text(number % 4, rng, number * 3) for number in range(90)}
    contents |= {"same": contents["text"], "characters": make_text(2, rng, 40_000)}
    return contents


def pack_files(folder: Path, contents: dict[str, bytes], **options: object) -> Path:
    """Packs an archive without a grammar, in small blocks."""
    root = folder / "tree"
    root.mkdir()
    for name, content in contents.items():
        (root / name).write_bytes(content)
    with open(root / "sparse", "wb") as file:
        file.truncate(300_000)
        file.seek(0, 2)
        file.write(b"behind a hole")
    pack_options = PackOptions(stats=False, block_size=BLOCK_SIZE, **options)  # type: ignore[arg-type]
    pack_archive([open_source(root)], folder / "a.gomp", pack_options, engine=select_engine("cpu"))
    return folder / "a.gomp"


def compare(device: TextDevice, archive: Archive, batch_bytes: int) -> None:
    """Compares all tasks on the words found by the device with those found by the CPU."""
    paths = archive.paths()
    of_host, of_device, of_counts = (ContentText(archive, archive.inode_numbers()) for _ in range(3))
    grammars = list(content_grammars(of_host))
    with constant(device_content, "_BATCH_BYTES", batch_bytes):
        on_device = [DeviceText(archive, of_device, device).grammar()]
        counted = [CountedWords(*DeviceText(archive, of_counts, device).word_counts())]
    assert sorted(of_host.binary_files) == sorted(of_device.binary_files) == sorted(of_counts.binary_files)
    for order in SortOrder:
        expected = word_count_report([CountedWords(grammar, grammar.word_counts()) for grammar in grammars], order)
        of_grammar = [CountedWords(grammar, grammar.word_counts()) for grammar in on_device]
        assert word_count_report(of_grammar, order).read() == expected.read()
        assert word_count_report(counted, order).read() == expected.read()
    inos = set().union(*(grammar.inos() for grammar in grammars))
    assert on_device[0].inos() == inos
    files = {ino: paths[ino] for ino in inos}
    for task in PostingsTask:
        assert postings_report(task, on_device, files).read() == postings_report(task, grammars, files).read()


def main(library: Path) -> None:
    """Runs all cases once."""
    device = HostTextDevice(library)
    for word_rule in WORD_RULES:
        for hash_bits in (64, 2):
            check_table(device, word_rule, hash_bits, seed=hash_bits, size=600)
        with tempfile.TemporaryDirectory() as folder:
            path = pack_files(Path(folder), odd_files(), words=word_rule)
            with Archive(path, engine=select_engine("cpu")) as archive:
                for batch_bytes in BATCH_BYTES[1:] if word_rule == "whitespace" else BATCH_BYTES[1:2]:
                    compare(device, archive, batch_bytes)
    sys.stdout.write("the device finds the words\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
