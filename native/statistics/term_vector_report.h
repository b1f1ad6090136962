// The report term vector: the words of each file by falling count, or by tf-idf score.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "statistics/bucket_sort.h"
#include "statistics/postings.h"
#include "statistics/report.h"
#include "statistics/term_vector_lines.h"

namespace gompfs {

// Distributes the postings over buckets, one per range of files; each range is a piece, and is
// sorted in memory when its text is made. With by_tfidf, words are scored; see FilesOfWords.
class TermVectorReport : public Report {
  public:
    // Lists at most `top` words of a file.
    TermVectorReport(const Corpus& corpus, Postings& postings, bool by_tfidf, std::uint64_t top,
                     unsigned num_threads);

    std::size_t num_pieces() const override { return buckets_.size(); }
    std::string piece(std::size_t index) const override;

  private:
    static std::vector<std::uint32_t> cut_files(const Corpus& corpus, const Postings& postings,
                                                unsigned num_threads);
    void distribute(const Postings& postings, unsigned num_threads);
    void count_files_of_words(unsigned num_threads);
    template <typename Take>
    void for_each_file(std::size_t index, Take&& take) const;
    std::vector<WordOfFile> words_of_piece(std::size_t index) const;

    const Corpus& corpus_;
    const Spill& spill_;
    const std::uint64_t top_;
    const std::vector<std::uint32_t> range_starts_;  // of files; the last element is the end
    BucketSort buckets_;
    const bool by_tfidf_;
    std::vector<std::uint32_t> files_of_words_;  // number of files, for tf-idf
    std::uint64_t num_files_ = 0;                // number of files that have words
};

}  // namespace gompfs
