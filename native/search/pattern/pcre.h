// PCRE2's objects, which free themselves.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace gompfs::search {

template <auto Free>
struct FreeWith {
    template <typename Object>
    void operator()(Object* object) const {
        Free(object);
    }
};

using Code = std::unique_ptr<pcre2_code, FreeWith<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, FreeWith<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, FreeWith<pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, FreeWith<pcre2_compile_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, FreeWith<pcre2_jit_stack_free>>;

inline PCRE2_SPTR bytes_of(std::string_view text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());
}

inline std::string message_of(int error) {
    PCRE2_UCHAR text[256];
    return pcre2_get_error_message(error, text, sizeof text) < 0
               ? "error " + std::to_string(error)
               : reinterpret_cast<const char*>(text);
}

template <typename Object>
Object* require_memory(Object* object) {
    if (object == nullptr) {
        throw std::bad_alloc();
    }
    return object;
}

}  // namespace gompfs::search
