// Writes and reads the grammar of a part as numbers of variable length; see stored_grammar.h.
#include "text/stored_grammar.h"

#include <string_view>

#include "text/numbers.h"

namespace gompfs {
namespace {

// The splitter gets a small number.
std::uint64_t code_of(Symbol symbol) { return symbol == kSplitter ? 0 : std::uint64_t{symbol} + 1; }

Symbol symbol_of(std::uint64_t code) {
    return code == 0 ? kSplitter : static_cast<Symbol>(code - 1);
}

}  // namespace

std::vector<std::uint8_t> store_grammar(const PartGrammar& part) {
    std::vector<std::uint8_t> bytes;
    append_number(bytes, part.text_size);
    append_number(bytes, part.tokens.size());
    for (std::uint32_t token = 0; token < part.tokens.size(); ++token) {
        const std::string_view text = part.tokens[token];
        append_number(bytes, 2 * text.size() + part.are_words[token]);
        bytes.insert(bytes.end(), text.begin(), text.end());
    }
    append_number(bytes, part.rules.size());
    for (std::uint32_t rule = 0; rule < part.rules.size(); ++rule) {
        append_number(bytes, part.rules.starts[rule + 1] - part.rules.starts[rule]);
    }
    for (const Symbol symbol : part.rules.symbols) {
        append_number(bytes, code_of(symbol));
    }
    append_number(bytes, part.block_xxh3.size());
    for (const std::uint64_t checksum : part.block_xxh3) {
        append_number(bytes, checksum & 0xffffffff);
        append_number(bytes, checksum >> 32);
    }
    return bytes;
}

PartGrammar load_grammar(std::span<const std::uint8_t> bytes) {
    const std::uint8_t* next = bytes.data();
    PartGrammar part;
    part.text_size = static_cast<std::uint32_t>(read_number(next));
    const std::uint64_t num_tokens = read_number(next);
    part.tokens.reserve(num_tokens, bytes.size());
    part.are_words.reserve(num_tokens);
    for (std::uint64_t token = 0; token < num_tokens; ++token) {
        const std::uint64_t size = read_number(next);
        part.tokens.append({reinterpret_cast<const char*>(next), size / 2});
        part.are_words.push_back(size % 2);
        next += size / 2;
    }
    const std::uint64_t num_rules = read_number(next);
    part.rules.starts.push_back(0);
    for (std::uint64_t rule = 0; rule < num_rules; ++rule) {
        part.rules.starts.push_back(part.rules.starts.back() + read_number(next));
    }
    part.rules.symbols.reserve(part.rules.starts.back());
    for (std::uint64_t index = 0; index < part.rules.starts.back(); ++index) {
        part.rules.symbols.push_back(symbol_of(read_number(next)));
    }
    const std::uint64_t num_blocks = read_number(next);
    for (std::uint64_t block = 0; block < num_blocks; ++block) {
        const std::uint64_t low = read_number(next);
        part.block_xxh3.push_back(low | read_number(next) << 32);
    }
    return part;
}

}  // namespace gompfs
