r"""A campaign: makes mutants by number, runs all commands on each, and keeps those with findings.

    python -m tests.fuzz.run --count 20000 --jobs 2 --seed 1 --keep DIRECTORY

Each mutant is written to a scratch directory (in /dev/shm by default) and examined in a forked child whose time and
memory are watched. See examine.py for the commands and the definition of a finding. In addition, every `--processes`-th
mutant is run through separate processes, and every `--mounts`-th through a real mount, which needs root or fusermount3.

The result is a table of structures and findings. Mutants with findings are saved in DIRECTORY, each with a text that
says what was changed, what went wrong, and how to make the mutant again. The exit status is 1 if there are findings.

With sanitizers (this takes hours; the limits of memory and time do not hold):

    cmake -S . -B build/sanitized -G Ninja -DGOMPFS_SANITIZE=ON -DCMAKE_BUILD_TYPE=Release \
        -DPython_EXECUTABLE=$PWD/.venv/bin/python && ninja -C build/sanitized
    python -m tests.fuzz.run --sanitized build/sanitized --count 100000 --seed 7 --keep DIRECTORY
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    import tests.rooms  # noqa: F401

from examine import Examination, remove
from mutate import STRUCTURES, make_mutant
from oracle.archive import generation_ends, read_archive
from processes import run_as_processes, run_real_mount
from seeds import SEEDS, read_seed
from watch import Watch

_TESTS = Path(__file__).parents[1]
# Address space in addition to the memory limit: mapped but untouched pages, and 128 MiB of stack and heap per thread.
# The pool of workers and the grammar builder each start one thread per processor.
_ADDRESSES = (3 << 30) + 2 * (os.cpu_count() or 1) * (128 << 20)


@dataclass
class Options:
    """The options of a campaign; times in seconds, sizes in bytes."""

    count: int = 1000
    first: int = 0
    seed: int = 1
    jobs: int = 1
    keep: str | None = None
    scratch: str = "/dev/shm"
    seconds: float = 20.0
    memory: int = 1 << 30
    processes: int = 50
    mounts: int = 50
    structure: str | None = None
    sanitized: str | None = None
    numbers: list[int] = field(default_factory=list)


@dataclass
class Result:
    """The summed results of mutants."""

    mutants: Counter[str] = field(default_factory=Counter)
    sound: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    num_commands: int = 0
    longest: float = 0.0
    most_memory: int = 0
    told: list[str] = field(default_factory=list)

    def add(self, other: Result) -> None:
        """Adds the results of another job."""
        for name in ("mutants", "sound", "findings"):
            getattr(self, name).update(getattr(other, name))
        self.num_commands += other.num_commands
        self.longest = max(self.longest, other.longest)
        self.most_memory = max(self.most_memory, other.most_memory)
        self.told += other.told


def run_campaign(options: Options) -> Result:
    """Runs all jobs, each in a forked process, and sums their results."""
    numbers = options.numbers or range(options.first, options.first + options.count)
    _prepare()
    children = []
    for job in range(options.jobs):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _run_job_and_exit(options, list(numbers)[job :: options.jobs], writer)
        os.close(writer)
        children.append((pid, reader))
    result = Result()
    for pid, reader in children:
        with os.fdopen(reader) as file:
            text = file.read()
        os.waitpid(pid, 0)
        if not text:
            raise RuntimeError(f"a job of the campaign ended early; see {options.keep or 'its output'}")
        found = json.loads(text)
        for name in ("mutants", "sound", "findings"):
            found[name] = Counter(found[name])
        result.add(Result(**found))
    return result


def _run_job_and_exit(options: Options, numbers: list[int], writer: int) -> None:
    status = 1
    try:
        with tempfile.TemporaryDirectory(prefix="gompfs-fuzz-", dir=_scratch_of(options)) as scratch:
            result = _Job(options, Path(scratch)).run(numbers)
        with os.fdopen(writer, "w") as file:
            json.dump(vars(result), file)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _scratch_of(options: Options) -> str | None:
    return options.scratch if os.path.isdir(options.scratch) else None


@functools.cache
def _prepare() -> None:
    """Makes the seeds, reads them once, and imports everything that commands use, so that children inherit it."""
    for seed in SEEDS:
        _original_contents(seed)
        read_archive(read_seed(seed)).counts(1)


@functools.cache
def _original_contents(seed: str) -> dict[bytes, set[bytes]]:
    """Returns by path what each file of a seed contains, or contained in an earlier generation."""
    contents: dict[bytes, set[bytes]] = {}
    archive = read_seed(seed)
    for end in generation_ends(archive):
        reading = read_archive(archive[:end])
        for path, entry in reading.paths.items():
            if stat.S_ISREG(entry.mode):
                contents.setdefault(path, set()).add(reading.content(entry.ino, verify=True) or b"")
    return contents


class _Job:
    """Examines mutants one after another."""

    def __init__(self, options: Options, scratch: Path) -> None:
        self._options = options
        self._scratch = scratch
        self._result = Result()
        self._mutant = make_mutant(0, options.seed)
        self._path = scratch

    def run(self, numbers: list[int]) -> Result:
        """Examines the mutants of these numbers."""
        result = self._result
        for number in numbers:
            mutant = self._mutant = make_mutant(number, self._options.seed, self._options.structure)
            self._path = self._scratch / f"{number}.gomp"
            self._path.write_bytes(mutant.content)
            findings = self._examine()
            self._path.unlink()
            result.mutants[mutant.structure] += 1
            result.findings.update(finding.partition(":")[0] for finding in findings)
            result.told += [f"{mutant.describe()}\n    {finding}" for finding in findings]
            if findings and self._options.keep:
                self._keep(findings)
        return result

    def _keep(self, findings: list[str]) -> None:
        mutant, seed = self._mutant, self._options.seed
        folder = Path(str(self._options.keep))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{seed}-{mutant.number}.gomp").write_bytes(mutant.content)
        again = f"python -m tests.fuzz.run --seed {seed} --numbers {mutant.number} --keep again"
        text = "\n".join([mutant.describe(), *findings, again, ""])
        (folder / f"{seed}-{mutant.number}.txt").write_text(text)

    def _examine(self) -> list[str]:
        """Forks a child that performs the steps.

        If a child is killed, the next one continues with the following step.
        """
        findings: list[str] = []
        is_sound, first, survived = False, 0, False
        while not survived:
            watch = Watch(self._options.seconds, self._options.memory, first)
            survived = watch.run(partial(self._be_child, first))
            first, is_sound = watch.step, is_sound or watch.is_sound
            findings += watch.findings
            self._result.num_commands += watch.num_commands
            self._result.longest = max(self._result.longest, watch.longest)
            self._result.most_memory = max(self._result.most_memory, watch.peak)
        self._result.sound[self._mutant.structure] += is_sound
        return findings

    def _be_child(self, first: int, writer: int) -> None:
        """Performs the steps from `first` on, and exits."""

        def tell(kind: str, text: str) -> None:
            os.write(writer, json.dumps([kind, text]).encode() + b"\n")

        try:
            self._do_steps(first, tell)
        except BaseException as error:
            text = "".join(traceback.format_exception(error))
            tell("finding", f"traceback: {text[-1500:]}")
        finally:
            os._exit(0)

    def _do_steps(self, first: int, tell: Callable[[str, str], None]) -> None:
        options, number, path = self._options, self._mutant.number, self._path
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if not options.sanitized:
            resource.setrlimit(resource.RLIMIT_AS, (options.memory + _ADDRESSES,) * 2)
        scratch = self._scratch / "use"
        remove(scratch)
        scratch.mkdir()
        originals = _original_contents(self._mutant.seed) if self._mutant.keeps_contents else None
        steps = Examination(path, scratch, number, originals, tell).steps()
        if options.processes and number % options.processes == 0:
            steps.append(("processes", lambda: run_as_processes(path, scratch, options.seconds, tell)))
        if options.mounts and number % options.mounts == 0:
            steps.append(("process: mount", lambda: run_real_mount(path, scratch, options.seconds, tell)))
        for name, do in steps[first:]:
            tell("step", name)
            try:
                do()
            except Exception as error:
                text = "".join(traceback.format_exception(error))
                tell("finding", f"traceback: {name}: {text[-1500:]}")


def _summary(result: Result, options: Options, seconds: float) -> str:
    lines = [f"{'structure':<16}{'mutants':>9}{'sound':>9}"]
    lines += [f"{name:<16}{count:>9}{result.sound[name]:>9}" for name, count in sorted(result.mutants.items())]
    lines.append(f"{'all':<16}{result.mutants.total():>9}{result.sound.total():>9}")
    lines.append(
        f"{result.num_commands} commands in {seconds:.0f} s with {options.jobs} jobs; the longest took"
        f" {result.longest:.1f} s, the largest {result.most_memory >> 20} MiB"
    )
    lines += [f"{kind}: {count} findings" for kind, count in sorted(result.findings.items())] or ["no findings"]
    return "\n".join(lines)


def _run_sanitized(folder: str) -> None:
    """Restarts in an interpreter with the sanitizers loaded, and a copy of the package with the sanitized modules."""
    compiler = os.environ.get("CXX", "c++")
    found = [
        subprocess.run(
            [compiler, f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("asan", "ubsan")
    ]
    with tempfile.TemporaryDirectory(prefix="gompfs-sanitized-") as copy:
        package = Path(copy, "gompfs")
        shutil.copytree(_TESTS.parent / "gompfs", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        for module in Path(folder).glob("_*.so"):
            shutil.copy(module, package)
        environment = {
            **os.environ,
            "LD_PRELOAD": " ".join(found),
            "PYTHONPATH": copy,
            "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
            "GOMPFS_FUZZ_SANITIZED": "1",
        }
        sys.exit(
            subprocess.run([sys.executable, "-P", __file__, *sys.argv[1:]], env=environment, check=False).returncode
        )


def _options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Options()
    parser.add_argument("--count", type=int, default=defaults.count, help="how many mutants")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--numbers", type=int, nargs="+", default=[], help="only these")
    parser.add_argument("--seed", type=int, default=1, help="another number makes other mutants")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", help="the directory for mutants that went wrong")
    parser.add_argument("--scratch", default=defaults.scratch, help="where mutants are written and extracted")
    parser.add_argument("--seconds", type=float, default=defaults.seconds, help="that a command may take")
    parser.add_argument("--memory", type=int, default=defaults.memory, help="bytes that a command may take")
    parser.add_argument("--processes", type=int, default=defaults.processes, help="every n-th mutant through processes")
    parser.add_argument("--mounts", type=int, default=defaults.mounts, help="every n-th mutant through a true mount")
    parser.add_argument("--structure", choices=STRUCTURES, help="mutate only this one")
    parser.add_argument("--sanitized", help="the folder of a build with -DGOMPFS_SANITIZE=ON")
    options = Options(**vars(parser.parse_args()))
    if options.sanitized:
        options.seconds, options.memory = 20 * options.seconds, 16 << 30
    return options


def main() -> int:
    """Runs a campaign, prints its result, and returns the exit status."""
    options = _options()
    if options.sanitized and "GOMPFS_FUZZ_SANITIZED" not in os.environ:
        _run_sanitized(options.sanitized)
    begun = time.monotonic()
    result = run_campaign(options)
    text = _summary(result, options, time.monotonic() - begun)
    sys.stdout.write("\n".join([*result.told[:200], "", text, ""]))
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
