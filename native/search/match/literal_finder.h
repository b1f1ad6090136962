// Finds one literal in a text, with its case or without (for ASCII letters).
//
// Texts are compared many positions at a time, at the two bytes of the literal that are rarest in
// source code and prose. Only where both occur, the whole literal is compared.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gompfs::search {

class LiteralFinder {
  public:
    static constexpr std::size_t kNone = std::string_view::npos;

    // The literal must not be empty. Without case, it must be in lower case.
    LiteralFinder(std::string literal, bool is_caseless);

    // The first occurrence at `from` or later, or kNone.
    std::size_t find(std::string_view text, std::size_t from = 0) const;

    std::size_t size() const { return literal_.size(); }

  private:
    bool is_at(const char* text) const;

    std::string literal_;
    bool is_caseless_;
    std::size_t rare_[2];  // offsets in the literal
    char case_bits_[2];    // 0x20 where case does not matter, else 0
};

}  // namespace gompfs::search
