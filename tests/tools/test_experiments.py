"""The experiments of tools/bench: the parts that need no GPU, and a short run of all of them if there is one."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from oracle.payload import read_payload
from tool_modules import ROOT, tool_module
from tree_helpers import PACKAGE_PARENT, pack

from gompfs.archive import Archive
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions
from gompfs.engine import select_engine
from gompfs.gpu.device.kernel_sources import SHARED_BYTES
from gompfs.statistics.grammar_cache import load_grammars
from gompfs.statistics.postings import NGRAM_TASKS, postings_report
from gompfs.text.grammar import SPLITTER

BLOCK_SIZE = 1 << 15
EXPERIMENTS = tool_module("experiments").EXPERIMENTS
CODECS = (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE)
nested = tool_module("experiments.nested")
sweeps = tool_module("experiments.sweeps")
tadoc = tool_module("experiments.tadoc")
report = tool_module("bench.report")
plots = tool_module("bench.plots")
CORPUS = Path(ROOT, "examples", "corpus")


def run_bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.bench", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE_PARENT, os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)


def average_rounds(content: bytes, options: CodecOptions) -> float:
    """Returns the average rounds of multi-round resolution per row, by its model in Python."""
    (block,) = select_engine("cpu", 1).encode_blocks(content, len(content), options)
    payload = block.data[BLOCK_HEADER_SIZE:]
    rows = nested.count_rounds(read_payload(options.codec, payload, len(content)).sequences)
    return sum(map(len, rows)) / len(rows)


@pytest.mark.parametrize("depth", nested.DEPTHS)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_nested_data_needs_as_many_rounds_as_its_depth(codec: Codec, depth: int) -> None:
    content = nested.make_nested(depth, BLOCK_SIZE)
    assert len(content) == BLOCK_SIZE
    assert average_rounds(content, CodecOptions(codec, dependency_elimination=False)) == pytest.approx(depth, rel=0.05)
    # A match may copy literals of its own group, which are not below the high-water mark of multi-round resolution.
    assert average_rounds(content, CodecOptions(codec, dependency_elimination=True, group_size_log2=5)) < 1.25
    assert average_rounds(content, CodecOptions(codec, 6, True, 5, strict_sources=True)) <= 1


def test_nested_data_differs_from_block_to_block() -> None:
    content = nested.make_nested(4, 3 * BLOCK_SIZE)
    assert content == nested.make_nested(4, 3 * BLOCK_SIZE)
    assert len({content[start : start + BLOCK_SIZE] for start in range(0, len(content), BLOCK_SIZE)}) == 3


def test_rounds_of_a_row() -> None:
    assert nested.resolve_row([(3, 0, 0), (5, 0, 0)], 0) == []
    assert nested.resolve_row([(2, 6, 2)], 10) == [6]  # a run: its source ends where the match begins
    # The second match copies the output of the first, the third copies bytes before both.
    assert nested.resolve_row([(1, 4, 3), (0, 5, 4), (0, 7, 20)], 100) == [11, 5]
    # Literals after a waiting match are not final either, since the high-water mark is below them.
    assert nested.resolve_row([(0, 4, 8), (0, 4, 4), (8, 4, 6)], 100) == [4, 4, 4]


@pytest.mark.parametrize("name", ["carroll/alice29.txt", "nested"])
def test_simulated_sizes(name: str) -> None:
    """With the format's own limits, simulated payloads have the size of real ones."""
    content = nested.make_nested(4, BLOCK_SIZE) if name == "nested" else Path(CORPUS, name).read_bytes()
    options = CodecOptions(Codec.GOMPRESSO_BIT, 6, dependency_elimination=False)
    blocks = [content[start : start + BLOCK_SIZE] for start in range(0, len(content), BLOCK_SIZE)]
    encoded = select_engine("cpu", 1).encode_blocks(content, BLOCK_SIZE, options)
    simulated = sweeps.simulate_blocks(blocks)
    assert [block.size() + BLOCK_HEADER_SIZE for block in simulated] == [len(block.data) for block in encoded]


def test_simulated_limits() -> None:
    content = Path(CORPUS, "carroll", "alice29.txt").read_bytes()
    (block,) = sweeps.simulate_blocks([content[: 2 * BLOCK_SIZE]])
    assert block.size(8) > block.size(9) > block.size(10) > block.size(12) >= block.size(15)
    by_count = [block.size(num_sub_blocks=count) for count in sweeps.SUB_BLOCKS]
    assert by_count[0] == min(by_count)
    assert by_count[-3:] == sorted(by_count[-3:])
    by_run = [block.size_with_runs(run) for run in sweeps.RUNS]
    assert by_run == sorted(by_run, reverse=True)
    assert sweeps.shared_bytes_per_warp(10) == SHARED_BYTES["codec/decode_bit"][1]
    assert sweeps.resident_warps(sweeps.shared_bytes_per_warp(9)) > sweeps.resident_warps(6144) >= 28


def test_table_of_sweeps(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    done = run_bench("experiments", CORPUS, "--only", "sweeps", "--every", "4", "--json", result)
    assert done.returncode == 0, done.stderr
    limits, interleaved, consecutive = json.loads(result.read_text())["tables"]
    assert limits["rows"]["10 bits, the format's"]["shared memory per warp"] == SHARED_BYTES["codec/decode_bit"][1]
    assert interleaved["rows"]["32, the format's"]["ratio"] == limits["rows"]["10 bits, the format's"]["ratio"]
    assert consecutive["rows"]["16, the paper's"]["ratio"] < interleaved["rows"]["32, the format's"]["ratio"]


def test_sequential_tadoc(tmp_path: Path) -> None:
    """The bytes are those of gompfs, for files over several parts, and files that are left out."""
    rng = random.Random(3)
    (tmp_path / "tree").mkdir()
    for number in range(20):
        (tmp_path / f"tree/{number}").write_bytes(b" ".join(b"%d" % rng.randrange(9) for _ in range(number * 12)))
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC, part_size=400)
    with Archive(tmp_path / "a.gomp") as archive:
        (grammar,) = load_grammars(archive)
        paths = {ino: path for ino, path in archive.paths().items() if ino in grammar.inos() and ino % 7}
    for task, length in itertools.product(tadoc.TASKS, (1, 3, 5)):
        if task in NGRAM_TASKS or length == 1:
            expected = postings_report(task, [grammar], paths, ngram_length=length).read()
            assert tadoc.sequential_report(task, grammar, paths, length) == expected


def test_rules_of_sequitur() -> None:
    """They stand for the text, and no digram occurs twice. Two that overlap, in three equal symbols, count once."""
    rng = random.Random(4)
    symbols = np.array([rng.choice((0, 1, 2, 2, SPLITTER)) for _ in range(3000)], np.uint32)
    for by_sequitur in (False, True):
        starts, found = tadoc.build_rules(symbols, 3, by_sequitur=by_sequitur)
        bodies = [body.tolist() for body in np.split(found, starts[1:-1].astype(np.int64))]
        assert all(len(body) > 1 for body in bodies[1:])
        text = bodies[0]
        for _ in range(tadoc.depth_of((starts, found), 3)):
            text = [inner for item in text for inner in (bodies[item - 3] if 3 <= item < SPLITTER else [item])]
        assert text == symbols.tolist()
        seen: dict[tuple[int, int], tuple[int, int]] = {}
        if by_sequitur:
            for rule, body in enumerate(bodies):
                for at, digram in enumerate(itertools.pairwise(body)):
                    if SPLITTER not in digram:
                        assert seen.setdefault(digram, (rule, at)) in ((rule, at), (rule, at - 1)), digram


def test_tables_of_tadoc(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    done = run_bench("experiments", CORPUS, "--only", "tadoc", "--rounds", "1", "--json", result)
    assert done.returncode == 0, done.stderr
    builders, compared = json.loads(result.read_text())["tables"]
    assert set(builders["rows"]) == {"Re-Pair", "Sequitur"}
    assert all(row["depth"] > 2 for row in builders["rows"].values())
    assert all(row["sequential TADOC"] > 0 for row in compared["rows"].values())


def test_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table = report.Report("made up: GB/s, medians of 7", ["ratio", "SC", "pieces"])
    table.add("without DE", 2.5, 50, 300.0)
    table.add("groups of 4", "has blocks that do not shrink", None, None)
    table.plots = [
        report.Plot("bars of/this: table", "bars", ("SC", "pieces"), "payload", "output, GB/s"),
        report.Plot("line", "lines", ("ratio",), "payload", "ratio"),
        report.Plot("points", "points", ("ratio", "SC"), "ratio", "GB/s"),
    ]
    caption = plots.caption_of({"gpu": "a GPU", "cpu": "a CPU", "commit": "abc", "date": "today"})
    assert caption == "a GPU, a CPU, commit abc, today"
    files = plots.save_plots(table, tmp_path / "new" / "folder", caption)
    assert [file.name for file in files] == ["bars-of-this-table.png", "line.png", "points.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    result = tmp_path / "result.json"
    origin = {"gpu": "a GPU", "cpu": "a CPU", "commit": "abc", "date": "today"}
    result.write_text(json.dumps({"origin": origin, "tables": [table.as_json()]}))
    done = run_bench("plot", result, tmp_path / "later")
    assert done.returncode == 0, done.stderr
    for file in files:
        assert (tmp_path / "later" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed")
@pytest.mark.parametrize("command", ["experiments", "gpu"])
def test_without_a_gpu(command: str) -> None:
    done = run_bench(command, Path(__file__))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "needs CuPy" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.gpu
@pytest.mark.timeout(900)
def test_all_experiments(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    folder = [] if find_spec("matplotlib") is None else ["--plots", tmp_path / "plots"]
    size = ["--output-size", str(1 << 28)]
    done = run_bench("experiments", CORPUS, "--rounds", "1", "--seconds", "1", *size, "--json", result, *folder)
    assert done.returncode == 0, done.stderr
    written = json.loads(result.read_text())
    assert written["origin"]["gpu"] in done.stdout
    assert len(written["tables"]) == 3 + 2 + 3 + 2 + 2 + 1 + 1 + 2
    of_strategies = [
        table for table in written["tables"] if "-6, 0.27 GB in blocks of 65536: GB/s in device" in table["title"]
    ]
    nested = [table for table in written["tables"] if table["title"].startswith("nested data")]
    assert len(of_strategies) == len(nested) == 2
    for table in of_strategies:
        for payload, row in table["rows"].items():
            assert row["pieces"] > row["SC"] > 0
            assert 0 < row["rounds of MRR"] < 32  # rows without a match need none
            assert (row["DE"] is None) == (payload == "without DE")
    for table in nested:
        for depth, row in table["rows"].items():
            assert row["rounds of MRR"] == pytest.approx(int(depth), rel=0.05)
