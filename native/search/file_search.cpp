// Searches one file; see file_search.h.
#include "search/file_search.h"

#include <algorithm>

namespace gompfs::search {
namespace {

// What is searched before lines are passed on: their ranges may take 16 times as much memory.
constexpr std::size_t kPieceSize = 256 << 10;

// Where the search of a whole text ends, because of a NUL.
struct TextEnd {
    std::size_t end;
    std::optional<std::uint64_t> nul_offset;
};

TextEnd find_end(std::string_view text, NulMeaning meaning) {
    const std::size_t nul = meaning == NulMeaning::none ? text.npos : text.find('\0');
    if (nul == text.npos) {
        return {text.size(), std::nullopt};
    }
    if (nul < kLookedAtForNul) {
        return {0, nul};
    }
    // What was named is looked at for a NUL in the lines that are printed.
    return meaning == NulMeaning::ends_search ? TextEnd{line_at(text, nul).begin, nul}
                                              : TextEnd{text.size(), std::nullopt};
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
    return options.text ? NulMeaning::none
           : is_named   ? NulMeaning::ends_output
                        : NulMeaning::ends_search;
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
    const TextEnd end = find_end(text, meaning);
    FileWalker walker(options, sink, path, meaning == NulMeaning::ends_output);
    if (record != nullptr) {
        walker.record(*record);
    }
    if (meaning == NulMeaning::ends_search) {
        text = text.substr(0, end.end);
    } else if (end.nul_offset) {
        walker.hide_from(end.end, *end.nul_offset);
    }
    const bool may_match = options.invert_match || session.may_match(text);
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
                find_ranges(session, options.is_multi_line, options.invert_match, text, begin,
                            searched, walker.num_wanted(), ranges);
            } catch (const SearchError&) {
                const std::size_t found = ranges.empty() ? begin : ranges.back().end;
                walker.walk(text.substr(0, found), begin, 0, ranges, session, false);
                throw;
            }
        }
        walker.walk(text.substr(0, searched), begin, 0, ranges, session, searched == text.size());
    } while (searched < text.size() && !walker.is_done());
    walker.finish(meaning == NulMeaning::ends_search ? end.nul_offset : std::nullopt);
    return walker.counts();
}

}  // namespace gompfs::search
