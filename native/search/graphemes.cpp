// Finds grapheme clusters with PCRE2; see graphemes.h.
#include "search/graphemes.h"

#include <algorithm>
#include <string>

#include "common/utf8.h"
#include "search/pcre.h"

namespace gompfs::search {
namespace {

Code compile_grapheme() {
    int error = 0;
    PCRE2_SIZE offset = 0;
    constexpr std::uint32_t kFlags = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_ANCHORED;
    Code code(pcre2_compile(bytes_of("\\X"), 2, kFlags, &error, &offset, nullptr));
    return Code(require_memory(code.release()));
}

// How many bytes at the beginning of a text that is not UTF-8 are one error: the longest part that
// could begin a character, or one byte.
std::size_t size_of_error(std::string_view text) {
    for (std::size_t size = std::min<std::size_t>(text.size(), 3); size > 1; --size) {
        const std::string begun(text.substr(0, size));
        if (decode_utf8(begun + "\x80\x80").size > size) {
            return size;
        }
    }
    return 1;
}

}  // namespace

std::size_t end_of_graphemes(std::string_view text, std::uint64_t count) {
    static const Code grapheme = compile_grapheme();
    const MatchData data(require_memory(pcre2_match_data_create(1, nullptr)));
    // A cluster of more bytes is cut, so that the time is linear.
    constexpr std::size_t kMost = 1024;
    std::size_t at = 0;
    for (; count != 0 && at < text.size(); --count) {
        const std::string_view rest = text.substr(at, kMost);
        if (decode_utf8(rest).size == 0) {
            at += size_of_error(rest);
            continue;
        }
        const int result =
            pcre2_match(grapheme.get(), bytes_of(rest), rest.size(), 0, 0, data.get(), nullptr);
        at += result > 0 ? std::max<std::size_t>(pcre2_get_ovector_pointer(data.get())[1], 1) : 1;
    }
    return at;
}

}  // namespace gompfs::search
