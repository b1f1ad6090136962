// Copies on several threads; see host_copy.h.
#include "gpu/host_copy.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "common/parallel.h"

namespace gompfs {
namespace {

// A thread takes this many bytes at a time: a slice of 32 MiB keeps 16 threads busy to its end.
constexpr std::uint64_t kPieceSize = 256 << 10;

bool is_inside(std::uint64_t offset, std::uint64_t size, std::size_t end) {
    return size <= end && offset <= end - size;
}

}  // namespace

void copy_runs(Bytes source, MutableBytes target, std::span<const CopiedRun> runs,
               unsigned num_threads) {
    std::vector<CopiedRun> pieces;
    for (const CopiedRun& run : runs) {
        if (!is_inside(run.source_offset, run.size, source.size()) ||
            !is_inside(run.target_offset, run.size, target.size())) {
            throw std::invalid_argument("a run is not inside the memory");
        }
        for (std::uint64_t start = 0; start < run.size; start += kPieceSize) {
            pieces.push_back({run.source_offset + start, run.target_offset + start,
                              std::min(kPieceSize, run.size - start)});
        }
    }
    parallel_for(pieces.size(), num_threads, [&](std::size_t index) {
        const CopiedRun& piece = pieces[index];
        std::memcpy(target.data() + piece.target_offset, source.data() + piece.source_offset,
                    piece.size);
    });
}

}  // namespace gompfs
