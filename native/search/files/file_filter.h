// Tells which files cannot have a match, without decoding them: from the words in the heads of
// their parts.
//
// Every match of a pattern contains certain literals (required_literals.h). Cut as the archive's
// word rule cuts text, a literal consists of pieces of words: `foo(bar_` of a word that ends with
// `foo`, and one that begins with `bar_`. A file whose parts do not have such words cannot have the
// literal. (Words are those of whole files, because a literal may extend over the end of a part.)
// Files that are not in parts with heads, and those that may begin with a byte order mark of
// UTF-16, always remain.
//
// An archive may be hostile. A part remains if a word or a separator of it breaks the word rule
// (token_check.h), and a file if its extents are not whole pieces of successive parts as far as the
// index tells. What only decoding could tell is believed: that splitters are at the ends of files,
// that the blocks of a part fit together, and that no word continues in the next part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blocks/file_layouts.h"
#include "common/bytes.h"
#include "search/match/literal_finder.h"
#include "search/pattern/required_literals.h"
#include "text/head_tokens.h"
#include "text/part_heads.h"
#include "text/word_rule.h"

namespace gompfs::search {

// A run of word bytes in a literal.
struct WordPiece {
    std::string bytes;
    bool begins_word, ends_word;  // whether the literal has a separator next to it
    bool is_caseless;

    bool operator==(const WordPiece&) const = default;
};

class FileFilter {
  public:
    // Prepares a filter for a pattern. It is of no use if is_useless().
    FileFilter(const std::vector<LiteralSet>& required, WordRule rule);

    bool is_useless() const { return sets_.empty(); }

    // Reads the heads of the parts of these files on several threads. Throws what PartHeads throws.
    template <typename Files>
    void read_heads(PartHeads& heads, std::uint64_t block_size, const Files& files,
                    unsigned num_threads) {
        find_parts(heads, block_size);
        for (std::size_t index = 0; index < files.size(); ++index) {
            for_each_part(files.layout(files[index]), [](Part& part) { part.is_needed = true; });
        }
        read_needed(heads, num_threads);
    }

    // Whether a file may have a match.
    bool may_match(const LayoutView& file);

  private:
    using Mask = std::uint64_t;  // of pieces
    static constexpr Mask kAll = ~Mask{0};

    struct Part {
        std::uint64_t begin;  // in the stream; its end is the beginning of the next one
        std::size_t segment, number;
        Mask mask = kAll;
        bool is_needed = false;
    };

    // The pieces in the tokens of a section.
    struct TokenMasks {
        std::vector<std::pair<std::uint32_t, Mask>> found;  // by number of the token
        std::vector<Mask> all;  // by number of the token; empty if few were found
        std::size_t num_tokens = 0;

        // Those that are in `wanted` at least.
        Mask of(std::span<const std::uint32_t> tokens, Mask wanted) const;
    };

    void find_parts(const PartHeads& heads, std::uint64_t block_size);
    bool goes_on_in_parts(const LayoutView& file) const;
    void read_needed(PartHeads& heads, unsigned num_threads);
    template <typename Take>
    bool for_each_part(const LayoutView& file, const Take& take);

    bool add_set(const LiteralSet& set, WordRule rule);
    int index_of(const WordPiece& piece);
    Mask mask_of_words(Bytes words) const;
    bool has_unknown(const HeadTokens& tokens) const;
    TokenMasks masks_of_tokens(const TokenList& tokens, unsigned num_threads) const;
    void find_in_tokens(const TokenList& tokens, std::size_t first, std::size_t end,
                        std::vector<std::pair<std::uint32_t, Mask>>& found) const;
    Mask mask_of_head(const PartHeads::FetchedHeads::Head& head, const TokenMasks& words,
                      const TokenMasks& separators, HeadTokens& tokens) const;
    std::string_view of_separators(std::string_view unknown) const;
    bool is_piece_of(const WordPiece& piece, std::string_view words, std::size_t at) const;

    const WordRule rule_;
    std::uint64_t block_size_ = 0;
    std::vector<WordPiece> pieces_;
    std::vector<LiteralFinder> finders_;  // by piece
    // Bytes of tokens that may match anything: byte order marks, letters that fold to ASCII.
    std::vector<std::string_view> unknown_;
    std::vector<std::vector<Mask>> sets_;  // of each required set, the pieces of each literal
    std::vector<Part> parts_;              // in the order of the stream
    std::size_t last_part_ = 0;            // that for_each_part has found
};

// Calls take(part) for the parts that a file is in. Returns false if some of it is in no part that
// is known here.
template <typename Take>
bool FileFilter::for_each_part(const LayoutView& file, const Take& take) {
    for (const FileExtent& extent : file.extents) {
        const bool is_in_last = last_part_ + 1 < parts_.size() &&
                                parts_[last_part_].begin <= extent.stream_offset &&
                                extent.stream_offset < parts_[last_part_ + 1].begin;
        if (!is_in_last) {
            const auto after = std::upper_bound(
                parts_.begin(), parts_.end(), extent.stream_offset,
                [](std::uint64_t offset, const Part& each) { return offset < each.begin; });
            if (after == parts_.begin()) {
                return false;  // in a segment without heads
            }
            last_part_ = static_cast<std::size_t>(after - parts_.begin()) - 1;
        }
        for (auto part = parts_.begin() + static_cast<std::ptrdiff_t>(last_part_);
             part != parts_.end() && part->begin < extent.stream_offset + extent.size; ++part) {
            take(*part);
        }
    }
    return true;
}

}  // namespace gompfs::search
