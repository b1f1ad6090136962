// The report sequence count: n-grams by falling count.
#pragma once

#include <string>
#include <vector>

#include "statistics/bucket_sort.h"
#include "statistics/postings.h"
#include "statistics/report.h"

namespace gompfs {

// Appends the line of an n-gram.
void append_ngram_count(std::string& text, const Corpus& corpus, NgramKey key, std::uint64_t count);

// Sorts n-grams by count with a bucket for each small count; a merge of the runs supplies them in
// byte order. n-grams with large counts are few and sorted in memory.
class SequenceCountReport : public Report {
  public:
    SequenceCountReport(const Corpus& corpus, Postings& postings, unsigned num_threads);

    std::size_t num_pieces() const override { return piece_starts_.size() - 1; }
    std::string piece(std::size_t index) const override;

  private:
    static constexpr std::uint64_t kSmall = 1024;  // smaller counts have a bucket each

    struct NgramCount {
        NgramKey key;
        std::uint64_t count;
    };
    struct Chunk {
        std::uint64_t count;
        std::uint64_t offset;
        std::uint32_t size;
    };

    void distribute(Postings& postings, BucketSort& buckets, unsigned num_threads);
    void list_pieces(const BucketSort& buckets);

    const Corpus& corpus_;
    const Spill& spill_;
    std::vector<NgramCount> large_;  // these are in piece 0
    std::vector<Chunk> chunks_;      // of all buckets, highest count first
    std::vector<std::size_t> piece_starts_;
};

}  // namespace gompfs
