// How often the n-grams of some documents occur in the files of an archive: exact, for n-grams of
// up to 255 words, and as many as memory has space for.
//
// The text of the archive is visited once, part by part, as rules (part_ngrams.h). Parts that have
// too few of the words are skipped.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "statistics/document_overlaps.h"
#include "statistics/ngram_set.h"
#include "statistics/part_ngrams.h"
#include "statistics/postings.h"
#include "text/stored_parts.h"
#include "text/text_extents.h"
#include "text/word_section.h"

namespace gompfs {

class Overlap {
  public:
    // `inos` are the files to search; their numbers are their indexes. The set is finished, and
    // outlives the object.
    Overlap(const NgramSet& set, std::span<const std::uint64_t> inos, Spill::Options spill);

    // Both search a part of the archive's text; calls are in the order of the text. They throw
    // std::invalid_argument if it is damaged, and what Spill throws.
    void search_grammar(const Grammar& grammar, unsigned num_threads);
    void search_parts(const StoredParts& parts, std::span<const TextExtent> extents,
                      Bytes word_section, std::uint64_t max_word_bytes, const Tokenizer& tokenizer,
                      unsigned num_threads);

    // The results by document, with up to max_files files each. Nothing is searched after it.
    std::vector<DocumentOverlap> finish(std::size_t max_files);

  private:
    // The beginning and the end of a part's text, for n-grams that span parts.
    struct PartEdge {
        bool continues = false;
        bool is_one_file = false;
        std::uint64_t first_ino = 0, last_ino = 0;
        NodeEnds first, last;
    };
    class PartsSearch;

    PartEdge search_part(const Part& part, std::span<const std::uint32_t> words);
    void count_files(const RuleGraph& graph);
    void add(std::vector<KeyedPosting>& found);
    void search_edges();
    void check_num_tokens(std::uint64_t num_tokens);
    std::uint32_t file_number(std::uint64_t ino) const;

    const NgramSet& set_;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> files_;  // inode, number; ascending
    std::vector<PartEdge> edges_;                                 // of all parts, in order
    std::atomic<std::uint64_t> num_tokens_{0};
    Postings postings_;  // keys are files, and the file of each posting is an n-gram
};

}  // namespace gompfs
