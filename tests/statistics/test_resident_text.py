"""Words that stay on a device give the same bytes as the CPU. The kernels run on the host here."""

from __future__ import annotations

import itertools
import random
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from device_cases import Case, cases, texts
from host_device import HostDevice
from native_builds import run_cases_sanitized
from plain_grammars import plain_grammar_of
from resident_cases import (
    ROOM,
    ask_cpu,
    ask_device,
    check_resident,
    many_files,
    questions_of_many_files,
    report_of_device,
)
from text_device_on_host import EngineWithDevice
from tree_helpers import add, pack

from gompfs._native.statistics import PostingsTask
from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import StatsUnavailableError
from gompfs.mount.tree.snapshots import Snapshots
from gompfs.options import MountOptions
from gompfs.statistics import answering as answering_module
from gompfs.statistics.answering import CPU, GPU, RESIDENT, Answering
from gompfs.statistics.gpu.resident_forest import MAX_PHRASE, ResidentForest
from gompfs.statistics.gpu.resident_text import ResidentText
from gompfs.statistics.paths import files_in_order
from gompfs.statistics.query import EVERYTHING, MAX_NGRAM_LENGTH, StatsQuery
from gompfs.statistics.report import in_whole_lines
from gompfs.statistics.resident_answers import ANSWERS
from gompfs.statistics.tasks import NAMES, NAMES_OF_FILE, TASKS, compute
from gompfs.statistics.traversal import PhaseTimes

MIB = 1 << 20


@pytest.mark.timeout(300)
def test_same_bytes_as_the_cpu(device: HostDevice) -> None:
    for case in cases():
        check_resident(device, case).release()
        assert device.reserved == 0
    assert {"count_phrase", "find_ends_of_levels", "add_equal_pairs"} <= device.launched


@pytest.mark.timeout(1200)
def test_no_access_out_of_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the same cases under AddressSanitizer and UndefinedBehaviorSanitizer."""
    names = [name for name, _, _ in cases()]
    assert run_cases_sanitized("resident_cases").splitlines() == names


def test_what_does_not_fit_does_not_stay(library: Path) -> None:
    """With less room, fewer things stay, and the answers are the same. Below what the words need, it is refused."""
    whole = check_resident(HostDevice(library), texts(1))
    assert whole.num_bytes < ROOM
    least = whole.shares[0].forest.bytes_of_words
    for room in (least, (least + whole.num_bytes) // 2):
        text = check_resident(HostDevice(library), texts(1), room, repeats=1)
        assert text.num_bytes <= room
    device = HostDevice(library)
    with pytest.raises(StatsUnavailableError, match=r"its words need 0 MiB of GPU memory, and 0 MiB may be used"):
        check_resident(device, texts(1), least - 1)
    assert device.reserved == 0


def test_ranges_that_fit_little_memory(library: Path) -> None:
    device = HostDevice(library, memory=200_000)
    check_resident(device, texts(1), repeats=1)


def test_n_grams_over_the_ends_of_parts(device: HostDevice) -> None:
    """A file over several parts is one node, so its n-grams across the ends of parts are there."""
    word = [b"%d" % number * (5 * MIB) for number in range(3)]
    files = [(1, b"begin of it"), (2, b" ".join([*word, *word, b"end of it"])), (3, b"end of it")]
    grammar = plain_grammar_of(files)
    assert len(list(grammar.parts())) >= 3
    case = "parts", [grammar], {1: b"a", 2: b"b", 3: b"c"}
    three = StatsQuery(ngram_length=3)
    questions = [(PostingsTask.RANKED_INVERTED_INDEX, three), (PostingsTask.SEQUENCE_COUNT, three)]
    questions += [("phrase", StatsQuery(words=(word[0], word[1], word[2]))), (PostingsTask.TFIDF, EVERYTHING)]
    expected = [ask_cpu(case, question) for question in questions]
    assert all(expected)
    text = check_resident(device, case, repeats=1)
    assert [ask_device(text, question) for question in questions] == expected


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [1, 2])
def test_long_answers(library: Path, count: int) -> None:
    """Thousands of files have a word equally often, and the answers about a large file come in several pieces."""
    case = many_files()
    questions = questions_of_many_files()
    expected = [ask_cpu(case, question) for question in questions]
    _, grammars, paths = case
    archive = cast("Archive", SimpleNamespace(path_of=paths.get))
    devices = [HostDevice(library) for _ in range(count)]
    text = ResidentText(archive, devices, grammars, files_in_order(paths), ROOM, PhaseTimes())
    for question, lines in zip(questions, expected, strict=True):
        assert ask_device(text, question) == lines, question
    in_pieces = [list(report_of_device(text, question)) for question in questions]
    assert sum(len(pieces) > 1 for pieces in in_pieces) > 9
    assert any(not piece.endswith(b"\n") for pieces in in_pieces for piece in pieces)
    for lines, pieces in zip(expected, in_pieces, strict=True):
        whole = list(in_whole_lines(pieces))
        assert b"".join(whole) == lines
        assert all(piece.endswith(b"\n") for piece in whole)
    reports = [report_of_device(text, question) for question in questions]
    begun = [iter(report) for report in reports]
    firsts = [next(reader, b"") for reader in begun]
    text.release()
    assert [b"".join([first, *reader]) for first, reader in zip(firsts, begun, strict=True)] == expected
    assert [device.reserved for device in devices] == [0] * count


def parts_of(case: Case, library: Path, count: int) -> list[set[int]]:
    """Checks the answers of several devices. Returns the numbers of the files that each of them has."""
    devices = [HostDevice(library) for _ in range(count)]
    text = check_resident(devices[0], case, others=devices[1:], repeats=1)
    files = [share.forest.words.files.tolist() for share in text.shares]
    assert [device.reserved for device in devices] == [ROOM] * count
    text.release()
    assert [device.reserved for device in devices] == [0] * count
    assert len({*itertools.chain(*files)}) == sum(map(len, files)), "a file is on two devices"
    return [set(numbers) for numbers in files]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [2, 3])
def test_several_devices(library: Path, count: int) -> None:
    """The files are divided among them, by parts; a device may have none."""
    for case, again in zip(cases(), cases(), strict=True):
        (whole,) = parts_of(case, library, 1)
        divided = parts_of(again, library, count)
        assert set().union(*divided) == whole
        assert len(whole) < 40 or sum(map(bool, divided)) > 1


def test_files_over_the_ends_of_parts_are_on_one_device(library: Path) -> None:
    word = [b"%d" % number * (5 * MIB) for number in range(4)]
    files = [(1, b"a b a"), (2, b" ".join([*word, b"b"])), (3, b" ".join(word[2:])), (4, b" ".join([*word[:3], b"a"]))]
    grammar = plain_grammar_of(files)
    assert len(list(grammar.parts())) >= 5
    divided = parts_of(("parts", [grammar], {ino: b"%d" % ino for ino, _ in files}), library, 7)
    assert sorted(set().union(*divided)) == [0, 1, 2, 3]
    assert sum(map(bool, divided)) > 1


def test_every_task_that_stays_has_an_answer() -> None:
    assert {task.name for task in TASKS.values() if task.stays} == set(ANSWERS)
    assert MAX_PHRASE == MAX_NGRAM_LENGTH


@pytest.fixture(scope="module", params=[1, 2])
def archive_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with text in parts, of one or two generations."""
    rng = random.Random(7)
    words = [b"head", b"a_part", b"x", b"(y, z)", b";"]
    lines = [b" ".join(rng.choices(words, k=rng.randint(1, 9))) for _ in range(80)]
    folder = tmp_path_factory.mktemp("parts")
    tree = folder / "tree"
    tree.mkdir()
    for number in range(30):
        (tree / f"{number}").write_bytes(b"\n".join(rng.choices(lines, k=number)))
    (tree / "long").write_bytes(b"\n".join(rng.choices(lines, k=1500)))
    (tree / "same").write_bytes((tree / "29").read_bytes())
    (tree / "noise").write_bytes(rng.randbytes(2000))
    (tree / "29, again").hardlink_to(tree / "29")
    path = folder / "a.gomp"
    options = {"codec": Codec.GOMPRESSO_TADOC, "part_size": 5000}
    pack(path, tree, **options)
    if request.param == 2:
        (folder / "long").write_bytes(b"\n".join(rng.choices(lines, k=50)))
        add(path, folder / "long", **options)
    return path


def _names(archive: Archive) -> list[bytes]:
    """Returns statistics of all files, of each file, and searches."""
    words = [line.split(b"\t")[0] for line in compute(b"wordcount", archive).read().splitlines()]
    names = [name.encode() for name in NAMES if name not in ("info", "sha256sums")]
    names += [b"word/" + word for word in (*words[:3], words[-1], b"nowhere")]
    names += [b"phrase/" + b" ".join(words[first : first + length]) for first in range(3) for length in (1, 2, 3, 5, 6)]
    binary = set(archive.index.binary_files())
    paths = [path for ino, path in sorted(archive.paths().items()) if ino in archive.inode_numbers() - binary]
    files = [path for path in paths if stat.S_ISREG(archive.resolve(path).mode)][:12]
    return names + [b"files/%s/%s" % (path, name.encode()) for path in files for name in NAMES_OF_FILE]


def test_the_statistics_of_an_archive(device: HostDevice, archive_path: Path) -> None:
    with Archive(archive_path, engine=CpuEngine()) as archive:
        of_the_cpu = {name: compute(name, archive).read() for name in _names(archive)}
    with Archive(archive_path, engine=EngineWithDevice(device, room=ROOM)) as archive:
        answering = Answering(archive)
        for name, expected in of_the_cpu.items():
            assert compute(name, archive, answering=answering).read() == expected, name
        engines = dict(answering.all_times().keys())
        assert engines.pop("phrase") in (CPU, RESIDENT)  # those of six words
        assert set(engines.values()) == {RESIDENT}
        assert "stay on the host" in answering.reason
        info = compute(b"info", archive, answering=answering).read().decode()
        assert f"statistics_from\t{answering.reason}\n" in info
        assert "word: gpu-resident " in info
        answering.drop("the test is over")
    assert device.reserved == 0


def test_tfidf_of_a_file(device: HostDevice, archive_path: Path) -> None:
    with Archive(archive_path, engine=CpuEngine()) as archive:
        paths = {ino: path for ino, path in archive.paths().items() if stat.S_ISREG(archive.resolve(path).mode)}
        queries = [StatsQuery(ino, top=top, path=path) for ino, path in list(paths.items())[:9] for top in (0, 3)]
        links = [(path, inode.ino) for path, inode in archive.walk() if stat.S_ISREG(inode.mode) and inode.nlink > 1]
        queries += [StatsQuery(ino, path=path) for path, ino in links]
        queries = [query for query in queries if query.ino not in archive.index.binary_files()]
        expected = [compute(b"tfidf", archive, query).read() for query in queries]
        found = zip(queries, expected, strict=True)
        assert all(not line or line.startswith((query.path or b"") + b"\t") for query, line in found)
    with Archive(archive_path, engine=EngineWithDevice(device, room=ROOM)) as archive:
        answering = Answering(archive)
        assert [compute(b"tfidf", archive, query, answering=answering).read() for query in queries] == expected
        assert {engine for _, engine in answering.all_times()} == {RESIDENT}


def test_a_binary_file_has_no_statistics(device: HostDevice, archive_path: Path) -> None:
    with Archive(archive_path, engine=EngineWithDevice(device, room=ROOM)) as archive:
        answering = Answering(archive)
        compute(b"sort", archive, answering=answering)
        for ino in archive.index.binary_files():
            with pytest.raises(StatsUnavailableError, match="a binary file has no statistics"):
                compute(b"wordcount", archive, StatsQuery(ino), answering=answering)


def test_the_statistics_of_an_archive_on_two_devices(library: Path, archive_path: Path) -> None:
    devices = [HostDevice(library) for _ in range(2)]
    with Archive(archive_path, engine=CpuEngine()) as archive:
        of_the_cpu = {name: compute(name, archive).read() for name in _names(archive)[::3]}
    with Archive(archive_path, engine=EngineWithDevice(*devices, room=ROOM)) as archive:
        answering = Answering(archive)
        for name, expected in of_the_cpu.items():
            assert compute(name, archive, answering=answering).read() == expected, name
        assert {engine for kind, engine in answering.all_times() if kind != "phrase"} == {RESIDENT}
        assert "stay on the host, the host" in answering.reason
        answering.drop("the test is over")
    assert [device.reserved for device in devices] == [0, 0]


class _SmallDevice(HostDevice):
    """Has no memory for phrases."""

    def launch(self, source: str, kernel: str, num_items: int, *arguments: object, **options: object) -> None:
        if kernel == "count_phrase":
            raise MemoryError
        super().launch(source, kernel, num_items, *arguments, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("num_others", [0, 1])
def test_too_little_memory(library: Path, archive_path: Path, num_others: int) -> None:
    """The words are dropped, and the CPU answers; also if another device has enough memory."""
    device = _SmallDevice(library)
    others = [HostDevice(library)] * num_others
    with Archive(archive_path, engine=CpuEngine()) as archive:
        word = compute(b"sort", archive).read().split(b"\t")[0]
        expected = compute(b"word/" + word, archive).read()
    engine = EngineWithDevice(*others, device, room=ROOM)
    with Archive(archive_path, engine=engine) as archive:
        answering = Answering(archive)
        assert compute(b"word/" + word, archive, answering=answering).read() == expected
        assert set(answering.all_times()) == {("word", CPU)}
        assert "the host had too little memory for word" in answering.reason
        assert [each.reserved for each in (device, *others)] == [0] * (1 + num_others)
        compute(b"sort", archive, answering=answering)
        assert set(answering.all_times()) == {("word", CPU), ("sort", GPU)}


def test_too_little_memory_for_one_file(
    device: HostDevice, archive_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU answers, and the words stay for other questions."""
    with Archive(archive_path, engine=EngineWithDevice(device, room=ROOM)) as archive:
        path = compute(b"term_vector", archive).read().split(b"\t")[0]
        names = [b"files/%s/%s" % (path, task.encode()) for task in NAMES_OF_FILE if task != "words"]
        expected = [compute(each, archive).read() for each in names]
        answering = Answering(archive)
        compute(b"word/a", archive, answering=answering)

        def fails(*_: object) -> None:
            raise MemoryError

        with monkeypatch.context() as patched:
            patched.setattr(ResidentForest, "words_in", fails)
            patched.setattr(ResidentForest, "ngrams_in", fails)
            assert [compute(each, archive, answering=answering).read() for each in names] == expected
        assert {engine for kind, engine in answering.all_times() if kind.startswith("files/")} == {GPU}
        assert [compute(each, archive, answering=answering).read() for each in names] == expected
        assert {engine for kind, engine in answering.all_times() if kind.startswith("files/")} == {GPU, RESIDENT}
        assert device.reserved == ROOM


def test_memory_that_is_needed_for_reading(device: HostDevice, archive_path: Path) -> None:
    engine = EngineWithDevice(device, room=ROOM)
    with Archive(archive_path, engine=engine) as archive:
        answering = Answering(archive)
        compute(b"sort", archive, answering=answering)
        assert device.reserved == ROOM
        for give_back in engine.accelerator.resident_memory().watchers:  # type: ignore[union-attr]
            give_back()
        assert device.reserved == 0
        assert "needed for reading" in answering.reason


def test_an_archive_that_does_not_fit(device: HostDevice, archive_path: Path) -> None:
    with Archive(archive_path, engine=EngineWithDevice(device, room=100)) as archive:
        answering = Answering(archive)
        compute(b"sort", archive, answering=answering)
        assert set(answering.all_times()) == {("sort", GPU)}
        assert "its words need 0 MiB of GPU memory, and 0 MiB may be used for them" in answering.reason


def test_auto_measures(device: HostDevice, archive_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU answers first; after some time the words are put on the device; then each kind goes to the faster."""
    engine = EngineWithDevice(device, room=ROOM, is_asked_for=False)
    with Archive(archive_path, engine=engine) as archive:
        answering = Answering(archive)

        def engine_of(name: bytes) -> str:
            before = {key: times.count for key, times in answering.all_times().items()}
            compute(name, archive, answering=answering)
            (key,) = [key for key, times in answering.all_times().items() if times.count != before.get(key)]
            return key[1]

        assert engine_of(b"word/a") == CPU
        assert device.reserved == 0
        monkeypatch.setattr(answering_module, "_SECONDS_BEFORE_LOADING", 0)
        assert engine_of(b"word/a") == RESIDENT
        assert device.reserved == ROOM
        for (kind, which), times in answering._times.items():
            times.seconds = times.count * (1.0 if (kind, which) == ("word", CPU) else 2.0)
        assert engine_of(b"word/a") == CPU  # whose mean is now less than a second
        answering._times["word", CPU].seconds = 1e9
        assert engine_of(b"word/a") == RESIDENT
        assert engine_of(b"phrase/a b") == RESIDENT  # not measured yet
        answering._times["phrase", RESIDENT].seconds = 1.0
        assert engine_of(b"phrase/a b") == CPU  # slow, and the CPU was not measured


def test_a_new_generation_frees_the_memory(device: HostDevice, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "one").write_bytes(b"one word and another one\n" * 9)
    path = tmp_path / "a.gomp"
    pack(path, tree, codec=Codec.GOMPRESSO_TADOC)

    def open_archive(path: str) -> Archive:
        return Archive(path, engine=EngineWithDevice(device, room=ROOM))

    with Snapshots(str(path), open_archive, MountOptions(follow=True)) as snapshots:
        old = snapshots.current.virtual_content
        assert old.compute(b"word/one").read() == b"one\t18\n"
        assert device.reserved == ROOM
        assert b'gompfs_statistics_total{statistic="word",engine="gpu-resident"} 1' in old.compute(b"metrics").read()
        (tree / "one").write_bytes(b"two words\n")
        pack(path, tree, codec=Codec.GOMPRESSO_TADOC, force=True)
        snapshots._look()
        assert device.reserved == 0
        assert "a newer generation" in old.answering.reason
        assert old.compute(b"word/one").read() == b"one\t18\n"
        assert snapshots.current.virtual_content.compute(b"word/two").read() == b"one\t1\n"
        assert device.reserved == ROOM
    assert device.reserved == 0
