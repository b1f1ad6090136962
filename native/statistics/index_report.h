// The reports inverted index and ranked inverted index.
#pragma once

#include <string>
#include <vector>

#include "statistics/postings.h"
#include "statistics/report.h"

namespace gompfs {

// Makes the lines of an index from postings in the order of (key, file).
class IndexWriter {
  public:
    // With counts, the files of a line are sorted by falling count and limited to `top`.
    IndexWriter(const Corpus& corpus, bool with_counts, std::uint64_t top)
        : corpus_(corpus), with_counts_(with_counts), top_(top) {}

    void add(NgramKey key, std::uint32_t file, std::uint64_t count) {
        if (key != key_ && !files_.empty()) {
            append_line();
        }
        key_ = key;
        files_.push_back({file, count});
    }
    // Returns the lines of what was added.
    std::string finish();

  private:
    struct FileCount {
        std::uint32_t file;
        std::uint64_t count;
    };
    void append_line();

    const Corpus& corpus_;
    const bool with_counts_;
    const std::uint64_t top_;
    NgramKey key_ = 0;
    std::vector<FileCount> files_;
    std::string text_;
};

// A piece is a range of keys; the runs are merged for that range when the piece is made.
class IndexReport : public Report {
  public:
    // See IndexWriter.
    IndexReport(const Corpus& corpus, const Postings& postings, bool with_counts, std::uint64_t top)
        : corpus_(corpus),
          merger_(postings.spill, postings.runs,
                  RunMerger::num_ranges_of(postings.runs, kPostingsOfPiece)),
          with_counts_(with_counts),
          top_(top) {}

    std::size_t num_pieces() const override { return merger_.num_ranges(); }
    std::string piece(std::size_t index) const override;

  private:
    static constexpr std::size_t kPostingsOfPiece = 1 << 15;

    const Corpus& corpus_;
    const RunMerger merger_;
    const bool with_counts_;
    const std::uint64_t top_;
};

}  // namespace gompfs
