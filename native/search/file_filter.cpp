// Compares the words of parts with the literals of a pattern; see file_filter.h.
#include "search/file_filter.h"

#include <algorithm>
#include <memory>

#include "common/failures.h"
#include "parts/head_tokens.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxPieces = 64;
constexpr std::size_t kMaxLiterals = 64;   // of a set
constexpr std::size_t kShortestPiece = 3;  // shorter ones are in nearly all parts
constexpr std::size_t kFewTokens = 256;
constexpr std::size_t kPartsAtOnce = 16;  // that a thread takes

std::string_view view_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_word_byte(WordRule rule, char byte) {
    // Under the rule `letters`, bytes from 0x80 on may or may not belong to a word.
    return !is_separator(rule, byte) && (rule != WordRule::letters || byte >= 0);
}

std::vector<WordPiece> cut(const std::string& literal, WordRule rule, bool is_caseless) {
    std::vector<WordPiece> pieces;
    for (std::size_t at = 0; at < literal.size();) {
        std::size_t end = at;
        while (end < literal.size() && is_word_byte(rule, literal[end])) {
            ++end;
        }
        if (end - at >= kShortestPiece) {
            pieces.push_back(
                {literal.substr(at, end - at), at != 0 && is_separator(rule, literal[at - 1]),
                 end != literal.size() && is_separator(rule, literal[end]), is_caseless});
        }
        at = end + 1;
    }
    return pieces;
}

// Byte order marks of UTF-16; and the characters outside of ASCII that fold to k and s.
constexpr std::string_view kMarks[] = {"\xff\xfe", "\xfe\xff"};
constexpr std::string_view kFolding[] = {"\xe2\x84\xaa", "\xc5\xbf"};

}  // namespace

FileFilter::FileFilter(const std::vector<LiteralSet>& required, WordRule rule) {
    for (const LiteralSet& set : required) {
        add_set(set, rule);
    }
    unknown_.assign(std::begin(kMarks), std::end(kMarks));
    bool has_folding = false;
    for (const WordPiece& piece : pieces_) {
        finders_.emplace_back(piece.bytes, piece.is_caseless);
        has_folding = has_folding ||
                      (piece.is_caseless && piece.bytes.find_first_of("ks") != std::string::npos);
    }
    if (has_folding) {
        unknown_.insert(unknown_.end(), std::begin(kFolding), std::end(kFolding));
    }
}

int FileFilter::index_of(const WordPiece& piece) {
    const auto found = std::find(pieces_.begin(), pieces_.end(), piece);
    if (found != pieces_.end()) {
        return static_cast<int>(found - pieces_.begin());
    }
    pieces_.push_back(piece);
    return static_cast<int>(pieces_.size() - 1);
}

// Adds a required set, unless one of its literals has no pieces, or there are too many.
bool FileFilter::add_set(const LiteralSet& set, WordRule rule) {
    std::vector<std::vector<WordPiece>> cut_literals;
    std::size_t num_pieces = pieces_.size();
    for (const std::string& literal : set.literals) {
        cut_literals.push_back(cut(literal, rule, set.is_caseless));
        num_pieces += cut_literals.back().size();
        if (cut_literals.back().empty() || cut_literals.size() > kMaxLiterals) {
            return false;
        }
    }
    if (num_pieces > kMaxPieces) {
        return false;
    }
    std::vector<Mask> masks;
    for (const std::vector<WordPiece>& of_literal : cut_literals) {
        Mask mask = 0;
        for (const WordPiece& piece : of_literal) {
            mask |= Mask{1} << index_of(piece);
        }
        masks.push_back(mask);
    }
    sets_.push_back(std::move(masks));
    return true;
}

// Whether the piece at words[at] begins and ends a word there, as far as it must. There is a space
// after each word.
bool FileFilter::is_piece_of(const WordPiece& piece, std::string_view words, std::size_t at) const {
    const std::size_t end = at + piece.bytes.size();
    return (!piece.begins_word || at == 0 || words[at - 1] == ' ') &&
           (!piece.ends_word || end == words.size() || words[end] == ' ');
}

FileFilter::Mask FileFilter::mask_of_words(Bytes bytes) const {
    const std::string_view words = view_of(bytes);
    Mask mask = 0;
    for (std::size_t index = 0; index < pieces_.size(); ++index) {
        for (std::size_t at = 0; (at = finders_[index].find(words, at)) != LiteralFinder::kNone;
             ++at) {
            if (is_piece_of(pieces_[index], words, at)) {
                mask |= Mask{1} << index;
                break;
            }
        }
    }
    return mask;
}

bool FileFilter::has_unknown(Bytes bytes) const {
    return std::any_of(unknown_.begin(), unknown_.end(), [&](std::string_view unknown) {
        return view_of(bytes).find(unknown) != std::string_view::npos;
    });
}

// The pieces in the tokens of a list; kAll for those that may match anything.
FileFilter::TokenMasks FileFilter::masks_of_tokens(const TokenList& tokens) const {
    TokenMasks masks;
    masks.num_tokens = tokens.size();
    const std::string_view bytes = view_of(tokens.bytes());
    const auto starts = tokens.starts();
    const auto add = [&](std::size_t offset, Mask mask) {
        const auto token = std::upper_bound(starts.begin(), starts.end(), offset) - starts.begin();
        masks.found.emplace_back(static_cast<std::uint32_t>(token - 1), mask);
    };
    if (tokens.has_spaces()) {
        for (std::size_t index = 0; index < pieces_.size(); ++index) {
            for (std::size_t at = 0; (at = finders_[index].find(bytes, at)) != LiteralFinder::kNone;
                 ++at) {
                if (is_piece_of(pieces_[index], bytes, at)) {
                    add(at, Mask{1} << index);
                }
            }
        }
    }
    for (const std::string_view unknown : unknown_) {
        for (std::size_t at = 0; (at = bytes.find(unknown, at)) != bytes.npos; ++at) {
            add(at, kAll);
        }
    }
    if (masks.found.size() > kFewTokens) {
        masks.all.resize(tokens.size(), 0);
        for (const auto [token, mask] : masks.found) {
            masks.all[token] |= mask;
        }
    }
    return masks;
}

// The pieces in the tokens with these numbers, which ascend; kAll if a number is too high.
FileFilter::Mask FileFilter::TokenMasks::of(std::span<const std::uint32_t> tokens) const {
    Mask mask = 0;
    if (!tokens.empty() && tokens.back() >= num_tokens) {
        return kAll;  // reading the file reports the damage
    }
    if (all.empty()) {
        for (const auto& [token, of_token] : found) {
            mask |= std::binary_search(tokens.begin(), tokens.end(), token) ? of_token : 0;
        }
        return mask;
    }
    for (const std::uint32_t token : tokens) {
        mask |= all[token];
    }
    return mask;
}

void FileFilter::find_parts(const PartHeads& heads, std::uint64_t block_size) {
    for (std::size_t segment = 0; segment < heads.segments().size(); ++segment) {
        const SegmentHeads& stored = heads.segments()[segment];
        for (std::size_t part = 0; part < stored.first_blocks.size(); ++part) {
            parts_.push_back({stored.first_blocks[part] * block_size, segment, part});
        }
    }
}

void FileFilter::read_needed(PartHeads& heads, unsigned num_threads) {
    struct Section {
        TokenMasks words, separators;
    };
    std::vector<Section> sections;
    for (std::size_t segment = 0; segment < heads.segments().size(); ++segment) {
        const WordSection& section = heads.words(segment);
        sections.push_back(
            {masks_of_tokens(section.words()), masks_of_tokens(section.separators())});
    }
    // A damaged head remains kAll: reading the file reports it.
    const auto mask_of_part = [&](const Part& part, HeadTokens& tokens) {
        const PartHeads::FetchedHead head = heads.fetch_head(part.segment, part.number);
        if (head.status != BlockStatus::ok || !tokens.read(head.payload(), head.pool_size) ||
            has_unknown(tokens.local_words()) || has_unknown(tokens.local_separators())) {
            return kAll;
        }
        const Section& section = sections[part.segment];
        return mask_of_words(tokens.local_words()) | section.words.of(tokens.global_words()) |
               section.separators.of(tokens.global_separators());
    };
    parallel_for_all(
        (parts_.size() + kPartsAtOnce - 1) / kPartsAtOnce, num_threads, [&](std::size_t index) {
            HeadTokens tokens;
            const std::size_t begin = index * kPartsAtOnce;
            const std::size_t end = std::min(begin + kPartsAtOnce, parts_.size());
            for (Part& part : std::span(parts_).subspan(begin, end - begin)) {
                const auto& sizes = heads.segments()[part.segment].head_sizes;
                if (part.is_needed && part.number < sizes.size() && sizes[part.number] != 0) {
                    part.mask = mask_of_part(part, tokens);
                }
            }
        });
}

bool FileFilter::may_match(const FileLayout& file) {
    Mask mask = 0;
    std::uint64_t num_stored = 0;
    for (const FileExtent& extent : file.extents) {
        num_stored += extent.size;
    }
    if (!for_each_part(file, [&](const Part& part) { mask |= part.mask; }) ||
        num_stored != file.size) {
        return true;
    }
    return std::all_of(sets_.begin(), sets_.end(), [&](const std::vector<Mask>& literals) {
        return std::any_of(literals.begin(), literals.end(),
                           [&](Mask needed) { return (needed & ~mask) == 0; });
    });
}

}  // namespace gompfs::search
