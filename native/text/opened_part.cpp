// Opens parts for statistics; see opened_part.h.
#include "text/opened_part.h"

#include <stdexcept>
#include <utility>

#include "codec/block.h"
#include "text/token_check.h"

namespace gompfs {
namespace {

Bytes checked_payload(Bytes block, Codec codec) {
    const std::optional<BlockHeader> header = parse_block_header(block);
    if (!header || header->codec != codec || check_block(*header, block) != BlockStatus::ok) {
        fail_part();
    }
    return block.subspan(kBlockHeaderSize);
}

Head open_head(Bytes block) {
    std::optional<Head> head = read_head(checked_payload(block, Codec::head));
    if (!head) {
        fail_part();
    }
    return std::move(*head);
}

// The expansions of all symbols of a head, without their bytes.
std::vector<Expansion> expansions_of(const Head& head, const WordSection& words) {
    std::vector<Expansion> expansions;
    expansions.reserve(head.num_symbols());
    const auto add = [&](std::size_t size, bool is_word) {
        expansions.emplace_back(0, static_cast<std::uint32_t>(size), !is_word, is_word);
    };
    const auto add_tokens = [&](const TokenList& local, const TokenList& global,
                                const std::vector<std::uint32_t>& numbers, bool are_words) {
        for (std::uint32_t index = 0; index < local.size(); ++index) {
            add(local[index].size() + are_words, are_words);
        }
        for (const std::uint32_t number : numbers) {
            if (number >= global.size() || global.stored(number).size() > kMaxExpansionSize) {
                fail_part();
            }
            add(global.stored(number).size(), are_words);
        }
    };
    if (head.has_splitter) {
        expansions.emplace_back(0, 0, true, false);
    }
    add_tokens(head.local_words, words.words(), head.global_words, true);
    add_tokens(head.local_separators, words.separators(), head.global_separators, false);
    for (std::uint32_t rule = 0; rule < head.num_rules(); ++rule) {
        std::uint64_t size = 0;
        Expansion before;
        const Expansion first = expansions[head.rule_symbols[head.rule_starts[rule]]];
        for (auto index = head.rule_starts[rule]; index < head.rule_starts[rule + 1]; ++index) {
            const Expansion symbol = expansions[head.rule_symbols[index]];
            size += symbol.size() - std::uint64_t{symbol.takes_space_of(before)};
            before = symbol;
        }
        if (size > kMaxExpansionSize) {
            fail_part();
        }
        expansions.emplace_back(0, static_cast<std::uint32_t>(size), first.begins_with_separator(),
                                before.ends_with_word());
    }
    return expansions;
}

void check_pool_size(const std::vector<Expansion>& expansions, Bytes head) {
    std::uint64_t size = 0;
    for (const Expansion expansion : expansions) {
        size += expansion.size();
    }
    if (size != parse_block_header(head)->uncompressed_size) {
        fail_part();
    }
}

}  // namespace

void fail_part() { throw std::invalid_argument("a part of its text is damaged"); }

void read_tokens(Bytes head, HeadTokens& tokens) {
    const Bytes payload = checked_payload(head, Codec::head);
    if (!tokens.read(payload, parse_block_header(head)->uncompressed_size)) {
        fail_part();
    }
}

OpenedPart::OpenedPart(const StoredPart& part, const WordSection& section,
                       const Tokenizer& tokenizer)
    : head(open_head(part.head)),
      part_(part),
      are_separators_apart_(tokenizer.rule() == WordRule::letters),
      expansions_(expansions_of(head, section)) {
    check_pool_size(expansions_, part.head);
    check_tokens(head, tokenizer);
    if (are_separators_apart_) {
        check_separators_in_rules();
    }
    table_.code = head.code;
    table_.expansions.resize(expansions_.size());
    for (std::size_t rank = 0; rank < expansions_.size(); ++rank) {
        table_.expansions[rank] = expansions_[head.symbols[rank]];
    }
}

void OpenedPart::check_separators_in_rules() const {
    for (std::uint32_t rule = 0; rule < head.num_rules(); ++rule) {
        for (auto at = head.rule_starts[rule] + 1; at < head.rule_starts[rule + 1]; ++at) {
            if (is_adjacent_separator(expansions_[head.rule_symbols[at - 1]],
                                      expansions_[head.rule_symbols[at]])) {
                fail_part();
            }
        }
    }
}

// The ranks of a block: at least one.
void OpenedPart::read_ranks(std::size_t block, TadocRanks& ranks) const {
    const Bytes payload = checked_payload(part_.blocks[block], Codec::gompresso_tadoc);
    if (!ranks.read(payload, table_.code, table_.expansions.size(), payload.size() * 8)) {
        fail_part();
    }
}

}  // namespace gompfs
