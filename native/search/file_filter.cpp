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
constexpr std::size_t kPartsAtOnce = 16;   // that a thread takes

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

// Whether an occurrence of a piece, in words with spaces after them, is where it must be in a word.
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

// The pieces in each token of a list; kAll for those that may match anything.
std::vector<FileFilter::Mask> FileFilter::masks_of_tokens(const TokenList& tokens) const {
    std::vector<Mask> masks(tokens.size(), 0);
    const std::string_view bytes = view_of(tokens.bytes());
    const auto starts = tokens.starts();
    const auto token_at = [&](std::size_t offset) {
        return static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), offset) -
                                        starts.begin() - 1);
    };
    if (tokens.has_spaces()) {
        for (std::size_t index = 0; index < pieces_.size(); ++index) {
            for (std::size_t at = 0; (at = finders_[index].find(bytes, at)) != LiteralFinder::kNone;
                 ++at) {
                if (is_piece_of(pieces_[index], bytes, at)) {
                    masks[token_at(at)] |= Mask{1} << index;
                }
            }
        }
    }
    for (const std::string_view unknown : unknown_) {
        for (std::size_t at = 0; (at = bytes.find(unknown, at)) != bytes.npos; ++at) {
            masks[token_at(at)] = kAll;
        }
    }
    return masks;
}

void FileFilter::read_heads(PartHeads& heads, std::uint64_t block_size, unsigned num_threads) {
    for (std::size_t segment = 0; segment < heads.segments().size(); ++segment) {
        const SegmentHeads& stored = heads.segments()[segment];
        const WordSection& section = heads.words(segment);
        const std::vector<Mask> words = masks_of_tokens(section.words());
        const std::vector<Mask> separators = masks_of_tokens(section.separators());
        const std::size_t num_parts = stored.head_sizes.size();
        const std::size_t first = parts_.size();
        for (std::size_t part = 0; part < num_parts; ++part) {
            parts_.push_back({stored.first_blocks[part] * block_size, kAll});
        }
        parts_.push_back({stored.first_blocks[num_parts] * block_size, kAll});
        // A damaged head remains kAll: reading the file reports it.
        const auto mask_of_part = [&](std::size_t part, HeadTokens& tokens) {
            const PartHeads::FetchedHead head = heads.fetch_head(segment, part);
            if (head.status != BlockStatus::ok || !tokens.read(head.payload(), head.pool_size)) {
                return kAll;
            }
            Mask mask = mask_of_words(tokens.local_words());
            if (has_unknown(tokens.local_words()) || has_unknown(tokens.local_separators())) {
                return kAll;
            }
            for (const std::uint32_t word : tokens.global_words()) {
                mask |= word < words.size() ? words[word] : kAll;
            }
            for (const std::uint32_t separator : tokens.global_separators()) {
                mask |= separator < separators.size() ? separators[separator] : kAll;
            }
            return mask;
        };
        parallel_for_all((num_parts + kPartsAtOnce - 1) / kPartsAtOnce, num_threads,
                         [&](std::size_t index) {
                             HeadTokens tokens;
                             const std::size_t begin = index * kPartsAtOnce;
                             const std::size_t end = std::min(begin + kPartsAtOnce, num_parts);
                             for (std::size_t part = begin; part < end; ++part) {
                                 if (stored.head_sizes[part] != 0) {
                                     parts_[first + part].mask = mask_of_part(part, tokens);
                                 }
                             }
                         });
    }
}

bool FileFilter::may_match(const FileLayout& file) const {
    Mask mask = 0;
    std::uint64_t num_stored = 0;
    for (const FileExtent& extent : file.extents) {
        num_stored += extent.size;
        auto part = std::upper_bound(
            parts_.begin(), parts_.end(), extent.stream_offset,
            [](std::uint64_t offset, const Part& each) { return offset < each.begin; });
        if (part == parts_.begin()) {
            return true;  // in a segment without heads
        }
        for (--part; part != parts_.end() && part->begin < extent.stream_offset + extent.size;
             ++part) {
            mask |= part->mask;
        }
    }
    if (num_stored != file.size) {
        return true;
    }
    return std::all_of(sets_.begin(), sets_.end(), [&](const std::vector<Mask>& literals) {
        return std::any_of(literals.begin(), literals.end(),
                           [&](Mask needed) { return (needed & ~mask) == 0; });
    });
}

}  // namespace gompfs::search
