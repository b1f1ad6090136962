// Builds tables for the kernels that search; see scan_table.h.
#include "search/gpu/scan_table.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "search/gpu/byte_automaton.h"
#include "search/match/byte_frequency.h"
#include "shared/search_tables.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxWindow = 4;
constexpr std::size_t kBitmapStart = 16;  // of the shared memory, as in kernels/search
constexpr unsigned kFewestBits = 15, kMostBits = 19;
constexpr std::size_t kBitsOfLiteral = 64;
constexpr std::size_t kMaxSharedAutomaton = 48
                                            << 10;  // so that several CTAs fit on a multiprocessor
constexpr std::uint32_t kCaseBits = 0x20202020;
// Where neither the literals nor an automaton are exact, shorter literals are in nearly every
// block.
constexpr std::size_t kShortestRequired = 3;

template <typename Value>
void append(std::vector<std::uint8_t>& bytes, std::span<const Value> values) {
    const auto* const data = reinterpret_cast<const std::uint8_t*>(values.data());
    bytes.insert(bytes.end(), data, data + values.size_bytes());
    bytes.resize((bytes.size() + 3) / 4 * 4);  // the kernels read words
}

class LiteralTableBuilder {
  public:
    LiteralTableBuilder(const LiteralSet& set, std::size_t max_shared_bytes);

    std::vector<std::uint8_t> table() const;
    std::size_t shared_bytes() const { return kBitmapStart + bitmap_.size() * sizeof bitmap_[0]; }

  private:
    std::size_t rarest_window(std::string_view literal) const;
    std::uint32_t window_at(std::string_view literal, std::size_t offset) const;
    void add(std::string_view literal);
    void add_to_slots(std::uint32_t window, std::uint32_t literal);
    void set_bit(std::uint32_t hash) {
        const std::uint32_t bit = hash >> (32 - header_.bitmap_log2);
        bitmap_[bit / 32] |= 1u << bit % 32;
    }

    LiteralTable header_{};
    std::vector<std::uint32_t> bitmap_;
    std::vector<LiteralSlot> slots_;
    std::vector<TableLiteral> literals_;
    std::vector<std::uint8_t> pool_;
};

LiteralTableBuilder::LiteralTableBuilder(const LiteralSet& set, std::size_t max_shared_bytes) {
    const std::size_t count = set.literals.size();
    header_.window_size = static_cast<unsigned>(std::min(set.shortest(), kMaxWindow));
    const unsigned all_bytes = header_.window_size == 4 ? ~0u : (1u << 8 * header_.window_size) - 1;
    header_.case_bits = set.is_caseless ? kCaseBits & all_bytes : 0;
    const std::size_t most_bits = (max_shared_bytes - kBitmapStart) * 8;
    header_.bitmap_log2 = kFewestBits;
    while (header_.bitmap_log2 < kMostBits &&
           std::size_t{1} << header_.bitmap_log2 < count * kBitsOfLiteral &&
           std::size_t{2} << header_.bitmap_log2 <= most_bits) {
        ++header_.bitmap_log2;
    }
    header_.slots_log2 = 4;
    while (std::size_t{1} << header_.slots_log2 < 2 * count) {
        ++header_.slots_log2;
    }
    bitmap_.resize((std::size_t{1} << header_.bitmap_log2) / 32);
    slots_.resize(std::size_t{1} << header_.slots_log2);
    for (const std::string& literal : set.literals) {
        add(literal);
    }
}

std::uint32_t LiteralTableBuilder::window_at(std::string_view literal, std::size_t offset) const {
    std::uint32_t window = 0;
    std::memcpy(&window, literal.data() + offset, header_.window_size);
    return window | header_.case_bits;
}

std::size_t LiteralTableBuilder::rarest_window(std::string_view literal) const {
    std::size_t best = 0, lowest = ~std::size_t{0};
    for (std::size_t offset = 0; offset + header_.window_size <= literal.size(); ++offset) {
        std::size_t frequency = 1;
        for (std::size_t index = 0; index < header_.window_size; ++index) {
            frequency *= frequency_of(literal[offset + index]) + 1;
        }
        if (frequency < lowest) {
            lowest = frequency;
            best = offset;
        }
    }
    return best;
}

void LiteralTableBuilder::add(std::string_view literal) {
    const std::size_t offset = rarest_window(literal);
    const std::uint32_t window = window_at(literal, offset);
    set_bit(window_hash(window));
    set_bit(other_window_hash(window));
    literals_.push_back({static_cast<unsigned>(pool_.size()), static_cast<unsigned>(literal.size()),
                         static_cast<unsigned>(offset), 0});
    pool_.insert(pool_.end(), literal.begin(), literal.end());
    add_to_slots(window, static_cast<std::uint32_t>(literals_.size()));
}

void LiteralTableBuilder::add_to_slots(std::uint32_t window, std::uint32_t literal) {
    const std::uint32_t mask = (1u << header_.slots_log2) - 1;
    std::uint32_t slot = window_hash(window) >> (32 - header_.slots_log2);
    while (slots_[slot].first != 0 && slots_[slot].window != window) {
        slot = (slot + 1) & mask;
    }
    literals_.back().next = slots_[slot].first;
    slots_[slot] = {window, literal};
}

std::vector<std::uint8_t> LiteralTableBuilder::table() const {
    std::vector<std::uint8_t> bytes(sizeof header_);
    LiteralTable header = header_;
    const auto append_array = [&](unsigned& offset, const auto& values) {
        offset = static_cast<unsigned>(bytes.size());
        append(bytes, std::span(values));
    };
    append_array(header.bitmap, bitmap_);
    append_array(header.slots, slots_);
    append_array(header.literals, literals_);
    append_array(header.pool, pool_);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

ScanTable table_of_literals(const LiteralSet& set, std::size_t max_shared_bytes) {
    const LiteralTableBuilder builder(set, max_shared_bytes);
    return {ScanTable::Kind::literals, builder.table(), builder.shared_bytes(),
            set.has_unicode_case()};
}

ScanTable table_of_automaton(const ByteAutomaton& automaton, std::size_t max_shared_bytes) {
    AutomatonTable header{automaton.num_states, automaton.num_classes, {}};
    std::copy(automaton.classes.begin(), automaton.classes.end(), header.classes);
    std::vector<std::uint8_t> bytes;
    append(bytes, std::span<const AutomatonTable>(&header, 1));
    append(bytes, std::span(automaton.transitions));
    const bool is_shared = bytes.size() <= std::min(max_shared_bytes, kMaxSharedAutomaton);
    const std::size_t shared_bytes = is_shared ? bytes.size() : 0;
    return {ScanTable::Kind::automaton, std::move(bytes), shared_bytes, false};
}

}  // namespace

ScanTable make_scan_table(const Node& pattern, const RequiredLiterals& required, bool is_multi_line,
                          std::size_t max_shared_bytes) {
    const LiteralSet* const literals = required.best();
    if (required.is_exact) {
        return table_of_literals(*literals, max_shared_bytes);
    }
    if (!is_multi_line) {
        if (const std::optional<ByteAutomaton> automaton = make_byte_automaton(pattern)) {
            return table_of_automaton(*automaton, max_shared_bytes);
        }
    }
    if (literals != nullptr && literals->shortest() >= kShortestRequired) {
        return table_of_literals(*literals, max_shared_bytes);
    }
    return {};
}

}  // namespace gompfs::search
