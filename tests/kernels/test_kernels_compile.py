"""NVRTC compiles the kernels for every supported GPU, and their shared memory has the size that Python assumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cubin import parse_cubin
from host_device import kernels_in
from tool_modules import tool_module

from gompfs.gpu.device.kernel_sources import (
    SHARED_BYTES,
    compile_options,
    kernel_folder,
    read_source,
)
from gompfs.gpu.encode.backward_parser import COST_TILE, FOLLOW_TILE, NUM_PASSES, NUM_SEGMENTS, WAY_TILE
from gompfs.gpu.encode.parser import (
    FIND_THREADS,
    LINK_CLAIMS,
    LINK_THREADS,
    QUEUE_BYTES,
    SEGMENT_BYTES,
    SEGMENT_BYTES_PER_CTA,
    SEGMENT_THREADS,
    SUM_TILE,
    TEXT_PADDING,
)
from gompfs.search.gpu.block_scan import MEASURE_TILE, SEGMENT_SIZE

FOLDER = kernel_folder()
EXPERIMENTS = Path(__file__).parents[2] / "tools" / "experiments" / "kernels"
SOURCES = sorted(
    (folder, str(path.relative_to(folder).with_suffix("")))
    for folder in (FOLDER, EXPERIMENTS)
    for path in folder.rglob("*.cu")
)
compile_kernels = tool_module("compile_kernels")
# The oldest, which has the fewest instructions. The kernels do not distinguish architectures, so they are compiled for
# the others by hand. Those of experiments are large, and compiled for one GPU only.
OLDEST, *OTHERS = compile_kernels.ARCHITECTURES
CASES = [(folder, kernel, OLDEST if folder == FOLDER else 90) for folder, kernel in SOURCES]
BY_HAND = [(folder, kernel, architecture) for folder, kernel in SOURCES if folder == FOLDER for architecture in OTHERS]
# Only the compiler knows the kernels' sizes, so it checks those that Python assumes.
CHECKS = {
    "codec/decode_byte": "static_assert({common} == 0 && gompfs::kByteBytesPerWarp == {per_warp});",
    "codec/decode_bit": "static_assert(gompfs::kBitBytesPerCta == {common} && gompfs::kBitBytesPerWarp == {per_warp});",
    "codec/decode_bit_dictionary": (
        "static_assert(gompfs::kBitBytesPerCta == {common} && gompfs::kBitBytesPerWarp == {per_warp});"
    ),
    "codec/open_heads": "static_assert(gompfs::kHeadBytesPerCta == {common} && {per_warp} == 0);",
    "encode/encode_bit": "static_assert(gompfs::kEncodeBitBytes == {common} && {per_warp} == 0);",
    "encode/encode_byte": "static_assert(gompfs::kEncodeByteBytes == {common} && {per_warp} == 0);",
    "codec/decode_tadoc": "static_assert({common} == 0 && gompfs::kTadocBytesPerWarp == {per_warp});",
}
wesley = tool_module("experiments.wesley.encoder")
wesley_decoder = tool_module("experiments.wesley.decoder")
TILES = {
    "search/run_automaton": f"static_assert(gompfs::kSegmentSize == {SEGMENT_SIZE});",
    "search/measure_blocks": f"static_assert(3 * sizeof(gompfs::u32) <= {MEASURE_TILE.shared_bytes});",
    "encode/sum_literal_costs": f"""static_assert(gompfs::kSumBytes == {SUM_TILE.shared_bytes}
        && gompfs::kTileThreads == {SUM_TILE.num_threads});""",
    "encode/link_positions": f"""static_assert(gompfs::kLinkThreads / 32 * gompfs::kNumClaims * 4 == {LINK_CLAIMS}
        && gompfs::kLinkThreads == {LINK_THREADS});""",
    "encode/find_matches": f"""static_assert(gompfs::kTextPadding == {TEXT_PADDING}
        && sizeof(gompfs::SearchQueue) == {QUEUE_BYTES}
        && gompfs::kFindThreads == {FIND_THREADS});""",
    "encode/estimate_way_costs": f"""static_assert(gompfs::kEncodeBitBytes == {COST_TILE.shared_bytes}
        && gompfs::kEncodeThreads == {COST_TILE.num_threads});""",
    "encode/find_ways": f"""static_assert(gompfs::kWayWarps * gompfs::kWaySearchBytes == {WAY_TILE.shared_bytes}
        && gompfs::kWayWarps == {WAY_TILE.num_items} && gompfs::kNumSegments == {NUM_SEGMENTS}
        && gompfs::kNumPasses == {NUM_PASSES});""",
    "encode/follow_ways": f"static_assert(gompfs::kFollowWarps == {FOLLOW_TILE.num_items});",
    "triples_encode": f"""static_assert(gompfs::kSearchBytes == {wesley.SEARCH_TILE.shared_bytes}
        && gompfs::kSearchTile == {wesley.SEARCH_TILE.num_threads}
        && gompfs::kMapBytes == {wesley.MAP_TILE.shared_bytes}
        && gompfs::kMarkBytes == {wesley.MARK_TILE.shared_bytes});""",
    "triples_tiles": f"""static_assert(gompfs::kResolveBytes == {wesley_decoder.ROOT_TILE.shared_bytes}
        && gompfs::kRootTile == {wesley_decoder.ROOT_TILE.num_items}
        && gompfs::kRootThreads == {wesley_decoder.ROOT_TILE.num_threads}
        && gompfs::kTileGroup == {wesley_decoder.WINDOW_GROUP.num_items}
        && gompfs::kRootWindow == {wesley_decoder.WINDOW_GROUP.num_threads}
        && gompfs::kComposeBytes == {wesley_decoder.WINDOW_GROUP.shared_bytes});""",
    "encode/walk_segments": f"""static_assert(gompfs::kTextPadding == {TEXT_PADDING}
        && gompfs::kSegmentBytes == {SEGMENT_BYTES} && gompfs::kSegmentBytesPerCta == {SEGMENT_BYTES_PER_CTA}
        && sizeof(gompfs::SegmentShared) == gompfs::kSegmentBytesPerCta + gompfs::kSegmentBytes
        && gompfs::kMaxSegmentThreads == {SEGMENT_THREADS});""",
}


@pytest.fixture(scope="module")
def nvrtc() -> Any:
    return compile_kernels.Nvrtc()


@pytest.mark.parametrize(
    ("folder", "kernel", "architecture"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in BY_HAND)],
    ids=[f"{case[1]}-{case[2]}" for case in (*CASES, *BY_HAND)],
)
def test_kernel_compiles(nvrtc: Any, folder: Path, kernel: str, architecture: int) -> None:
    source = read_source(kernel, folder)
    if kernel in SHARED_BYTES:
        common, per_warp = SHARED_BYTES[kernel]
        source += CHECKS[kernel].format(common=common, per_warp=per_warp)
    elif kernel in TILES:
        source += TILES[kernel]
    elif "strategies" in kernel:
        source += "static_assert(gompfs::kStrategyBytesPerWarp == 128);"
    # Experiments are compiled to PTX only: the assembler takes as long again, and finds no mistakes of theirs.
    target = "sm" if folder == FOLDER else "compute"
    options = [*compile_options(), f"-I{folder}", f"--gpu-architecture={target}_{architecture}"]
    compiled = nvrtc.compile(kernel, source, options)
    if folder == FOLDER:
        cubin = parse_cubin(compiled)
        assert cubin.architecture == architecture
        assert cubin.kernels == kernels_in(source)
        assert kernel not in SHARED_BYTES or cubin.kernels == {Path(kernel).name}
