// Implements the reading of a part; see section_part.h. Every number is checked before use: inodes,
// word numbers, rule lengths and symbols must be possible, and the lengths of rules must fit the
// bytes that are left.
#include "grammar/section_part.h"

#include "grammar/section.h"

namespace gompfs {
namespace {

constexpr std::uint64_t kMaxIno = std::uint64_t{1} << 62;  // above every inode number

// The number after `from`, given a difference of either sign stored as 0, -1, 1, -2, ...
std::uint64_t number_behind(std::uint64_t from, std::uint64_t coded) {
    return from + (coded >> 1 ^ (~(coded & 1) + 1));
}

}  // namespace

std::span<const std::uint8_t> skip_part(SectionCursor& in) {
    const std::uint8_t* const start = in.next();
    in.skip_numbers(2);
    in.skip_numbers(in.count());  // inodes
    in.skip_numbers(in.count());  // words
    std::uint64_t num_symbols = 0;
    for (std::uint64_t num_rules = in.count(); num_rules != 0; --num_rules) {
        const std::uint64_t length = in.number();
        if (length > in.left() || num_symbols + length > in.left()) {
            fail_section("a rule is longer than the section");
        }
        num_symbols += length;
    }
    in.skip_numbers(num_symbols);
    return {start, in.next()};
}

void read_part_head(SectionCursor& in, std::uint32_t dictionary_size, PartHead& head) {
    const std::uint64_t flags = in.number();
    if (flags > kPartContinues) {
        fail_section("a part has unknown flags");
    }
    head.continues = flags != 0;
    head.num_tokens = in.number();
    head.inos.resize(in.count());
    std::uint64_t ino = 0;
    for (std::uint64_t& value : head.inos) {
        value = ino = number_behind(ino, in.number());
        if (ino == 0 || ino >= kMaxIno) {
            fail_section("a part has an impossible inode number");
        }
    }
    head.words.resize(in.count());
    in.numbers(head.words);
    std::uint64_t number = 0;
    for (std::uint32_t& value : head.words) {
        number = number_behind(number, value);
        if (number >= dictionary_size) {
            fail_section("a part has a word that is missing in the dictionary");
        }
        value = static_cast<std::uint32_t>(number);
    }
}

void read_rule_starts(SectionCursor& in, std::uint64_t num_words,
                      std::vector<std::uint64_t>& starts) {
    const std::uint64_t num_rules = in.count();
    if (num_rules == 0 || num_words + num_rules >= kSplitter) {
        fail_section("a part has an impossible number of rules");
    }
    starts.assign(1, 0);
    starts.reserve(num_rules + 1);
    for (std::uint64_t rule = 0; rule < num_rules; ++rule) {
        const std::uint64_t length = in.number();
        if (length > in.left() || starts.back() + length > in.left()) {
            fail_section("a rule is longer than the section");
        }
        starts.push_back(starts.back() + length);
    }
}

void read_part(std::span<const std::uint8_t> bytes, std::uint32_t dictionary_size, Part& part) {
    SectionCursor in(bytes);
    read_part_head(in, dictionary_size, part);
    read_rule_starts(in, part.words.size(), part.rules.starts);
    part.rules.symbols.resize(part.rules.starts.back());
    Symbol* next = part.rules.symbols.data();
    read_symbols(
        in, part, part.rules.starts, [](std::uint32_t) {},
        [&](Symbol symbol) { *next++ = symbol; });
}

void check_num_tokens(const PartHead& head, std::uint64_t num_tokens) {
    if (num_tokens >= kMaxTokens || num_tokens != head.num_tokens) {
        fail_section("a part expands to a different number of words than it states");
    }
}

void TokenSum::check() const {
    if (sum_.load(std::memory_order_relaxed) >= kMaxTokens) {
        fail_section("its parts expand to 2^62 words or more");
    }
}

void fail_symbol() { fail_section("a rule holds an impossible symbol"); }

void check_splitters(const PartHead& head, std::size_t num_splitters, bool are_last) {
    if (!are_last) {
        fail_section("words follow the last file of a part");
    }
    if (num_splitters != head.inos.size()) {
        fail_section("the number of splitters of a part differs from its number of files");
    }
}

}  // namespace gompfs
