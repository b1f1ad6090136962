// Turns text of any encoding of the WHATWG standard into UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "search/files/encoding.h"

namespace gompfs::search {

// An encoding as --encoding names it. gompfs/search/encodings.py makes the tables and tells what
// their entries mean.
struct TextEncoding {
    enum class Kind { utf8, utf16_little, utf16_big, table, iso_2022_jp };

    Kind kind = Kind::utf8;
    std::vector<std::uint32_t> singles, pairs, triples, quads;

    // Throws std::invalid_argument if a table has a wrong size.
    void check() const;
};

// Replaces each longest part of a character that is not valid by U+FFFD.
class Utf8Decoder {
  public:
    void decode(std::string_view bytes, std::string& text);
    void finish(std::string& text);

  private:
    bool add(unsigned char byte, std::string& text);

    std::string character_;  // its bytes so far
    unsigned num_missing_ = 0;
    unsigned char least_ = 0x80, most_ = 0xbf;  // of the next byte
};

class TableDecoder {
  public:
    explicit TableDecoder(const TextEncoding& encoding) : encoding_(encoding) {}

    void decode(std::string_view bytes, std::string& text);
    void finish(std::string& text);

  private:
    void add(unsigned char byte, std::string& text);
    void add_third(std::string& text);
    void add_fourth(std::string& text);
    void fail(std::size_t num_used, std::string& text);
    void end_character(std::uint32_t entry, std::string& text);

    const TextEncoding& encoding_;
    unsigned char bytes_[4] = {};  // of a character that is not complete
    std::size_t num_bytes_ = 0;
};

// ISO-2022-JP: escape sequences tell which characters the bytes after them mean.
class Iso2022JpDecoder {
  public:
    explicit Iso2022JpDecoder(const TextEncoding& encoding) : encoding_(encoding) {}

    void decode(std::string_view bytes, std::string& text);
    void finish(std::string& text);

  private:
    enum class Set { ascii, roman, katakana, kanji };

    void add(unsigned char byte, std::string& text);
    void end_escape(unsigned char byte, std::string& text);
    void add_character(unsigned char byte, std::string& text);
    void fail(std::string& text);

    const TextEncoding& encoding_;
    Set set_ = Set::ascii;
    unsigned char lead_ = 0;         // of a character of two bytes
    bool is_in_escape_ = false;      // after the byte 0x1b
    unsigned char escape_ = 0;       // the byte after that one
    bool has_just_escaped_ = false;  // no character came after the last escape sequence
};

// Takes any number of bytes at a time. What is not valid becomes U+FFFD.
class TextDecoder {
  public:
    explicit TextDecoder(const TextEncoding& encoding);

    void decode(std::string_view bytes, std::string& text) {
        std::visit([&](auto& decoder) { decoder.decode(bytes, text); }, decoder_);
    }
    void finish(std::string& text) {
        std::visit([&](auto& decoder) { decoder.finish(text); }, decoder_);
    }

    // The most bytes of UTF-8 that one byte can become.
    static constexpr std::size_t kGrowth = 3;

  private:
    std::variant<Utf8Decoder, Utf16Decoder, TableDecoder, Iso2022JpDecoder> decoder_;
};

// How a file is decoded: the size of its byte order mark, and the encoding; nullptr if its bytes
// are searched as they are.
struct FileEncoding {
    std::size_t mark_size = 0;
    const TextEncoding* encoding = nullptr;
};

// `named` is the encoding of --encoding, or nullptr. As in ripgrep, a mark of UTF-16 counts more,
// and a mark of UTF-8 is only left out.
FileEncoding encoding_of_file(std::string_view beginning, const TextEncoding* named);

}  // namespace gompfs::search
