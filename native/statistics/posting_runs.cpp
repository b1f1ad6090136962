// Implements runs and their merge; see posting_runs.h. Ranges are cut at the first keys of chunks,
// so that they contain about equally many postings. Each reader has a buffer of 2 KiB.
#include "statistics/posting_runs.h"

namespace gompfs {

Run RunWriter::finish(Spill& spill) {
    const std::uint64_t start = spill.append(bytes_);
    for (Run::Chunk& chunk : run_.chunks) {
        chunk.offset += start;
    }
    run_.end = start + bytes_.size();
    return std::move(run_);
}

void RunReader::refill() {
    const std::size_t left = end_ - at_;
    std::copy_n(bytes_.begin() + at_, left, bytes_.begin());
    const std::size_t size = std::min<std::uint64_t>(bytes_.size() - left, run_->end - offset_);
    spill_->read(offset_, {bytes_.data() + left, size});
    offset_ += size;
    at_ = 0;
    end_ = left + size;
}

std::size_t RunMerger::num_ranges_of(const std::vector<Run>& runs, std::size_t num_postings) {
    std::size_t num_chunks = 0;
    for (const Run& run : runs) {
        num_chunks += run.chunks.size();
    }
    return num_chunks / std::max(num_postings / Run::kPostingsOfChunk, runs.size() + 1) + 1;
}

RunMerger::RunMerger(const Spill& spill, const std::vector<Run>& runs, std::size_t max_ranges)
    : spill_(spill), runs_(runs) {
    std::vector<NgramKey> firsts;
    for (const Run& run : runs) {
        for (const Run::Chunk& chunk : run.chunks) {
            firsts.push_back(chunk.first);
        }
    }
    std::sort(firsts.begin(), firsts.end());
    for (std::size_t range = 1; range < max_ranges; ++range) {
        const std::size_t index = firsts.size() * range / max_ranges;
        if (index != 0 && (cuts_.empty() || cuts_.back() < firsts[index])) {
            cuts_.push_back(firsts[index]);
        }
    }
}

std::vector<RunReader> RunMerger::readers(std::size_t range) const {
    std::vector<RunReader> readers;
    for (const Run& run : runs_) {
        // The last chunk that begins before the range may reach into it.
        auto chunk = run.chunks.begin();
        if (range != 0) {
            chunk = std::partition_point(
                run.chunks.begin(), run.chunks.end(),
                [&](const Run::Chunk& other) { return other.first < cuts_[range - 1]; });
            chunk -= chunk != run.chunks.begin();
        }
        if (chunk != run.chunks.end() && is_inside(range, chunk->first)) {
            readers.emplace_back(spill_, run, static_cast<std::size_t>(chunk - run.chunks.begin()));
        }
    }
    return readers;
}

bool RunMerger::enter(std::size_t range, Source& source) const {
    CancellationPoint point;
    do {
        point();
        if (!source.reader->next(source.posting)) {
            return false;
        }
    } while (range != 0 && source.posting.key < cuts_[range - 1]);
    return is_inside(range, source.posting.key);
}

}  // namespace gompfs
