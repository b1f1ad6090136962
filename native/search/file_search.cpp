// Searches one file; see file_search.h.
#include "search/file_search.h"

#include <algorithm>

namespace gompfs::search {
namespace {

// What is searched before lines are passed on: their ranges may take 16 times as much memory.
constexpr std::size_t kPieceSize = 256 << 10;
constexpr std::size_t kLookedAtFirst = 64 << 10;  // for a NUL

// Where the search of a whole text ends, because of a NUL.
struct TextEnd {
    std::size_t end;
    std::optional<std::uint64_t> nul_offset;
};

TextEnd find_end(std::string_view text, bool is_whole, const SearchOptions& options) {
    const std::size_t nul = text.find('\0');
    if (nul == text.npos) {
        return {text.size(), std::nullopt};
    }
    if (!is_whole) {
        const auto end = BinaryRule().advance(text, 0, true, nul);
        return {static_cast<std::size_t>(*end), nul};
    }
    // ripgrep reads the whole file then, and looks for a NUL at its beginning and in matches.
    if (nul < kLookedAtFirst) {
        return {0, nul};
    }
    if (options.prints_all_lines) {
        return {line_at(text, nul).begin, nul};
    }
    return {text.size(), std::nullopt};
}

// Drops the ranges from the first one on that has a NUL, and the text from there on. Returns where
// the NUL is.
std::optional<std::uint64_t> stop_at_nul(std::string_view& text, LineRanges& ranges) {
    for (std::size_t index = 0; index < ranges.size(); ++index) {
        const std::size_t nul = text.find('\0', ranges[index].begin);
        if (nul == std::string_view::npos) {
            return std::nullopt;
        }
        if (nul < ranges[index].end) {
            text = text.substr(0, ranges[index].begin);
            ranges.resize(index);
            return nul;
        }
    }
    return std::nullopt;
}

// Where the piece that begins at `begin` ends.
std::size_t piece_end(std::string_view text, std::size_t begin, bool is_multi_line) {
    const bool is_whole = is_multi_line || text.size() - begin <= kPieceSize;
    return is_whole ? text.size() : line_at(text, begin + kPieceSize).next;
}

FileEncoding searched_encoding(std::string_view beginning, const SearchOptions& options) {
    return options.ignores_byte_order ? FileEncoding()
                                      : encoding_of_file(beginning, options.encoding.get());
}

}  // namespace

NulMeaning nul_meaning(const SearchOptions& options, bool is_named) {
    if (options.searches_binary) {
        return NulMeaning::none;
    }
    if (!is_named && !options.searches_after_nul) {
        return NulMeaning::ends_search;
    }
    // Text that ripgrep decodes is not in its memory as a whole.
    const bool is_whole = is_named && options.encoding == nullptr;
    return is_whole || options.is_multi_line ? NulMeaning::ends_output : NulMeaning::ends_line;
}

FileCounts search_file(const SearchOptions& options, NulMeaning meaning, MatchSession& session,
                       LineSink& sink, std::string_view path, std::string_view bytes,
                       ContentRecord* record) {
    std::string decoded;
    std::string_view text = bytes;
    const FileEncoding encoding = searched_encoding(bytes, options);
    text.remove_prefix(encoding.mark_size);
    if (encoding.encoding != nullptr) {
        TextDecoder decoder(*encoding.encoding);
        decoder.decode(text, decoded);
        decoder.finish(decoded);
        text = decoded;
    }
    TextEnd end{text.size(), std::nullopt};
    if (meaning != NulMeaning::none) {
        end = find_end(text, options.is_multi_line || meaning == NulMeaning::ends_output, options);
    }
    FileWalker walker(options, sink, path, meaning == NulMeaning::ends_output);
    if (record != nullptr) {
        walker.record(*record);
    }
    if (meaning == NulMeaning::ends_search) {
        text = text.substr(0, end.end);
    } else if (end.nul_offset) {
        walker.hide_from(end.end, *end.nul_offset);
        if (meaning == NulMeaning::ends_line) {
            decoded = text;
            std::replace(decoded.begin(), decoded.end(), '\0', '\n');
            text = decoded;
        }
    }
    const bool may_match = options.is_inverted || session.may_match(text);
    if (may_match) {
        session.prepare(text);
    }
    std::size_t searched = 0;
    do {
        const std::size_t begin = searched;
        searched = may_match ? piece_end(text, begin, options.is_multi_line) : text.size();
        LineRanges ranges;
        if (may_match) {
            try {
                find_ranges(session, options.is_multi_line, options.is_inverted, text, begin,
                            searched, walker.num_wanted(), ranges);
            } catch (const SearchError&) {
                const std::size_t end = ranges.empty() ? begin : ranges.back().end;
                walker.walk(text.substr(0, end), begin, 0, ranges, session, false);
                throw;
            }
        }
        if (options.is_multi_line && meaning == NulMeaning::ends_search && !end.nul_offset) {
            end.nul_offset = stop_at_nul(text, ranges);
            searched = text.size();
        }
        walker.walk(text.substr(0, searched), begin, 0, ranges, session, searched == text.size());
    } while (searched < text.size() && !walker.is_done());
    walker.finish(meaning == NulMeaning::ends_search ? end.nul_offset : std::nullopt);
    return walker.counts();
}

}  // namespace gompfs::search
