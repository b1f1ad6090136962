// Compares the words of parts with the literals of a pattern; see file_filter.h.
#include "search/files/file_filter.h"

#include <algorithm>
#include <memory>

#include "common/failures.h"
#include "text/token_check.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxPieces = 64;
constexpr std::size_t kMaxLiterals = 64;   // of a set
constexpr std::size_t kShortestPiece = 3;  // shorter ones are in nearly all parts
constexpr std::size_t kFewTokens = 1024;
constexpr std::size_t kTokensAtOnce = 1 << 15;  // that a thread takes
constexpr std::size_t kMaxPartsAtOnce = 64;     // that a thread takes

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

FileFilter::FileFilter(const std::vector<LiteralSet>& required, WordRule rule) : rule_(rule) {
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

// What is looked for in separators. Under the rule `letters` a character may be in two of them, or
// begin in a word; the last byte of these is in a separator then, because no word begins inside of
// a character.
std::string_view FileFilter::of_separators(std::string_view unknown) const {
    return rule_ == WordRule::letters ? unknown.substr(unknown.size() - 1) : unknown;
}

bool FileFilter::has_unknown(const HeadTokens& tokens) const {
    const auto stored = view_of(tokens.stored_bytes());
    return std::any_of(unknown_.begin(), unknown_.end(), [&](std::string_view unknown) {
        // Its last byte is stored somewhere.
        return stored.find(unknown.back()) != stored.npos &&
               (view_of(tokens.local_words()).find(unknown) != stored.npos ||
                view_of(tokens.local_separators()).find(of_separators(unknown)) != stored.npos);
    });
}

// Adds the pieces in the tokens of a range; kAll for tokens that may match anything.
void FileFilter::find_in_tokens(const TokenList& tokens, std::size_t first, std::size_t end,
                                std::vector<std::pair<std::uint32_t, Mask>>& found) const {
    const auto starts = tokens.starts().subspan(first, end - first + 1);
    const std::string_view bytes =
        view_of(tokens.bytes()).substr(starts.front(), starts.back() - starts.front());
    const auto add = [&](std::size_t offset, Mask mask) {
        const auto token = std::upper_bound(starts.begin(), starts.end(), starts.front() + offset) -
                           starts.begin();
        found.emplace_back(static_cast<std::uint32_t>(first + token - 1), mask);
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
    for (const std::string_view whole : unknown_) {
        const std::string_view unknown = tokens.has_spaces() ? whole : of_separators(whole);
        for (std::size_t at = 0; (at = bytes.find(unknown, at)) != bytes.npos; ++at) {
            add(at, kAll);
        }
    }
    std::sort(found.begin(), found.end());
}

FileFilter::TokenMasks FileFilter::masks_of_tokens(const TokenList& tokens,
                                                   unsigned num_threads) const {
    TokenMasks masks;
    masks.num_tokens = tokens.size();
    std::vector<std::vector<std::pair<std::uint32_t, Mask>>> found(
        (masks.num_tokens + kTokensAtOnce - 1) / kTokensAtOnce);
    parallel_for_all(found.size(), num_threads, [&](std::size_t index) {
        const std::size_t first = index * kTokensAtOnce;
        find_in_tokens(tokens, first, std::min(first + kTokensAtOnce, masks.num_tokens),
                       found[index]);
    });
    for (const auto& of_range : found) {
        masks.found.insert(masks.found.end(), of_range.begin(), of_range.end());
    }
    if (masks.found.size() > kFewTokens) {
        masks.all.resize(tokens.size(), 0);
        for (const auto& [token, mask] : masks.found) {
            masks.all[token] |= mask;
        }
    }
    return masks;
}

// The pieces in the tokens with these numbers, which ascend; kAll if a number is too high.
FileFilter::Mask FileFilter::TokenMasks::of(std::span<const std::uint32_t> tokens,
                                            Mask wanted) const {
    Mask mask = 0;
    if (!tokens.empty() && tokens.back() >= num_tokens) {
        return kAll;  // reading the file reports the damage
    }
    if (all.empty()) {
        auto from = tokens.begin();
        for (const auto& [token, of_token] : found) {
            from = std::lower_bound(from, tokens.end(), token);
            mask |= from != tokens.end() && *from == token ? of_token : 0;
        }
        return mask;
    }
    for (auto token = tokens.begin(); token != tokens.end() && (mask & wanted) != wanted; ++token) {
        mask |= all[*token];
    }
    return mask;
}

void FileFilter::find_parts(const PartHeads& heads, std::uint64_t block_size) {
    block_size_ = block_size;
    for (std::size_t segment = 0; segment < heads.segments().size(); ++segment) {
        const SegmentHeads& stored = heads.segments()[segment];
        for (std::size_t part = 0; part < stored.first_blocks.size(); ++part) {
            parts_.push_back({stored.first_blocks[part] * block_size, segment, part});
        }
    }
}

// Whether each extent but the first is at the beginning of a part, and the one before ends in the
// last block of another of the same segment. Elsewhere, the bytes of two extents may together be a
// word.
bool FileFilter::goes_on_in_parts(const LayoutView& file) const {
    const auto part_after = [&](std::uint64_t offset) {
        return std::upper_bound(
            parts_.begin(), parts_.end(), offset,
            [](std::uint64_t wanted, const Part& each) { return wanted < each.begin; });
    };
    for (std::size_t index = 1; index < file.extents.size(); ++index) {
        const std::uint64_t begin = file.extents[index].stream_offset;
        const auto part = part_after(begin);
        const FileExtent& before = file.extents[index - 1];
        const std::uint64_t end = before.stream_offset + before.size;
        const auto next = part_after(end - 1);
        if (part == parts_.begin() || (part - 1)->begin != begin || next == parts_.end() ||
            next->begin - end >= block_size_ || next == parts_.begin() ||
            (next - 1)->segment != (part - 1)->segment) {
            return false;
        }
    }
    return true;
}

// The pieces in the words of a part. A damaged head has all: reading the file reports the damage.
FileFilter::Mask FileFilter::mask_of_head(const PartHeads::FetchedHeads::Head& head,
                                          const TokenMasks& words, const TokenMasks& separators,
                                          HeadTokens& tokens) const {
    const auto extent = words.found.empty() && separators.found.empty()
                            ? HeadArrays::Extent::local_words
                            : HeadArrays::Extent::tokens;
    if (head.status != BlockStatus::ok || !tokens.read(head.payload, head.pool_size, extent) ||
        !have_right_bytes(tokens.local_words(), tokens.num_local_words(), tokens.local_separators(),
                          rule_) ||
        has_unknown(tokens)) {
        return kAll;
    }
    const Mask wanted = kAll >> (kMaxPieces - pieces_.size());
    return mask_of_words(tokens.local_words()) | words.of(tokens.global_words(), wanted) |
           separators.of(tokens.global_separators(), wanted);
}

void FileFilter::read_needed(PartHeads& heads, unsigned num_threads) {
    struct Section {
        TokenMasks words, separators;
        bool is_sound;
    };
    std::vector<Section> sections;
    for (std::size_t segment = 0; segment < heads.segments().size(); ++segment) {
        const WordSection& section = heads.words(segment);
        // A damaged section has no words. Reading the files of its segment reports the damage.
        const bool is_damaged =
            section.words().size() + section.separators().size() == 0 && heads.has_words(segment);
        sections.push_back({masks_of_tokens(section.words(), num_threads),
                            masks_of_tokens(section.separators(), num_threads),
                            !is_damaged && have_right_bytes(section, rule_, num_threads)});
    }
    const auto has_needed_head = [&](const Part& part) {
        const auto& sizes = heads.segments()[part.segment].head_sizes;
        return part.is_needed && part.number < sizes.size() && sizes[part.number] != 0;
    };
    const auto read_run = [&](std::span<Part> run, HeadTokens& tokens) {
        const Part first = run.front();
        const auto fetched =
            heads.fetch_heads(first.segment, first.number, first.number + run.size());
        const Section& section = sections[first.segment];
        for (std::size_t index = 0; index < fetched.heads.size(); ++index) {
            run[index].mask = section.is_sound ? mask_of_head(fetched.heads[index], section.words,
                                                              section.separators, tokens)
                                               : kAll;
        }
        return fetched.heads.size();
    };
    const std::size_t at_once = std::clamp<std::size_t>(
        parts_.size() / (8 * std::max(num_threads, 1u)), 1, kMaxPartsAtOnce);
    parallel_for_all((parts_.size() + at_once - 1) / at_once, num_threads, [&](std::size_t index) {
        HeadTokens tokens;
        const std::size_t end = std::min((index + 1) * at_once, parts_.size());
        for (std::size_t part = index * at_once; part < end;) {
            std::size_t run_end = part;
            while (run_end < end && has_needed_head(parts_[run_end]) &&
                   parts_[run_end].segment == parts_[part].segment) {
                ++run_end;
            }
            part += run_end == part
                        ? 1
                        : read_run(std::span(parts_).subspan(part, run_end - part), tokens);
        }
    });
}

bool FileFilter::may_match(const LayoutView& file) {
    Mask mask = 0;
    std::uint64_t num_stored = 0;
    for (const FileExtent& extent : file.extents) {
        num_stored += extent.size;
    }
    if (!for_each_part(file, [&](const Part& part) { mask |= part.mask; }) ||
        num_stored != file.size || !goes_on_in_parts(file)) {
        return true;
    }
    return std::all_of(sets_.begin(), sets_.end(), [&](const std::vector<Mask>& literals) {
        return std::any_of(literals.begin(), literals.end(),
                           [&](Mask needed) { return (needed & ~mask) == 0; });
    });
}

}  // namespace gompfs::search
