// Decodes gompresso-tadoc that may be damaged, and prints what came out of it. Built with
// sanitizers: each input and output is on the heap with its exact size, so that access to a byte
// out of bounds ends the program.
//
// Standard input has cases: a section `words`, a head, and blocks of its part. Each is a size (4
// bytes), then the bytes. The head has the size of its pool before it, and each block the size of
// its content; the number of blocks is before all of them. Prints a line for each case: the XXH3 of
// the words, of the symbols, of the rules, and of the content of each block, or `-` for what is not
// valid.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/block.h"
#include "common/little_endian.h"
#include "text/head.h"
#include "text/word_section.h"

namespace {

using namespace gompfs;

constexpr int kMaxSeconds = 20;  // for a case; without sanitizers it takes milliseconds

// Bytes on the heap, without any after the last one.
struct Exact {
    std::unique_ptr<std::uint8_t[]> memory;
    std::size_t size = 0;
    Bytes bytes() const { return {memory.get(), size}; }
};

Exact exact(Bytes bytes) {
    Exact copy{std::make_unique<std::uint8_t[]>(bytes.size()), bytes.size()};
    std::copy(bytes.begin(), bytes.end(), copy.memory.get());
    return copy;
}

bool read_number(std::uint32_t& number) {
    return std::fread(&number, 1, sizeof number, stdin) == sizeof number;
}

std::uint32_t read_number() {
    std::uint32_t number = 0;
    if (!read_number(number)) {
        std::exit(2);
    }
    return number;
}

Exact read_bytes() {
    const std::uint32_t size = read_number();
    Exact bytes{std::make_unique<std::uint8_t[]>(size), size};
    if (std::fread(bytes.memory.get(), 1, size, stdin) != size) {
        std::exit(2);
    }
    return bytes;
}

void print_digest(Bytes bytes) {
    std::printf(" %016llx",
                static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
}

void append_token(std::vector<std::uint8_t>& all, std::string_view token) {
    append(all, static_cast<std::uint32_t>(token.size()));
    all.insert(all.end(), token.begin(), token.end());
}

WordSection read_section(Bytes bytes) {
    try {
        WordSection section(bytes, 1 << 24, 1);
        std::vector<std::uint8_t> all;
        for (std::uint32_t number = 0; number < section.words().size(); ++number) {
            append_token(all, section.words()[number]);
        }
        for (std::uint32_t number = 0; number < section.separators().size(); ++number) {
            append_token(all, section.separators()[number]);
        }
        print_digest(all);
        return section;
    } catch (const std::invalid_argument&) {
        std::printf(" -");
        return {};
    }
}

void print_symbols(const SymbolTable& table) {
    std::vector<std::uint8_t> all;
    for (const Expansion& symbol : table.expansions) {
        all.push_back(static_cast<std::uint8_t>(symbol.begins_with_separator()));
        all.push_back(static_cast<std::uint8_t>(symbol.ends_with_word()));
        append_token(all,
                     {reinterpret_cast<const char*>(&table.pool[symbol.offset()]), symbol.size()});
    }
    print_digest(all);
}

// The symbols of each rule, as the grammar of the part has them.
void print_rules(const Head& head) {
    std::vector<std::uint8_t> all;
    for (std::size_t rule = 0; rule + 1 < head.rule_starts.size(); ++rule) {
        append(all, head.rule_starts[rule + 1] - head.rule_starts[rule]);
        for (auto index = head.rule_starts[rule]; index < head.rule_starts[rule + 1]; ++index) {
            append(all, head.rule_symbols[index]);
        }
    }
    print_digest(all);
}

std::optional<SymbolTable> decode_head(Bytes payload, std::uint32_t pool_size,
                                       const WordSection& words) {
    const Exact block = exact(frame_block(Codec::head, payload, pool_size, 0));
    const std::optional<BlockHeader> header = parse_block_header(block.bytes());
    std::optional<SymbolTable> table;
    const std::optional<Head> head = read_head(payload);
    if (header && check_block(*header, block.bytes()) == BlockStatus::ok) {
        table = read_symbols(block.bytes().subspan(kBlockHeaderSize), words, pool_size);
    }
    if (!table) {
        std::printf(" - -");
    } else if (!head) {
        std::puts(" the grammar of a valid head is refused");
        std::exit(1);
    } else {
        print_symbols(*table);
        print_rules(*head);
    }
    return table;
}

void decode_content(Bytes payload, std::uint32_t size, const SymbolTable* table) {
    const Exact block = exact(frame_block(Codec::gompresso_tadoc, payload, size, 0));
    const std::optional<BlockHeader> header = parse_block_header(block.bytes());
    if (!header) {
        std::printf(" -");
        return;
    }
    const auto out = std::make_unique<std::uint8_t[]>(size);
    const MutableBytes content(out.get(), size);
    if (decode_block(*header, block.bytes(), false, content, table) == BlockStatus::ok) {
        print_digest(content);
    } else {
        std::printf(" -");
    }
}

}  // namespace

int main() {
    for (std::uint32_t size; read_number(size);) {
        const auto start = std::chrono::steady_clock::now();
        Exact section{std::make_unique<std::uint8_t[]>(size), size};
        if (std::fread(section.memory.get(), 1, size, stdin) != size) {
            return 2;
        }
        const WordSection words = read_section(section.bytes());
        const std::uint32_t pool_size = read_number();
        const Exact head = read_bytes();
        const std::optional<SymbolTable> table = decode_head(head.bytes(), pool_size, words);
        for (std::uint32_t left = read_number(); left != 0; --left) {
            const std::uint32_t content_size = read_number();
            const Exact payload = read_bytes();
            decode_content(payload.bytes(), content_size, table ? &*table : nullptr);
        }
        std::puts("");
        if (std::chrono::steady_clock::now() - start > std::chrono::seconds(kMaxSeconds)) {
            std::puts("a case takes too long");
            return 1;
        }
    }
    return 0;
}
