// Reads the payload of a head; see head_arrays.h.
//
// Every number is checked before it is used: counts against the limits of the format and the size
// of the stream, ranks against the number of symbols.
#include "text/head_arrays.h"

#include <algorithm>
#include <numeric>

#include "codec/payload.h"
#include "codec/sub_blocks.h"
#include "common/little_endian.h"

namespace gompfs {
namespace {

// Larger arrays are not kept for the next head, which is likely to be small again.
constexpr std::size_t kMaxKept = 1 << 18;

constexpr int kNumTokenArrays = 6;  // the first ones

}  // namespace

// The fixed fields of a head.
struct HeadArrays::Fields {
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

    // What follows the codes: the items of all arrays.
    Bytes stream_of(Bytes payload) const {
        return payload.first(payload.size() - kBitPadding)
            .subspan(kHeadHeaderSize + std::size_t{stored_size} + codes_size);
    }

    static Fields load_from(const std::uint8_t* bytes) {
        const auto u32 = [&](int offset) { return load<std::uint32_t>(bytes + offset); };
        const auto u16 = [&](int offset) { return load<std::uint16_t>(bytes + offset); };
        return {u32(0),  u32(4),  u32(8),  u32(12), u32(16),   u32(20),  u32(24),
                u32(28), u16(32), u16(34), u16(36), bytes[38], bytes[39]};
    }
};

void HeadArrays::forget_large_arrays() {
    const auto forget = [](auto& array) {
        if (array.capacity() > kMaxKept) {
            array = {};
        }
    };
    forget(token_bytes_);
    forget(classes_);
    forget(numbers_);
    forget(other_ranks_);
}

bool HeadArrays::read(Bytes payload, Extent extent) {
    if (payload.size() < kHeadHeaderSize + kBitPadding || payload.size() > kMaxHeadPayload) {
        return false;
    }
    const Fields fields = Fields::load_from(payload.data());
    if (!fields.are_valid(payload.size())) {
        return false;
    }
    forget_large_arrays();
    has_splitter = fields.has_splitter != 0;
    payload_ = payload;
    const Bytes body = payload.first(payload.size() - kBitPadding).subspan(kHeadHeaderSize);
    code_bits_.emplace(body.data() + fields.stored_size, fields.codes_size);
    const Bytes stream = fields.stream_of(payload);
    SubBlockBounds bounds;
    if (!read_token_bytes(body.first(fields.stored_size), fields.content_size) ||
        !read_levels(*code_bits_, fields.num_rules) ||
        !read_codes(*code_bits_, 0, extent == Extent::local_words ? 1 : kNumTokenArrays) ||
        !bounds.read(stream, fields.size_base, fields.size_width)) {
        return false;
    }
    positions_ = bounds.starts;
    ends_ = bounds.ends;
    return read_tokens(fields, items_of(stream), extent) && (extent != Extent::all || read_rest());
}

bool HeadArrays::read_rest() {
    const Fields fields = Fields::load_from(payload_.data());
    const ItemStream items = items_of(fields.stream_of(payload_));
    return read_codes(*code_bits_, kNumTokenArrays, kNumHeadArrays) &&
           code_bits_->num_bytes_used() == fields.codes_size && read_classes(fields, items) &&
           read_rules(fields, items) && positions_ == ends_;
}

ItemStream HeadArrays::items_of(Bytes stream) {
    return {stream.data(), static_cast<std::uint32_t>(stream.size() * 8), positions_.data()};
}

bool HeadArrays::read_token_bytes(Bytes stored, std::size_t content_size) {
    if (stored.size() == content_size) {
        token_bytes = stored;
        return true;
    }
    if (token_bytes_.size() < content_size) {
        token_bytes_.resize(content_size);
    }
    token_bytes = Bytes(token_bytes_).first(content_size);
    return decode_payload(Codec::gompresso_bit, stored,
                          MutableBytes(token_bytes_).first(content_size));
}

bool HeadArrays::read_levels(BitReader& in, std::uint32_t num_rules) {
    std::uint64_t num_rules_of_levels = 0;
    level_sizes.resize(in.take(kNumLevelsBits));
    for (std::uint32_t& size : level_sizes) {
        int num_bits = 0;
        while (in.take(1) != 0) {
            if (++num_bits > kMaxLevelSizeBits) {
                return false;
            }
        }
        size = std::uint32_t{1} << num_bits | in.take(num_bits);
        num_rules_of_levels += size;
    }
    return num_rules_of_levels == num_rules;
}

bool HeadArrays::read_codes(BitReader& in, int first, int end) {
    return std::all_of(codes_.begin() + first, codes_.begin() + end,
                       [&](ClassTable& code) { return code.read(in); });
}

bool HeadArrays::read_tokens(const Fields& fields, const ItemStream& stream, Extent extent) {
    const std::size_t num_words = fields.num_local_words + std::size_t{fields.num_global_words};
    const std::size_t num_separators =
        fields.num_local_separators + std::size_t{fields.num_global_separators};
    // An item takes at least one bit.
    const std::size_t num_numbers = num_words + num_separators + 2 * std::size_t{fields.num_rules};
    if (num_numbers > stream.num_bits) {
        return false;
    }
    num_taken_ = 0;
    if (numbers_.size() < num_numbers) {
        numbers_.resize(num_numbers);
    }
    const std::uint32_t num_frequent = fields.num_frequent, num_common = fields.num_common;
    const std::uint32_t word_arrays[] = {num_frequent, num_common,
                                         fields.num_global_words - num_frequent - num_common};
    if (!read_numbers(stream, 0, take_numbers(fields.num_local_words), prefixes)) {
        return false;
    }
    if (extent == Extent::local_words) {
        separator_sizes = global_words = global_separators = {};
        return true;
    }
    return read_numbers(stream, 1, take_numbers(fields.num_local_separators), separator_sizes) &&
           read_global_numbers(stream, 2, word_arrays, global_words) &&
           read_global_numbers(stream, 5, {&fields.num_global_separators, 1}, global_separators);
}

std::span<std::uint32_t> HeadArrays::take_numbers(std::size_t count) {
    num_taken_ += count;
    return std::span(numbers_).subspan(num_taken_ - count, count);
}

bool HeadArrays::read_numbers(const ItemStream& stream, int array, std::span<std::uint32_t> into,
                              std::span<const std::uint32_t>& numbers) {
    numbers = into;
    return into.empty() || (!codes_[array].is_empty && decode_numbers(stream, codes_[array], into));
}

// Reads numbers that are stored as differences, in one or more arrays.
bool HeadArrays::read_global_numbers(const ItemStream& stream, int first_array,
                                     std::span<const std::uint32_t> array_sizes,
                                     std::span<const std::uint32_t>& numbers) {
    const std::size_t count =
        std::accumulate(array_sizes.begin(), array_sizes.end(), std::size_t{0});
    const std::span<std::uint32_t> all = take_numbers(count);
    std::span<std::uint32_t> rest = all;
    for (std::size_t index = 0; index < array_sizes.size(); ++index) {
        if (!read_numbers(stream, first_array + static_cast<int>(index),
                          rest.first(array_sizes[index]), numbers)) {
            return false;
        }
        rest = rest.subspan(array_sizes[index]);
    }
    std::uint64_t next = 0;
    for (std::uint32_t& number : all) {
        next += number;
        number = static_cast<std::uint32_t>(next);
        ++next;
    }
    numbers = all;
    return next <= std::uint64_t{1} << 32;
}

bool HeadArrays::read_classes(const Fields& fields, const ItemStream& stream) {
    const std::size_t num_local = fields.num_local_words, num_global = fields.num_global_words;
    const std::size_t num_separators =
        fields.num_local_separators + std::size_t{fields.num_global_separators};
    const std::size_t first_separator = first_word() + num_local + num_global;
    const std::size_t first_rule = first_separator + num_separators;
    const std::size_t num_symbols = first_rule + fields.num_rules;
    if (classes_.size() < num_symbols) {
        classes_.resize(num_symbols);
    }
    const std::span<std::uint8_t> all = std::span(classes_).first(num_symbols);
    const auto read = [&](int array, std::span<std::uint8_t> into) {
        return into.empty() ||
               (!codes_[array].is_empty && decode_classes(stream, codes_[array], into));
    };
    if (!read(6, all.subspan(first_word(), num_local)) ||
        !read(7, all.subspan(first_word() + num_local, num_global))) {
        return false;
    }
    // Array 8 has the class of the splitter and then the classes of the separators. In `all`, the
    // classes of the words are between them.
    const std::size_t first_of_array = first_separator - first_word();
    const std::uint8_t word = all[first_of_array];
    if (!read(8, all.subspan(first_of_array, first_word() + num_separators)) ||
        !read(9, all.subspan(first_rule))) {
        return false;
    }
    if (has_splitter) {
        const std::uint8_t splitter = all[first_of_array];
        all[first_of_array] = word;
        all[0] = splitter;
    }
    classes = all;
    return true;
}

bool HeadArrays::read_rules(const Fields& fields, const ItemStream& stream) {
    const std::span<std::uint32_t> first = take_numbers(fields.num_rules);
    if (!read_numbers(stream, 10, take_numbers(fields.num_rules), rule_sizes) ||
        !read_numbers(stream, 11, first, first_ranks)) {
        return false;
    }
    std::size_t rule = 0;
    for (const std::uint32_t level_size : level_sizes) {
        std::uint64_t rank = 0;
        for (const std::size_t end = rule + level_size; rule != end; ++rule) {
            rank += first[rule];
            if (rank >= num_symbols()) {
                return false;
            }
            first[rule] = static_cast<std::uint32_t>(rank);
        }
    }
    const std::uint64_t num_others =
        std::accumulate(rule_sizes.begin(), rule_sizes.end(), std::uint64_t{rule_sizes.size()});
    if (num_others + rule_sizes.size() > kMaxPoolSize || num_others > stream.num_bits) {
        return false;
    }
    if (other_ranks_.size() < num_others) {
        other_ranks_.resize(num_others);
    }
    return read_numbers(stream, 12, std::span(other_ranks_).first(num_others), other_ranks) &&
           highest_of(other_ranks.data(), num_others) < num_symbols();
}

RankCounter::RankCounter() {
    for (int number_class = 0; number_class < kNumClasses; ++number_class) {
        next_[number_class] = class_base(number_class);
    }
}

// Every class but the last must be full.
bool RankCounter::is_complete(std::size_t num_symbols) const {
    for (int number_class = 0; number_class < kNumClasses; ++number_class) {
        const std::uint64_t base = class_base(number_class);
        const std::uint64_t end = base + (std::uint64_t{1} << class_extra_bits(number_class));
        const std::uint64_t expected = std::max(base, std::min<std::uint64_t>(end, num_symbols));
        if (next_[number_class] != expected) {
            return false;
        }
    }
    return true;
}

}  // namespace gompfs
