"""The counters in stats/metrics, and the functions that read them from outside."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
from mount_states import observe, observe_anew
from tree_helpers import pack

from gompfs._native.fuse import ServedArchive
from gompfs.archive import Archive
from gompfs.codec.decode_work import DecodeWork
from gompfs.engine import select_engine
from gompfs.mount.metric_set import MetricSet, samples_of
from gompfs.mount.metrics import metrics
from gompfs.mount.system.observe import observe_mounts
from gompfs.statistics.answering import Answering
from gompfs.statistics.tasks import compute

CONTENT = random.Random(3).randbytes(400_000)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/noise").write_bytes(CONTENT)
    pack(tmp_path / "a.gomp", tmp_path / "tree", block_size=16 << 10)
    return tmp_path / "a.gomp"


LABEL = r'\w+="(?:[^"\\]|\\["\\n])*"'
SAMPLE = re.compile(rf"(\w+)(?:{{{LABEL}(?:,{LABEL})*}})? [0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")


def test_odd_labels_and_values() -> None:
    found = MetricSet()
    labels = {"path": '\\"a\\n\nb,} 1', "empty": ""}
    found.describe("x", "gauge", "Something.")
    for value in (0, 3, 1 << 40, 2.5, 1e-06, 1.25e20):
        found.sample("x", labels, value)
    found.histogram("h", {}, [1e-06, 0.5], [3, 2, 1], 9.5)
    samples = samples_of(found.as_json())
    assert samples["x"] == [(labels, value) for value in (0, 3, 1 << 40, 2.5, 1e-06, 1.25e20)]
    assert samples["h_bucket"] == [({"le": "1e-06"}, 3), ({"le": "0.5"}, 5), ({"le": "+Inf"}, 6)]
    assert samples["h_sum"] == [({}, 9.5)]
    assert samples["h_count"] == [({}, 6)]
    lines = found.as_text().decode().split("\n")
    assert lines[:3] == ["# HELP x Something.", "# TYPE x gauge", 'x{path="\\\\\\"a\\\\n\\nb,} 1",empty=""} 0']
    assert lines[8:11] == ['h_bucket{le="1e-06"} 3', 'h_bucket{le="0.5"} 5', 'h_bucket{le="+Inf"} 6']
    assert lines[11:] == ["h_sum 9.5", "h_count 6", ""]
    assert all(SAMPLE.fullmatch(line) for line in lines[2:-1])


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "[]", "7", '{"x": 1}', '{"x": {}}', '{"x": [1]}', '{"x": [[1, 2]]}', '{"x": [[{}, "1"]]}',
        '{"x": [[{}, NaN]]}', '{"x": [[{}, Infinity]]}', '{"x": [[{}, 1e999]]}', '{"x": [[{}, -1]]}',
        '{"x": [[{}, true]]}', '{"x": [[{"a": 1}, 1]]}', '{"x": [[{}, 1, 2]]}', '{"x": [[{}, 1]]',
        '{"x": [[{}, ' + "9" * 400 + "]]}", "[" * 100_000, '{"x": [[{}, 1e200]]}', '{"x": [[{"le": "many"}, 1]]}',
        '{"x": [[{"le": "nan"}, 1]]}', '{"x": [[{"le": "inf"}, 1]]}', '{"x": [[{"le": "-1"}, 1]]}',
    ],
)  # fmt: skip
def test_invalid_json_is_refused(text: str) -> None:
    for content in (text.encode(), text.encode() + b"\xff"):
        with pytest.raises(ValueError):  # noqa: PT011
            samples_of(content)


def test_the_text_is_valid_for_prometheus(mount, archive: Path) -> None:
    """Each line is a comment or a sample, and the TYPE line of a metric precedes its samples."""
    kinds: dict[str, str] = {}
    for line in (mount(archive) / "stats/metrics").read_text().splitlines():
        if line.startswith("#"):
            _, word, name, rest = line.split(" ", 3)
            assert word in ("HELP", "TYPE")
            assert word == "HELP" or rest in ("counter", "gauge", "histogram")
            kinds[name] = rest
        else:
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            name = match[1]
            base = re.sub("_(bucket|sum|count)$", "", name)
            assert kinds.get(name) in ("counter", "gauge") or kinds[base] == "histogram"
            assert name.endswith("_total") == (kinds.get(name) == "counter")


def test_reads_and_blocks_are_counted(mount, archive: Path) -> None:
    mounted = mount(archive)
    first = observe(mounted.path)
    assert first.state == "serving"
    assert first.label("archive") == str(archive)
    assert first.label("engine") == "cpu"
    assert first.label("pid") == str(mounted.process.pid)
    assert first.value("gompfs_decoded_blocks_total") == 0
    assert first.value("gompfs_cache_capacity_bytes") == 64 << 20
    descriptor = os.open(mounted / "noise", os.O_RDONLY | os.O_DIRECT)
    for _ in range(2):  # O_DIRECT bypasses the page cache
        for offset in range(0, 400_000, 4096):
            assert os.pread(descriptor, 4096, offset) == CONTENT[offset : offset + 4096]
    os.close(descriptor)
    state = observe_anew(mounted.path)
    assert state.value("gompfs_decoded_blocks_total") == -(-400_000 // 16384)
    assert state.value("gompfs_decoded_bytes_total", engine="cpu") == 400_000
    assert 0 < state.value("gompfs_decode_seconds_total") < 60
    assert 800_000 <= state.value("gompfs_read_bytes_total") < 900_000  # plus the reads of the metrics themselves
    num_reads = state.value("gompfs_request_seconds_count", request="read")
    assert 196 <= num_reads < 210
    answered = state.value("gompfs_request_seconds_count", request="read", path="fast")
    assert 196 <= answered <= num_reads  # also the first read, whose layout C++ asks Python for
    assert state.value("gompfs_request_seconds_bucket", request="read", le="+Inf") == num_reads
    assert state.value("gompfs_cache_hits_total") >= 98
    assert 1 <= state.value("gompfs_cache_misses_total") <= 25
    assert 0 < state.value("gompfs_uptime_seconds") < 120
    assert state.value("process_resident_memory_bytes") > 1 << 20


def test_work_is_counted_by_engine(archive: Path) -> None:
    engine = select_engine("cpu")
    engine.decode_work["gpu"] = DecodeWork()
    with engine.decode_work["gpu"].batch(3, 100):
        time.sleep(0.01)
    with Archive(archive, engine=engine) as opened:
        opened.read(opened.resolve("noise").ino, 0, 400_000)
        answering, served = Answering(opened), ServedArchive(opened.blocks.reader)
        samples = samples_of(metrics(opened, served, answering).as_json())
        compute(b"sort", opened, answering=answering)
        of_statistics = samples_of(metrics(opened, served, answering).as_json())
    assert "gompfs_statistics_total" not in samples
    assert of_statistics["gompfs_statistics_total"] == [({"statistic": "sort", "engine": "cpu"}, 1)]
    ((labels, seconds),) = of_statistics["gompfs_statistics_seconds_total"]
    assert labels == {"statistic": "sort", "engine": "cpu"}
    assert seconds > 0
    assert samples["gompfs_decoded_blocks_total"] == [({"engine": "cpu"}, 25), ({"engine": "gpu"}, 3)]
    assert samples["gompfs_decoded_bytes_total"] == [({"engine": "cpu"}, 400_000), ({"engine": "gpu"}, 100)]
    (on_cpu, cpu_seconds), (on_gpu, gpu_seconds) = samples["gompfs_decode_seconds_total"]
    assert (on_cpu, on_gpu) == ({"engine": "cpu"}, {"engine": "gpu"})
    assert cpu_seconds > 0
    assert gpu_seconds >= 0.01


def test_mounts_without_metrics(mount, archive: Path) -> None:
    """Mounts without statistics, with a dead daemon and with a stopped one are told apart."""
    hidden, dead, stopped = mount(archive, "stats=off"), mount(archive), mount(archive)
    assert observe(hidden.path).state == "stats=off"
    dead.process.kill()
    dead.process.wait()
    assert observe(dead.path).state == "dead"
    stopped.process.send_signal(signal.SIGSTOP)
    states = {state.mount.mountpoint: state.state for state in observe_mounts()}
    stopped.process.send_signal(signal.SIGCONT)
    assert states[os.path.realpath(stopped.path)] == "no answer"
    assert states[os.path.realpath(dead.path)] == "dead"
    assert observe_mounts([str(archive.parent)]) == []
