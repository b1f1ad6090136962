// Compiles the text of a pattern; see compiled_pattern.h.
#include "search/match/compiled_pattern.h"

#include <utility>

#include "search/pattern/pattern_syntax.h"

namespace gompfs::search {
namespace {

std::uint32_t flags_of(const PcreText& text, bool is_utf8, bool has_groups) {
    if (text.is_pcre) {
        return PCRE2_USE_OFFSET_LIMIT | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
               (is_utf8 ? PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_UCP : 0) |
               (text.is_caseless ? PCRE2_CASELESS : 0);
    }
    std::uint32_t flags = PCRE2_USE_OFFSET_LIMIT | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    flags |= has_groups ? 0 : PCRE2_NO_AUTO_CAPTURE;
    // A dot does not match bytes that are not UTF-8, so .* may begin after such a byte.
    flags |= is_utf8 ? PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NO_DOTSTAR_ANCHOR : 0;
    flags |= text.is_caseless ? PCRE2_CASELESS : 0;
    return flags;
}

}  // namespace

CompiledPattern::CompiledPattern(PcreText text, bool is_utf8, bool has_groups, bool is_crlf)
    : text_(std::move(text)), flags_(flags_of(text_, is_utf8, has_groups)), is_crlf_(is_crlf) {
    int error = 0;
    code_ = compile(flags_, error);
    if (!code_) {
        throw PatternError("the pattern cannot be used: " + message_of(error));
    }
}

std::vector<std::string> CompiledPattern::group_names() const {
    std::uint32_t num_groups = 0, num_names = 0, entry_size = 0;
    PCRE2_SPTR table = nullptr;
    pcre2_pattern_info(code_.get(), PCRE2_INFO_CAPTURECOUNT, &num_groups);
    pcre2_pattern_info(code_.get(), PCRE2_INFO_NAMECOUNT, &num_names);
    pcre2_pattern_info(code_.get(), PCRE2_INFO_NAMEENTRYSIZE, &entry_size);
    pcre2_pattern_info(code_.get(), PCRE2_INFO_NAMETABLE, &table);
    std::vector<std::string> names(num_groups);
    for (std::uint32_t index = 0; index < num_names; ++index, table += entry_size) {
        names.at((table[0] << 8 | table[1]) - 1) = reinterpret_cast<const char*>(table + 2);
    }
    return names;
}

const pcre2_code* CompiledPattern::code_with_callouts() const {
    std::call_once(has_callouts_, [&] {
        int error = 0;
        code_with_callouts_ = compile(flags_ | PCRE2_AUTO_CALLOUT, error);
    });
    return code_with_callouts_.get();
}

Code CompiledPattern::compile(std::uint32_t flags, int& error) const {
    const CompileContext context(require_memory(pcre2_compile_context_create(nullptr)));
    pcre2_set_newline(context.get(), is_crlf_ ? PCRE2_NEWLINE_ANYCRLF : PCRE2_NEWLINE_LF);
    PCRE2_SIZE offset = 0;
    Code code(pcre2_compile(bytes_of(text_.pattern), text_.pattern.size(), flags, &error, &offset,
                            context.get()));
    if (code) {
        pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without it, it is only slower
    }
    return code;
}

}  // namespace gompfs::search
