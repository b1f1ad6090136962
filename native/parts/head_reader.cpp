// Reads the payload of a head; see head.h.
//
// Every number is checked before it is used: counts against the limits of the format and the size
// of the payload, prefixes, ranks and rules against what was read before. A rule uses only symbols
// of lower levels, which have lower numbers, so rules cannot refer to each other in a circle.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "codec/payload.h"
#include "codec/sub_blocks.h"
#include "common/little_endian.h"
#include "parts/head.h"

namespace gompfs {
namespace {

// The fixed fields of a head.
struct Fields {
    std::uint32_t num_local_words, num_global_words, num_local_separators, num_global_separators;
    std::uint32_t num_rules;
    std::uint32_t content_size, stored_size;  // of the token bytes
    std::uint32_t size_base;
    std::uint16_t num_frequent, num_common;  // global words below kFrequentWords, kCommonWords
    std::uint16_t codes_size;
    std::uint8_t size_width, has_splitter;

    bool are_valid(std::size_t payload_size) const {
        const std::uint64_t counts[] = {num_local_words, num_global_words, num_local_separators,
                                        num_global_separators, num_rules};
        const std::uint64_t num_symbols =
            std::accumulate(std::begin(counts), std::end(counts), std::uint64_t{has_splitter});
        return num_symbols != 0 && num_symbols < kMaxPartSymbols && has_splitter <= 1 &&
               content_size <= kMaxPoolSize && stored_size <= content_size &&
               size_width <= kMaxSizeWidth && num_frequent + num_common <= num_global_words &&
               std::uint64_t{stored_size} + codes_size <=
                   payload_size - kHeadHeaderSize - kBitPadding;
    }
};

Fields load_fields(const std::uint8_t* bytes) {
    const auto u32 = [&](int offset) { return load<std::uint32_t>(bytes + offset); };
    const auto u16 = [&](int offset) { return load<std::uint16_t>(bytes + offset); };
    return {u32(0),  u32(4),  u32(8),  u32(12), u32(16),   u32(20),  u32(24),
            u32(28), u16(32), u16(34), u16(36), bytes[38], bytes[39]};
}

// The arrays of a head, which share 32 sub-blocks.
class Arrays {
  public:
    bool open(Bytes stream, std::uint32_t size_base, int size_width) {
        stream_ = stream.data();
        stream_bits_ = static_cast<std::uint32_t>(stream.size() * 8);
        if (!bounds_.read(stream, size_base, size_width)) {
            return false;
        }
        positions_ = bounds_.starts;
        return true;
    }

    // Calls take(index, entry, window) for each of `count` items, where window begins with the extra
    // bits. Returns false if the stream ends before.
    template <typename Take>
    bool read(const ClassTable& code, std::uint64_t count, Take&& take) {
        if (count == 0) {
            return true;
        }
        // An item takes at least one bit.
        if (code.is_empty || count > stream_bits_) {
            return false;
        }
        const std::uint64_t index_mask = (std::uint64_t{1} << code.index_bits) - 1;
        for (std::uint64_t index = 0; index < count; ++index) {
            std::uint32_t& position = positions_[index % kNumSubBlocks];
            const std::uint64_t window =
                load<std::uint64_t>(stream_ + (position >> 3)) >> (position & 7);
            const std::uint64_t entry = code.entries[window & index_mask];
            take(index, entry, window >> (entry & 63), position);
            if (position > stream_bits_) {
                return false;
            }
        }
        return true;
    }

    template <typename Take>
    bool read_numbers(const ClassTable& code, std::uint64_t count, Take&& take) {
        return read(code, count,
                    [&](std::uint64_t index, std::uint64_t entry, std::uint64_t window,
                        std::uint32_t& position) {
                        position += static_cast<std::uint32_t>(entry >> 16 & 255);
                        take(index, static_cast<std::uint32_t>(entry >> 32) +
                                        static_cast<std::uint32_t>(
                                            low_bits(window, entry >> 8 & 63)));
                    });
    }

    bool read_classes(const ClassTable& code, std::span<std::uint8_t> classes) {
        return read(code, classes.size(),
                    [&](std::uint64_t index, std::uint64_t entry, std::uint64_t,
                        std::uint32_t& position) {
                        position += static_cast<std::uint32_t>(entry & 255);
                        classes[index] = static_cast<std::uint8_t>(entry >> 24);
                    });
    }

    bool at_end() const { return positions_ == bounds_.ends; }

  private:
    const std::uint8_t* stream_ = nullptr;
    std::uint32_t stream_bits_ = 0;
    SubBlockBounds bounds_;
    std::array<std::uint32_t, kNumSubBlocks> positions_;
};

class HeadReader {
  public:
    bool read(Bytes payload);
    Head take() { return std::move(head_); }

  private:
    bool read_token_bytes(Bytes stored);
    bool read_codes(Bytes codes);
    bool read_tokens();
    bool read_local_words();
    bool read_local_separators();
    bool read_global_numbers(std::vector<std::uint32_t>& numbers);
    bool read_classes();
    bool set_ranks();
    bool read_rules();
    bool read_rule_symbols();

    Fields fields_;
    std::vector<std::uint8_t> token_bytes_;
    Bytes rest_of_tokens_;  // token bytes that no token has taken yet
    std::array<ClassTable, kNumHeadArrays> codes_;
    Arrays arrays_;
    Head head_;
};

bool HeadReader::read(Bytes payload) {
    if (payload.size() < kHeadHeaderSize + kBitPadding || payload.size() > kMaxHeadPayload) {
        return false;
    }
    fields_ = load_fields(payload.data());
    if (!fields_.are_valid(payload.size())) {
        return false;
    }
    head_.has_splitter = fields_.has_splitter != 0;
    const Bytes body = payload.first(payload.size() - kBitPadding).subspan(kHeadHeaderSize);
    const Bytes after_tokens = body.subspan(fields_.stored_size);
    return read_token_bytes(body.first(fields_.stored_size)) &&
           read_codes(after_tokens.first(fields_.codes_size)) &&
           arrays_.open(after_tokens.subspan(fields_.codes_size), fields_.size_base,
                        fields_.size_width) &&
           read_tokens() && read_classes() && set_ranks() && read_rules() && arrays_.at_end();
}

bool HeadReader::read_token_bytes(Bytes stored) {
    token_bytes_.resize(fields_.content_size);
    rest_of_tokens_ = token_bytes_;
    if (stored.size() == fields_.content_size) {
        std::copy(stored.begin(), stored.end(), token_bytes_.begin());
        return true;
    }
    return decode_payload(Codec::gompresso_bit, stored, token_bytes_);
}

bool HeadReader::read_codes(Bytes codes) {
    BitReader in(codes.data(), codes.size());
    std::uint64_t num_rules = 0;
    head_.level_sizes.resize(in.take(kNumLevelsBits));
    for (std::uint32_t& size : head_.level_sizes) {
        int num_bits = 0;
        while (in.take(1) != 0) {
            if (++num_bits > kMaxLevelSizeBits) {
                return false;
            }
        }
        size = std::uint32_t{1} << num_bits | in.take(num_bits);
        num_rules += size;
    }
    return num_rules == fields_.num_rules &&
           std::all_of(codes_.begin(), codes_.end(),
                       [&](ClassTable& code) { return code.read(in); }) &&
           in.num_bytes_used() == codes.size();
}

bool HeadReader::read_tokens() {
    return read_local_words() && read_local_separators() && rest_of_tokens_.empty() &&
           read_global_numbers(head_.global_words) && read_global_numbers(head_.global_separators);
}

bool HeadReader::read_local_words() {
    std::vector<std::uint32_t> prefixes(fields_.num_local_words);
    if (!arrays_.read_numbers(codes_[0], prefixes.size(), [&](std::uint64_t index, auto number) {
            prefixes[index] = number;
        })) {
        return false;
    }
    head_.local_words.reserve(prefixes.size(), 2 * token_bytes_.size());
    std::string word;
    std::uint64_t total = 0;
    for (const std::uint32_t prefix : prefixes) {
        if (rest_of_tokens_.empty()) {
            return false;
        }
        const void* const end = std::memchr(rest_of_tokens_.data(), ' ', rest_of_tokens_.size());
        if (end == nullptr || prefix > word.size()) {
            return false;
        }
        const auto size = static_cast<std::size_t>(static_cast<const std::uint8_t*>(end) -
                                                   rest_of_tokens_.data());
        word.resize(prefix);
        word.append(reinterpret_cast<const char*>(rest_of_tokens_.data()), size);
        total += word.size() + 1;
        if (word.empty() || word.size() >= kMaxExpansionSize || total > kMaxPoolSize) {
            return false;
        }
        head_.local_words.append(word);
        rest_of_tokens_ = rest_of_tokens_.subspan(size + 1);
    }
    return true;
}

bool HeadReader::read_local_separators() {
    bool fits = true;
    head_.local_separators.reserve(fields_.num_local_separators, rest_of_tokens_.size());
    return arrays_.read_numbers(
               codes_[1], fields_.num_local_separators,
               [&](std::uint64_t, std::uint32_t number) {
                   fits = fits && number < rest_of_tokens_.size() && number < kMaxExpansionSize;
                   if (fits) {
                       head_.local_separators.append(
                           {reinterpret_cast<const char*>(rest_of_tokens_.data()),
                            std::size_t{number} + 1});
                       rest_of_tokens_ = rest_of_tokens_.subspan(std::size_t{number} + 1);
                   }
               }) &&
           fits;
}

// Global words have three arrays, which writers use for ranges of numbers; separators have one.
bool HeadReader::read_global_numbers(std::vector<std::uint32_t>& numbers) {
    std::uint64_t next = 0;
    const auto read = [&](int array, std::uint32_t count) {
        return arrays_.read_numbers(codes_[array], count, [&](std::uint64_t, std::uint32_t gap) {
            next += gap;
            numbers.push_back(static_cast<std::uint32_t>(next));
            ++next;
        });
    };
    const bool are_words = &numbers == &head_.global_words;
    const std::uint32_t num_rest =
        fields_.num_global_words - fields_.num_frequent - fields_.num_common;
    const bool were_read = are_words ? read(2, fields_.num_frequent) &&
                                           read(3, fields_.num_common) && read(4, num_rest)
                                     : read(5, fields_.num_global_separators);
    return were_read && next <= std::uint64_t{1} << 32;
}

bool HeadReader::read_classes() {
    head_.classes.resize(head_.first_rule() + std::size_t{fields_.num_rules});
    const std::span<std::uint8_t> all(head_.classes);
    const auto words = all.subspan(head_.first_word());
    const auto num_local = head_.local_words.size(), num_words = head_.num_words();
    // The splitter and the separators share an array, though words are between them.
    std::vector<std::uint8_t> others(head_.first_word() + head_.num_separators());
    if (!arrays_.read_classes(codes_[6], words.first(num_local)) ||
        !arrays_.read_classes(codes_[7], words.subspan(num_local, num_words - num_local)) ||
        !arrays_.read_classes(codes_[8], others) ||
        !arrays_.read_classes(codes_[9], all.subspan(head_.first_rule()))) {
        return false;
    }
    const auto num_before = static_cast<std::ptrdiff_t>(head_.first_word());
    std::copy_n(others.begin(), num_before, all.begin());
    std::copy(others.begin() + num_before, others.end(), all.begin() + head_.first_separator());
    return true;
}

// Ranks follow from the classes. Every class but the last must be full.
bool HeadReader::set_ranks() {
    std::array<std::uint32_t, kNumClasses> counts{};
    for (const std::uint8_t number_class : head_.classes) {
        ++counts[number_class];
    }
    std::uint64_t num_ranked = 0;
    for (int number_class = 0; num_ranked < head_.classes.size(); ++number_class) {
        const std::uint64_t capacity = std::uint64_t{1} << class_extra_bits(number_class);
        const std::uint64_t expected = std::min(capacity, head_.classes.size() - num_ranked);
        if (counts[number_class] != expected) {
            return false;
        }
        num_ranked += expected;
    }
    std::array<std::uint32_t, kNumClasses> next;
    for (int number_class = 0; number_class < kNumClasses; ++number_class) {
        next[number_class] = class_base(number_class);
    }
    head_.symbols.resize(head_.classes.size());
    for (std::uint32_t symbol = 0; symbol < head_.classes.size(); ++symbol) {
        head_.symbols[next[head_.classes[symbol]]++] = symbol;
    }
    return true;
}

bool HeadReader::read_rules() {
    std::uint64_t num_symbols = 0;
    head_.rule_starts.reserve(fields_.num_rules + std::size_t{1});
    if (!arrays_.read_numbers(codes_[10], fields_.num_rules,
                              [&](std::uint64_t, std::uint32_t number) {
                                  num_symbols += std::uint64_t{number} + 2;
                                  head_.rule_starts.push_back(static_cast<std::uint32_t>(
                                      std::min<std::uint64_t>(num_symbols, kMaxPoolSize + 1)));
                              }) ||
        num_symbols > kMaxPoolSize) {
        return false;
    }
    head_.rule_symbols.resize(num_symbols);
    return read_rule_symbols();
}

bool HeadReader::read_rule_symbols() {
    const std::uint32_t first_rule = head_.num_symbols() - fields_.num_rules;
    // Per rule: the first rule of its level. A rule may use symbols before that only.
    std::vector<std::uint32_t> limits;
    std::vector<bool> begins_level(fields_.num_rules);
    limits.reserve(fields_.num_rules);
    for (const std::uint32_t size : head_.level_sizes) {
        begins_level[limits.size()] = true;
        limits.insert(limits.end(), size, first_rule + static_cast<std::uint32_t>(limits.size()));
    }
    const auto& starts = head_.rule_starts;
    bool valid = true;
    const auto set = [&](std::uint32_t index, std::uint64_t rank, std::uint32_t limit) {
        valid = valid && rank < head_.symbols.size();
        const std::uint32_t symbol = valid ? head_.symbols[rank] : 0;
        valid = valid && symbol >= head_.first_word() && symbol < limit;
        head_.rule_symbols[index] = symbol;
    };
    std::uint64_t first_rank = 0;
    if (!arrays_.read_numbers(codes_[11], fields_.num_rules,
                              [&](std::uint64_t rule, std::uint32_t gap) {
                                  first_rank = (begins_level[rule] ? 0 : first_rank) + gap;
                                  set(starts[rule], first_rank, limits[rule]);
                              })) {
        return false;
    }
    std::uint32_t rule = 0, index = 0;
    const std::uint64_t num_others = head_.rule_symbols.size() - fields_.num_rules;
    if (!arrays_.read_numbers(codes_[12], num_others, [&](std::uint64_t, std::uint32_t rank) {
            if (++index == starts[rule + 1]) {
                index = starts[++rule] + 1;
            }
            set(index, rank, limits[rule]);
        })) {
        return false;
    }
    head_.code = std::move(codes_[12]);
    return valid;
}

}  // namespace

std::optional<Head> read_head(Bytes payload) {
    HeadReader reader;
    if (!reader.read(payload)) {
        return std::nullopt;
    }
    return reader.take();
}

}  // namespace gompfs
