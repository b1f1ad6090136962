// Builds the symbols and rules of a part from the arrays of its head; see head.h.
//
// A rule uses only symbols of lower levels, which have lower numbers, so rules cannot refer to each
// other in a circle.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "text/head.h"
#include "text/head_arrays.h"
#include "text/word_expander.h"

namespace gompfs {
namespace {

class HeadReader {
  public:
    bool read(const HeadArrays& arrays);
    Head take() { return std::move(head_); }

  private:
    bool read_local_words(const HeadArrays& arrays, Bytes& rest);
    bool read_local_separators(const HeadArrays& arrays, Bytes rest);
    bool set_ranks(const HeadArrays& arrays);
    bool read_rules(const HeadArrays& arrays);

    Head head_;
};

bool HeadReader::read(const HeadArrays& arrays) {
    Bytes rest = arrays.token_bytes;
    head_.has_splitter = arrays.has_splitter;
    head_.global_words.assign(arrays.global_words.begin(), arrays.global_words.end());
    head_.global_separators.assign(arrays.global_separators.begin(),
                                   arrays.global_separators.end());
    head_.level_sizes = arrays.level_sizes;
    head_.classes.assign(arrays.classes.begin(), arrays.classes.end());
    head_.code = arrays.rank_code();
    return read_local_words(arrays, rest) && read_local_separators(arrays, rest) &&
           set_ranks(arrays) && read_rules(arrays);
}

bool HeadReader::read_local_words(const HeadArrays& arrays, Bytes& rest) {
    const auto& prefixes = arrays.prefixes;
    const std::uint64_t total =
        std::accumulate(prefixes.begin(), prefixes.end(), std::uint64_t{arrays.token_bytes.size()});
    std::vector<std::uint8_t> bytes(std::min<std::uint64_t>(total, kMaxPoolSize) +
                                    WordExpander::kMargin);
    head_.local_words.reserve(prefixes.size(), bytes.size());
    WordExpander expander(rest);
    std::size_t at = 0;
    for (const std::uint32_t prefix : prefixes) {
        const std::size_t size = expander.expand(prefix, &bytes[at], kMaxPoolSize - at);
        if (size == 0) {
            return false;
        }
        head_.local_words.append({reinterpret_cast<const char*>(&bytes[at]), size - 1});
        at += size;
    }
    rest = expander.rest();
    return true;
}

bool HeadReader::read_local_separators(const HeadArrays& arrays, Bytes rest) {
    head_.local_separators.reserve(arrays.separator_sizes.size(), rest.size());
    for (const std::uint32_t number : arrays.separator_sizes) {
        const std::size_t size = std::size_t{number} + 1;
        if (size > rest.size() || size > kMaxExpansionSize) {
            return false;
        }
        head_.local_separators.append({reinterpret_cast<const char*>(rest.data()), size});
        rest = rest.subspan(size);
    }
    return rest.empty();
}

bool HeadReader::set_ranks(const HeadArrays& arrays) {
    const std::size_t num_symbols = arrays.num_symbols();
    RankCounter ranks;
    head_.symbols.resize(num_symbols);
    for (std::uint32_t symbol = 0; symbol < num_symbols; ++symbol) {
        const std::uint32_t rank = ranks.next(arrays.classes[symbol]);
        if (rank >= num_symbols) {
            return false;
        }
        head_.symbols[rank] = symbol;
    }
    return ranks.is_complete(num_symbols);
}

bool HeadReader::read_rules(const HeadArrays& arrays) {
    const std::size_t num_rules = arrays.rule_sizes.size();
    const auto first_rule = static_cast<std::uint32_t>(arrays.num_symbols() - num_rules);
    head_.rule_symbols.reserve(arrays.other_ranks.size() + num_rules);
    head_.rule_starts.reserve(num_rules + 1);
    std::size_t rule = 0, other = 0;
    for (const std::uint32_t level_size : arrays.level_sizes) {
        const std::uint32_t limit = first_rule + static_cast<std::uint32_t>(rule);
        const auto add = [&](std::uint32_t rank) {
            const std::uint32_t symbol = head_.symbols[rank];
            head_.rule_symbols.push_back(symbol);
            return symbol >= head_.first_word() && symbol < limit;
        };
        for (const std::size_t end = rule + level_size; rule != end; ++rule) {
            bool valid = add(arrays.first_ranks[rule]);
            for (std::uint32_t index = 0; index <= arrays.rule_sizes[rule]; ++index) {
                valid = add(arrays.other_ranks[other++]) && valid;
            }
            if (!valid) {
                return false;
            }
            head_.rule_starts.push_back(static_cast<std::uint32_t>(head_.rule_symbols.size()));
        }
    }
    return true;
}

}  // namespace

std::optional<Head> read_head(Bytes payload) {
    thread_local const auto arrays = std::make_unique<HeadArrays>();
    HeadReader reader;
    if (!arrays->read(payload) || !reader.read(*arrays)) {
        return std::nullopt;
    }
    return reader.take();
}

}  // namespace gompfs
