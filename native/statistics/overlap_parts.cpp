// Searches text that is stored in parts for n-grams; see overlap.h. For few n-grams, the words in
// the head of a part say first whether the part can have one.
#include <algorithm>
#include <memory>
#include <vector>

#include "common/failures.h"
#include "statistics/overlap.h"
#include "text/head_tokens.h"
#include "text/opened_part.h"
#include "text/part_files.h"
#include "text/segment_grammar.h"
#include "text/token_check.h"

namespace gompfs {
namespace {

constexpr std::size_t kPartsAtOnce = 8;  // that a thread takes

}  // namespace

class Overlap::PartsSearch {
  public:
    PartsSearch(Overlap& overlap, const StoredParts& parts, std::span<const TextExtent> extents,
                const WordSection& section, const Tokenizer& tokenizer, unsigned num_threads)
        : overlap_(overlap),
          set_(overlap.set_),
          parts_(parts),
          extents_(split_by_part(extents, parts.size())),
          section_(section),
          tokenizer_(tokenizer),
          num_threads_(num_threads),
          global_words_(set_.numbers_of(section.words().size(), num_threads,
                                        [&](std::uint32_t word) { return section.words()[word]; })),
          edges_(parts.size()),
          other_edges_(parts.size()),
          ends_(parts.size()) {}

    void search() {
        parallel_for_all(parts_.size() / kPartsAtOnce + 1, num_threads_, [&](std::size_t index) {
            HeadTokens tokens;
            const std::size_t end = std::min(parts_.size(), (index + 1) * kPartsAtOnce);
            for (std::size_t part = index * kPartsAtOnce; part < end; ++part) {
                throw_if_cancelled();
                if (spans(part) || may_have_ngrams(part, tokens)) {
                    search_part(part);
                }
            }
        });
        check_joints(ends_, extents_, tokenizer_.rule());
        append_edges();
    }

  private:
    // Whether a file of a part is in another part, too. n-grams may span these parts.
    bool spans(std::size_t part) const {
        return continues(extents_, part) || continues(extents_, part + 1);
    }

    bool may_have_ngrams(std::size_t part, HeadTokens& tokens) const {
        if (!set_.is_small() || !parts_.has_head(part)) {
            return true;
        }
        read_tokens(parts_.read_head(part), tokens);
        std::vector<std::uint32_t> words;
        const std::uint8_t* start = tokens.local_words().data();
        for (const std::uint8_t& byte : tokens.local_words()) {
            if (byte == ' ') {
                words.push_back(set_.word({reinterpret_cast<const char*>(start),
                                           static_cast<std::size_t>(&byte - start)}));
                start = &byte + 1;
            }
        }
        append_global_words(tokens.global_words(), words);
        return set_.may_occur(words);
    }

    void append_global_words(std::span<const std::uint32_t> numbers,
                             std::vector<std::uint32_t>& words) const {
        for (const std::uint32_t number : numbers) {
            if (number >= global_words_.size()) {
                fail_part();
            }
            words.push_back(global_words_[number]);
        }
    }

    void search_part(std::size_t part) {
        const PartWords text = read_words(parts_.read(part), section_, tokenizer_, extents_[part],
                                          continues(extents_, part + 1));
        ends_[part] = text.ends;
        std::vector<std::uint32_t> words;
        words.reserve(text.num_words());
        for (std::uint32_t word = 0; word < text.local_words.size(); ++word) {
            words.push_back(set_.word(text.local_words[word]));
        }
        append_global_words(text.global_words, words);
        const MadeParts made = make_parts(text, extents_[part]);
        edges_[part] = overlap_.search_part(made.part, words);
        for (const Part& other : made.of_others) {
            other_edges_[part].push_back(overlap_.search_part(other, words));
        }
    }

    // First those of the parts, then those of other names of large files, file by file.
    void append_edges() {
        std::vector<PartEdge> others;
        for (std::vector<PartEdge>& edges : other_edges_) {
            std::move(edges.begin(), edges.end(), std::back_inserter(others));
        }
        std::stable_sort(others.begin(), others.end(),
                         [](const PartEdge& left, const PartEdge& right) {
                             return left.first_ino < right.first_ino;
                         });
        for (std::vector<PartEdge>* const edges : {&edges_, &others}) {
            std::move(edges->begin(), edges->end(), std::back_inserter(overlap_.edges_));
        }
    }

    Overlap& overlap_;
    const NgramSet& set_;
    const StoredParts& parts_;
    const std::vector<std::span<const TextExtent>> extents_;
    const WordSection& section_;
    const Tokenizer& tokenizer_;
    const unsigned num_threads_;
    const std::vector<std::uint32_t> global_words_;  // numbers in the set
    std::vector<PartEdge> edges_;
    std::vector<std::vector<PartEdge>> other_edges_;
    std::vector<PartEnds> ends_;
};

void Overlap::search_parts(const StoredParts& parts, std::span<const TextExtent> extents,
                           Bytes word_section, std::uint64_t max_word_bytes,
                           const Tokenizer& tokenizer, unsigned num_threads) {
    const WordSection section = word_section.empty()
                                    ? WordSection()
                                    : WordSection(word_section, max_word_bytes, num_threads);
    check_tokens(section, tokenizer, num_threads);
    PartsSearch(*this, parts, extents, section, tokenizer, num_threads).search();
}

}  // namespace gompfs
