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
#include "text/text_extents.h"
#include "text/token_check.h"

namespace gompfs {
namespace {

constexpr std::size_t kPartsAtOnce = 8;  // that a thread takes
constexpr std::size_t kFewWords = 64;    // that are counted side by side

// The symbols of a head that are words of a set, and the words' numbers there.
struct WantedWords {
    std::vector<std::uint32_t> symbols, words;
    std::size_t size() const { return symbols.size(); }
};

// Counts some words in the pieces of a part with a head, without making its grammar.
class WordsOfPieces {
  public:
    WordsOfPieces(OpenedPart& opened, const WantedWords& wanted)
        : opened_(opened), width_(wanted.size()), counts_(opened.head.num_symbols() * width_) {
        for (std::size_t word = 0; word < width_; ++word) {
            counts_[wanted.symbols[word] * width_ + word] = 1;
        }
        const Head& head = opened.head;
        // A rule uses symbols of lower numbers only.
        for (std::uint32_t rule = 0; rule < head.num_rules(); ++rule) {
            for (auto at = head.rule_starts[rule]; at < head.rule_starts[rule + 1]; ++at) {
                add(head.rule_symbols[at], &counts_[(head.first_rule() + rule) * width_]);
            }
        }
    }

    // Calls take(start, size, counts) for each piece of a file, with the counts of the words.
    template <typename Take>
    void for_each_piece(Take&& take) {
        std::vector<std::uint64_t> counts(width_);
        opened_.for_each_piece(
            [&](std::uint32_t rank) { add(opened_.head.symbols[rank], counts.data()); },
            [&](std::uint64_t start, std::uint64_t size, bool) {
                take(start, size, std::span<const std::uint64_t>(counts));
                std::ranges::fill(counts, 0);
            });
    }

  private:
    void add(std::uint32_t symbol, std::uint64_t* sums) const {
        const std::uint64_t* const counts = &counts_[symbol * width_];
        for (std::size_t word = 0; word < width_; ++word) {
            sums[word] += counts[word];
        }
    }

    OpenedPart& opened_;
    const std::size_t width_;
    std::vector<std::uint64_t> counts_;  // of the words in each symbol, symbol after symbol
};

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
          may_have_ngrams_(parts.size()),
          edges_(parts.size()),
          other_edges_(parts.size()),
          // A part that is not searched does not fail the check of joints.
          ends_(parts.size(), {.begins_with_word = true, .ends_with_separator = true}) {}

    void search() {
        for_some_parts([&](std::size_t first, std::size_t end) {
            HeadTokens tokens;
            for (std::size_t part = first; part < end; ++part) {
                throw_if_cancelled();
                may_have_ngrams_[part] = may_have_ngrams(part, tokens);
            }
        });
        for_some_parts([&](std::size_t first, std::size_t end) {
            for (std::size_t part = first; part < end; ++part) {
                throw_if_cancelled();
                if (is_searched(part)) {
                    search_part(part);
                }
            }
        });
        check_joints(ends_, extents_, tokenizer_.rule());
        append_edges();
    }

  private:
    // Calls visit(first, end) for all parts, some at a time, on several threads.
    template <typename Visit>
    void for_some_parts(Visit&& visit) const {
        parallel_for_all(parts_.size() / kPartsAtOnce + 1, num_threads_, [&](std::size_t index) {
            visit(index * kPartsAtOnce, std::min(parts_.size(), (index + 1) * kPartsAtOnce));
        });
    }

    // If a file is in this part and the next one, n-grams of several words may be in both; and of
    // parts with n-grams, the joints are checked.
    bool is_searched(std::size_t part) const {
        return may_have_ngrams_[part] || is_searched_beside(part + 1, part + 1) ||
               (part > 0 && is_searched_beside(part, part - 1));
    }
    bool is_searched_beside(std::size_t joint, std::size_t neighbour) const {
        return continues(extents_, joint) && (set_.length() > 1 || may_have_ngrams_[neighbour]);
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
        if (set_.length() > 1 || !parts_.has_head(part) || !count_words(part)) {
            search_grammar_of(part);
        }
    }

    // Counts the words of a set of single words, whose numbers are those of its n-grams. Returns
    // false if the part has too many of them. A search for n-grams takes three times as long.
    bool count_words(std::size_t part) {
        const StoredPart stored = parts_.read(part);
        OpenedPart opened(stored, section_, tokenizer_);
        const WantedWords wanted = wanted_words(opened.head);
        if (wanted.size() > kFewWords) {
            return false;
        }
        std::span<const TextExtent> files = extents_[part];
        std::vector<KeyedPosting> found;
        WordsOfPieces(opened, wanted)
            .for_each_piece([&](std::uint64_t start, std::uint64_t size,
                                std::span<const std::uint64_t> counts) {
                for (; !files.empty() && files.front().offset == start; files = files.subspan(1)) {
                    if (files.front().size != size) {
                        fail_extent();
                    }
                    append_postings(files.front().ino, wanted, counts, found);
                }
            });
        if (!files.empty()) {
            fail_extent();
        }
        overlap_.add(found);
        ends_[part] = opened.ends;
        return true;
    }

    WantedWords wanted_words(const Head& head) const {
        WantedWords wanted;
        const auto add = [&](std::uint32_t symbol, std::uint32_t word) {
            if (word != kUnknown) {
                wanted.symbols.push_back(symbol);
                wanted.words.push_back(word);
            }
        };
        std::uint32_t symbol = head.first_word();
        for (std::uint32_t word = 0; word < head.local_words.size(); ++word) {
            add(symbol++, set_.word(head.local_words[word]));
        }
        for (const std::uint32_t word : head.global_words) {
            add(symbol++, global_words_[word]);
        }
        return wanted;
    }

    void append_postings(std::uint64_t ino, const WantedWords& wanted,
                         std::span<const std::uint64_t> counts,
                         std::vector<KeyedPosting>& found) const {
        const std::uint32_t file = overlap_.file_number(ino);
        for (std::size_t word = 0; word < wanted.size() && file != kLeftOut; ++word) {
            if (counts[word] != 0) {
                found.push_back({file, wanted.words[word], counts[word]});
            }
        }
    }

    void search_grammar_of(std::size_t part) {
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
    std::vector<std::uint8_t> may_have_ngrams_;      // by part
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
