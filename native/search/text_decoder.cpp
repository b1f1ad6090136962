// Turns text into UTF-8; see text_decoder.h.
#include "search/text_decoder.h"

#include <stdexcept>

#include "common/utf8.h"

namespace gompfs::search {
namespace {

constexpr std::uint32_t kNone = 0, kLead = 0x200000;
constexpr unsigned kShiftOfFirst = 24;
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

TextDecoder::TextDecoder(const TextEncoding& encoding) {
    if (encoding.kind == TextEncoding::Kind::table) {
        decoder_.emplace<TableDecoder>(encoding);
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
