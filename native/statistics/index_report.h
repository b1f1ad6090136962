// The reports inverted index and ranked inverted index.
#pragma once

#include <string>
#include <vector>

#include "statistics/postings.h"
#include "statistics/report.h"

namespace gompfs {

// A piece is a range of keys; the runs are merged for that range when the piece is made.
class IndexReport : public Report {
  public:
    // With counts, the files of a line are sorted by falling count and limited to `top`.
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

    struct FileCount {
        std::uint32_t file;
        std::uint64_t count;
    };
    void append_line(std::string& text, NgramKey key, std::vector<FileCount>& files) const;

    const Corpus& corpus_;
    const RunMerger merger_;
    const bool with_counts_;
    const std::uint64_t top_;
};

}  // namespace gompfs
