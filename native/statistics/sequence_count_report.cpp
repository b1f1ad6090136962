// Sorts n-grams by count; see sequence_count_report.h. Most counts are small, so distributing the
// n-grams over 1,024 buckets sorts nearly all of them without comparisons. In a bucket, n-grams are
// stored as differences of their keys.
#include "statistics/sequence_count_report.h"

#include <algorithm>
#include <iterator>

#include "common/failures.h"

namespace gompfs {

SequenceCountReport::SequenceCountReport(const Corpus& corpus, Postings& postings,
                                         unsigned num_threads)
    : corpus_(corpus), spill_(postings.spill) {
    BucketSort buckets(postings.spill, kSmall);
    distribute(postings, buckets, num_threads);
    list_pieces(buckets);
}

void SequenceCountReport::distribute(Postings& postings, BucketSort& buckets,
                                     unsigned num_threads) {
    constexpr std::size_t kRangesPerThread = 4;
    const RunMerger merger(postings.spill, postings.runs, num_threads * kRangesPerThread);
    std::vector<std::vector<NgramCount>> large(merger.num_ranges());
    parallel_for_all(merger.num_ranges(), num_threads, [&](std::size_t range) {
        BucketSort::Writer writer(buckets, static_cast<std::uint32_t>(range));
        merger.merge(range, [&](NgramKey key, std::uint32_t, std::uint64_t count) {
            if (count >= kSmall) {
                large[range].push_back({key, count});
                return;
            }
            BucketSort::Writer::Open& bucket = writer.open(count);
            append_key(bucket.bytes, key - bucket.last);
            bucket.last = key;
        });
        writer.finish();
    });
    for (const std::vector<NgramCount>& of_range : large) {
        std::copy(of_range.begin(), of_range.end(), std::back_inserter(large_));
    }
    std::stable_sort(
        large_.begin(), large_.end(),
        [](const NgramCount& left, const NgramCount& right) { return left.count > right.count; });
}

void SequenceCountReport::list_pieces(const BucketSort& buckets) {
    constexpr std::size_t kPieceOfKeys = 256
                                         << 10;  // bytes of differences, for about 1 MiB of text
    piece_starts_ = {0, 0};
    std::size_t size = 0;
    for (std::uint64_t count = kSmall; count-- > 0;) {
        for (const BucketSort::Chunk& chunk : buckets.chunks(count)) {
            if (size >= kPieceOfKeys) {
                piece_starts_.push_back(chunks_.size());
                size = 0;
            }
            chunks_.push_back({count, chunk.offset, chunk.size});
            size += chunk.size;
        }
    }
    piece_starts_.push_back(chunks_.size());
}

std::string SequenceCountReport::piece(std::size_t index) const {
    std::string text;
    if (index == 0) {
        for (const NgramCount& ngram : large_) {
            append_ngram_count(text, corpus_, ngram.key, ngram.count);
        }
    }
    std::vector<std::uint8_t> bytes;
    for (std::size_t at = piece_starts_[index]; at < piece_starts_[index + 1]; ++at) {
        throw_if_cancelled();
        const Chunk& chunk = chunks_[at];
        bytes.resize(chunk.size);
        spill_.read(chunk.offset, bytes);
        NgramKey key = 0;
        for (const std::uint8_t* next = bytes.data(); next != bytes.data() + bytes.size();) {
            key += read_key(next);
            append_ngram_count(text, corpus_, key, chunk.count);
        }
    }
    return text;
}

void append_ngram_count(std::string& text, const Corpus& corpus, NgramKey key,
                        std::uint64_t count) {
    corpus.append_ngram(text, key);
    text.push_back('\t');
    append_count(text, count);
    text.push_back('\n');
}

}  // namespace gompfs
