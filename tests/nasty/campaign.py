r"""A campaign: packs nasty trees by number, reads all of them back in every way, and keeps those with findings.

    python -m tests.nasty.campaign --count 10000 --jobs 2 --seed 1 --keep DIRECTORY

Each tree is checked in a forked child whose time and memory are watched. nasty_check.py has the steps and the oracles.
Every `--processes`-th tree also goes through commands, extract, and ripgrep, and every `--mounts`-th through a mount,
which needs root or fusermount3. Every `--large`-th tree has ten times as much text, with parts of the default size.

The result is a count of trees and findings. A tree with findings is saved in DIRECTORY, with its archive and a text
that says what went wrong, and how to make it again. The exit status is 1 if there are findings.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    import tests.rooms  # noqa: F401

from nasty_check import Check
from nasty_trees import Tree, make_tree
from watch import Watch


@dataclass
class Options:
    """The options of a campaign; times in seconds, sizes in bytes. `scale` is that of the trees that are not large."""

    count: int = 1000
    first: int = 0
    seed: int = 1
    jobs: int = 1
    keep: str | None = None
    scratch: str = "/dev/shm"
    seconds: float = 60.0
    memory: int = 2 << 30
    processes: int = 20
    mounts: int = 50
    large: int = 25
    scale: float = 1.0
    numbers: list[int] = field(default_factory=list)


@dataclass
class Result:
    """What a campaign found, and how many trees had each kind of token and text."""

    num_trees: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)


def run_campaign(options: Options) -> Result:
    """Checks all trees, each in a forked child, `jobs` at once."""
    result = Result()
    numbers = options.numbers or range(options.first, options.first + options.count)
    with ThreadPoolExecutor(options.jobs) as pool:
        for tree, findings in pool.map(partial(_check_tree, options), numbers):
            result.num_trees += 1
            result.kinds.update(tree.kinds)
            result.told += [f"{tree.describe()}\n    {finding}" for finding in findings]
    return result


def _tree_of(options: Options, number: int) -> Tree:
    is_large = options.large and number % options.large == options.large - 1
    return make_tree(number, options.seed, 10 if is_large else options.scale)


def _check_tree(options: Options, number: int) -> tuple[Tree, list[str]]:
    tree = _tree_of(options, number)
    folder = options.scratch if os.path.isdir(options.scratch) else None
    with tempfile.TemporaryDirectory(prefix="gompfs-nasty-", dir=folder) as scratch:
        watch = Watch(options.seconds, options.memory, 0)
        watch.run(partial(_check_and_exit, options, tree, Path(scratch)))
        if watch.findings and options.keep:
            _keep(options, tree, watch.findings, Path(scratch))
    return tree, watch.findings


def _check_and_exit(options: Options, tree: Tree, scratch: Path, writer: int) -> None:
    def tell(kind: str, text: str) -> None:
        os.write(writer, json.dumps([kind, text]).encode() + b"\n")

    status = 1
    try:
        processes = bool(options.processes) and tree.number % options.processes == 0
        mount = bool(options.mounts) and tree.number % options.mounts == 0
        Check(tree, scratch, tell, processes=processes, mount=mount).run()
        status = 0
    except BaseException as error:
        tell("finding", f"traceback: {''.join(traceback.format_exception(error))[-1500:]}")
    finally:
        os._exit(status)


def _keep(options: Options, tree: Tree, findings: list[str], scratch: Path) -> None:
    folder = Path(str(options.keep), f"{tree.seed}-{tree.number}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(scratch, folder, symlinks=True)
    again = f"python -m tests.nasty.campaign --seed {tree.seed} --numbers {tree.number} --keep again"
    (folder / "findings.txt").write_text("\n".join([tree.describe(), *findings, again, ""]))


def _summary(result: Result, options: Options, seconds: float) -> Iterator[str]:
    yield from (f"{kind:<24}{count:>8} trees" for kind, count in sorted(result.kinds.items()))
    yield f"{result.num_trees} trees in {seconds:.0f} s with {options.jobs} jobs"
    yield f"{len(result.told)} findings" if result.told else "no findings"


def _options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Options()
    parser.add_argument("--count", type=int, default=defaults.count, help="how many trees")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--numbers", type=int, nargs="+", default=[], help="only these")
    parser.add_argument("--seed", type=int, default=1, help="another number makes other trees")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", help="the directory for trees that went wrong")
    parser.add_argument("--scratch", default=defaults.scratch, help="where trees and archives are written")
    parser.add_argument("--seconds", type=float, default=defaults.seconds, help="that a step may take")
    parser.add_argument("--memory", type=int, default=defaults.memory, help="bytes that a child may take")
    parser.add_argument("--processes", type=int, default=defaults.processes, help="every n-th tree through processes")
    parser.add_argument("--mounts", type=int, default=defaults.mounts, help="every n-th tree through a mount")
    parser.add_argument("--large", type=int, default=defaults.large, help="every n-th tree is ten times as large")
    parser.add_argument("--scale", type=float, default=defaults.scale, help="sizes of the other trees")
    return Options(**vars(parser.parse_args()))


def main() -> int:
    """Runs a campaign, prints its result, and returns the exit status."""
    options = _options()
    begun = time.monotonic()
    result = run_campaign(options)
    lines = [*result.told[:200], "", *_summary(result, options, time.monotonic() - begun)]
    sys.stdout.write("\n".join([*lines, ""]))
    return 1 if result.told else 0


if __name__ == "__main__":
    sys.exit(main())
