// Turns text into UTF-8; see text_decoder.h.
#include "search/files/text_decoder.h"

#include <stdexcept>

#include "common/utf8.h"

namespace gompfs::search {
namespace {

constexpr std::uint32_t kNone = 0, kLead = 0x200000;
constexpr unsigned kShiftOfFirst = 24;
constexpr unsigned char kEscape = 0x1b;
constexpr std::size_t kNumPairs = 1 << 16, kNumQuads = 39420;
constexpr std::uint32_t kFirstAstral = 189000, kEndAstral = kFirstAstral + 0x100000;

bool is_digit(unsigned char byte) { return byte >= '0' && byte <= '9'; }

void check_size(const std::vector<std::uint32_t>& table, std::size_t size) {
    if (!table.empty() && table.size() != size) {
        throw std::invalid_argument("a table of an encoding has a wrong size");
    }
}

}  // namespace

void TextEncoding::check() const {
    if (kind == Kind::table && (singles.empty() || (!quads.empty() && pairs.empty()))) {
        throw std::invalid_argument("an encoding has no tables");
    }
    if (kind == Kind::iso_2022_jp && pairs.empty()) {
        throw std::invalid_argument("an encoding has no tables");
    }
    check_size(singles, 256);
    check_size(pairs, kNumPairs);
    check_size(triples, kNumPairs);
    check_size(quads, kNumQuads);
}

void Utf8Decoder::decode(std::string_view bytes, std::string& text) {
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        if (value < 0x80 && num_missing_ == 0) {
            text.push_back(byte);
        } else if (!add(value, text)) {
            add(value, text);
        }
    }
}

void Utf8Decoder::finish(std::string& text) {
    if (num_missing_ != 0) {
        append_utf8(text, kReplacement);
    }
}

// Returns whether the byte was used. If not, the character before it was not complete.
bool Utf8Decoder::add(unsigned char byte, std::string& text) {
    if (num_missing_ != 0) {
        const bool continues = byte >= least_ && byte <= most_;
        least_ = 0x80;
        most_ = 0xbf;
        if (!continues) {
            num_missing_ = 0;
            append_utf8(text, kReplacement);
            return false;
        }
        character_.push_back(static_cast<char>(byte));
        if (--num_missing_ == 0) {
            text += character_;
        }
        return true;
    }
    if (byte < 0x80) {
        text.push_back(static_cast<char>(byte));
    } else if (byte < 0xc2 || byte > 0xf4) {
        append_utf8(text, kReplacement);
    } else {
        num_missing_ = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
        least_ = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
        most_ = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
        character_.assign(1, static_cast<char>(byte));
    }
    return true;
}

void TableDecoder::decode(std::string_view bytes, std::string& text) {
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        if (value < 0x80 && num_bytes_ == 0) {
            text.push_back(byte);
        } else {
            add(value, text);
        }
    }
}

void TableDecoder::finish(std::string& text) {
    if (num_bytes_ != 0) {
        append_utf8(text, kReplacement);
    }
}

void TableDecoder::add(unsigned char byte, std::string& text) {
    bytes_[num_bytes_++] = byte;
    if (num_bytes_ == 3) {
        add_third(text);
        return;
    }
    if (num_bytes_ == 4) {
        add_fourth(text);
        return;
    }
    if (num_bytes_ == 1 && byte < 0x80) {
        end_character(byte, text);
        return;
    }
    const std::uint32_t entry =
        num_bytes_ == 1 ? encoding_.singles[byte] : encoding_.pairs[bytes_[0] << 8 | byte];
    if (entry == kNone) {
        fail(num_bytes_ == 2 && byte < 0x80 ? 1 : num_bytes_, text);
    } else if (entry != kLead) {
        end_character(entry, text);
    }
}

void TableDecoder::add_third(std::string& text) {
    const unsigned char byte = bytes_[2];
    if (encoding_.triples.empty()) {
        if (byte < 0x81 || byte == 0xff) {
            fail(1, text);
        }
        return;
    }
    const std::uint32_t entry = encoding_.triples[bytes_[1] << 8 | byte];
    if (entry == kNone) {
        fail(byte < 0x80 ? 2 : 3, text);
    } else {
        end_character(entry, text);
    }
}

void TableDecoder::add_fourth(std::string& text) {
    if (!is_digit(bytes_[3])) {
        fail(1, text);
        return;
    }
    const std::uint32_t number = ((bytes_[0] - 0x81u) * 10 + (bytes_[1] - 0x30u)) * 1260 +
                                 (bytes_[2] - 0x81u) * 10 + (bytes_[3] - 0x30u);
    if (number < kNumQuads) {
        end_character(encoding_.quads[number], text);
    } else if (number >= kFirstAstral && number < kEndAstral) {
        end_character(0x10000 + number - kFirstAstral, text);
    } else {
        fail(4, text);
    }
}

// Replaces so many bytes, and reads the others again.
void TableDecoder::fail(std::size_t num_used, std::string& text) {
    append_utf8(text, kReplacement);
    unsigned char rest[4] = {};
    const std::size_t num_rest = num_bytes_ - num_used;
    for (std::size_t index = 0; index < num_rest; ++index) {
        rest[index] = bytes_[num_used + index];
    }
    num_bytes_ = 0;
    for (std::size_t index = 0; index < num_rest; ++index) {
        add(rest[index], text);
    }
}

void TableDecoder::end_character(std::uint32_t entry, std::string& text) {
    num_bytes_ = 0;
    if (entry > kMaxCodePoint) {
        append_utf8(text, entry >> kShiftOfFirst);
        entry &= (1u << kShiftOfFirst) - 1;
    }
    append_utf8(text, entry);
}

void Iso2022JpDecoder::decode(std::string_view bytes, std::string& text) {
    for (const char byte : bytes) {
        add(static_cast<unsigned char>(byte), text);
    }
}

void Iso2022JpDecoder::finish(std::string& text) {
    if (is_in_escape_ || lead_ != 0) {
        const unsigned char escape = escape_;
        fail(text);
        if (escape != 0) {
            add_character(escape, text);
            if (lead_ != 0) {
                fail(text);
            }
        }
    }
}

void Iso2022JpDecoder::add(unsigned char byte, std::string& text) {
    if (escape_ != 0) {
        end_escape(byte, text);
    } else if (is_in_escape_ && (byte == '$' || byte == '(')) {
        escape_ = byte;
    } else {
        if (is_in_escape_) {
            fail(text);
        }
        if (byte != kEscape) {
            add_character(byte, text);
            return;
        }
        if (lead_ != 0) {
            fail(text);
        }
        is_in_escape_ = true;
    }
}

void Iso2022JpDecoder::end_escape(unsigned char byte, std::string& text) {
    const unsigned char escape = escape_;
    if (escape == '$' && (byte == '@' || byte == 'B')) {
        set_ = Set::kanji;
    } else if (escape == '(' && (byte == 'B' || byte == 'I' || byte == 'J')) {
        set_ = byte == 'B' ? Set::ascii : byte == 'I' ? Set::katakana : Set::roman;
    } else {
        fail(text);
        add_character(escape, text);
        add(byte, text);
        return;
    }
    // Sequences without a character between them are not valid.
    if (has_just_escaped_) {
        append_utf8(text, kReplacement);
    }
    has_just_escaped_ = true;
    is_in_escape_ = false;
    escape_ = 0;
}

// The byte is not that of an escape sequence.
void Iso2022JpDecoder::add_character(unsigned char byte, std::string& text) {
    has_just_escaped_ = false;
    const bool is_graphic = byte > 0x20 && byte < 0x7f;
    if (lead_ != 0) {
        const std::uint32_t entry =
            is_graphic ? encoding_.pairs[(lead_ << 8 | byte) | 0x8080] : kNone;
        lead_ = 0;
        append_utf8(text, entry == kNone ? kReplacement : entry);
    } else if (set_ == Set::kanji && is_graphic) {
        lead_ = byte;
    } else if (set_ == Set::katakana && byte > 0x20 && byte < 0x60) {
        append_utf8(text, 0xff61 - 0x21 + byte);
    } else if (set_ == Set::kanji || set_ == Set::katakana || byte >= 0x80 || byte == 0x0e ||
               byte == 0x0f) {
        append_utf8(text, kReplacement);
    } else {
        const bool is_roman = set_ == Set::roman;
        append_utf8(text, is_roman && byte == 0x5c   ? 0xa5
                          : is_roman && byte == 0x7e ? 0x203e
                                                     : char32_t{byte});
    }
}

// Replaces what is not complete.
void Iso2022JpDecoder::fail(std::string& text) {
    append_utf8(text, kReplacement);
    has_just_escaped_ = false;
    is_in_escape_ = false;
    escape_ = 0;
    lead_ = 0;
}

TextDecoder::TextDecoder(const TextEncoding& encoding) {
    if (encoding.kind == TextEncoding::Kind::table) {
        decoder_.emplace<TableDecoder>(encoding);
    } else if (encoding.kind == TextEncoding::Kind::iso_2022_jp) {
        decoder_.emplace<Iso2022JpDecoder>(encoding);
    } else if (encoding.kind != TextEncoding::Kind::utf8) {
        decoder_.emplace<Utf16Decoder>(encoding.kind == TextEncoding::Kind::utf16_big);
    }
}

FileEncoding encoding_of_file(std::string_view beginning, const TextEncoding* named) {
    static const TextEncoding kLittle{TextEncoding::Kind::utf16_little, {}, {}, {}, {}};
    static const TextEncoding kBig{TextEncoding::Kind::utf16_big, {}, {}, {}, {}};
    switch (encoding_of(beginning)) {
        case Encoding::utf8_mark:
            return {kMaxMark, named};
        case Encoding::utf16_little:
            return {2, &kLittle};
        case Encoding::utf16_big:
            return {2, &kBig};
        case Encoding::plain:
            break;
    }
    return {0, named};
}

}  // namespace gompfs::search
