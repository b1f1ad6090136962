// The grammar section: written compactly, read with every number checked.
#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include "common/little_endian.h"
#include "common/parallel.h"
#include "grammar/grammar.h"
#include "grammar/numbers.h"
#include "grammar/traversal.h"
#include "grammar/word_list.h"

namespace gompfs {
namespace {

constexpr std::uint8_t kMagic[4] = {'G', 'G', 'R', 'M'};
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kHeaderSize = 32;
constexpr std::uint32_t kPartContinues = 1;

// Differences of either sign as small numbers: 0, -1, 1, -2, ...
void append_difference(std::vector<std::uint8_t>& bytes, std::uint64_t from, std::uint64_t to) {
    const auto difference = static_cast<std::int64_t>(to - from);
    append_number(bytes, static_cast<std::uint64_t>(difference) << 1 ^
                             static_cast<std::uint64_t>(difference >> 63));
}

[[noreturn]] void fail(const char* what) { throw std::invalid_argument(what); }

class SectionReader {
  public:
    explicit SectionReader(std::span<const std::uint8_t> bytes)
        : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }
    bool at_end() const { return next_ == end_; }

    std::span<const std::uint8_t> take(std::uint64_t size) {
        if (size > left()) {
            fail("it ends too early");
        }
        next_ += size;
        return {next_ - size, static_cast<std::size_t>(size)};
    }

    template <typename Integer>
    Integer fixed() {
        return load<Integer>(take(sizeof(Integer)).data());
    }

    std::uint64_t number() {
        std::uint64_t value = 0;
        for (int shift = 0; next_ != end_ && shift < 63; shift += 7) {
            const std::uint8_t byte = *next_++;
            value |= std::uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) {
                return value;
            }
        }
        fail("a number in it is cut off or too long");
    }

    std::uint64_t number_behind(std::uint64_t from) {
        const std::uint64_t coded = number();
        return from + (coded >> 1 ^ (~(coded & 1) + 1));
    }

    // How many items follow, of which each takes at least one byte.
    std::uint64_t count() {
        const std::uint64_t value = number();
        if (value > left()) {
            fail("it counts more items than it can hold");
        }
        return value;
    }

  private:
    const std::uint8_t* next_;
    const std::uint8_t* end_;
};

// The dictionary as it is stored: words without the prefixes that they share with the word before.
struct StoredWords {
    std::span<const std::uint8_t> shared_lengths;
    std::vector<std::uint64_t> rest_lengths;
    std::span<const std::uint8_t> rests;
};

StoredWords read_words(SectionReader& in, std::uint32_t num_words) {
    StoredWords words{in.take(num_words), std::vector<std::uint64_t>(num_words), {}};
    std::uint64_t size = 0;
    for (std::uint64_t& length : words.rest_lengths) {
        length = in.number();
        if (length > in.left() || size + length > in.left()) {
            fail("it ends too early");
        }
        size += length;
    }
    words.rests = in.take(size);
    return words;
}

Dictionary expand(const StoredWords& words) {
    Dictionary dictionary;
    const auto num_words = static_cast<std::uint32_t>(words.rest_lengths.size());
    dictionary.starts.reserve(num_words + std::size_t{1});
    auto rest = words.rests.begin();
    for (std::uint32_t number = 0; number < num_words; ++number) {
        const std::size_t previous = number == 0 ? 0 : dictionary.starts[number - 1];
        const std::size_t start = dictionary.bytes.size();
        const std::size_t shared = words.shared_lengths[number];
        if (shared > start - previous) {
            fail("a word shares more than the word before has");
        }
        const std::size_t length = words.rest_lengths[number];
        dictionary.bytes.resize(start + shared + length);
        char* const word = dictionary.bytes.data() + start;
        std::copy_n(dictionary.bytes.data() + previous, shared, word);
        std::copy_n(rest, length, word + shared);
        rest += static_cast<std::ptrdiff_t>(length);
        dictionary.starts.push_back(dictionary.bytes.size());
        if (dictionary.word(number).empty() ||
            (number != 0 && dictionary.word(number) <= dictionary.word(number - 1))) {
            fail("its words are not in order");
        }
    }
    return dictionary;
}

void read_rules(SectionReader& in, Part& part) {
    const std::uint64_t num_words = part.words.size();
    const std::uint64_t num_rules = in.count();
    if (num_rules == 0 || num_words + num_rules >= kSplitter) {
        fail("a part has an impossible number of rules");
    }
    part.rules.starts.push_back(0);
    for (std::uint64_t rule = 0; rule < num_rules; ++rule) {
        const std::uint64_t length = in.number();
        if (length > in.left() || part.rules.starts.back() + length > in.left()) {
            fail("a rule is longer than the section");
        }
        part.rules.starts.push_back(part.rules.starts.back() + length);
    }
    part.rules.symbols.resize(part.rules.starts.back());
    std::size_t num_splitters = 0;
    for (std::uint64_t rule = 0; rule < num_rules; ++rule) {
        for (std::uint64_t at = part.rules.starts[rule]; at < part.rules.starts[rule + 1]; ++at) {
            const std::uint64_t coded = in.number();
            Symbol& symbol = part.rules.symbols[at];
            if (coded == 0 && rule == 0) {
                symbol = kSplitter;
                ++num_splitters;
            } else if ((coded & 1) != 0 && coded / 2 < num_words) {
                symbol = static_cast<Symbol>(coded / 2);
            } else if (coded != 0 && (coded & 1) == 0 && coded / 2 < num_rules - rule) {
                symbol = static_cast<Symbol>(num_words + num_rules - coded / 2);
            } else {
                fail("a rule holds an impossible symbol");
            }
        }
    }
    const std::uint64_t root_size = part.rules.starts[1];
    if (root_size != 0 && part.rules.symbols[root_size - 1] != kSplitter) {
        fail("words follow the last file of a part");
    }
    if (num_splitters != part.inos.size()) {
        fail("a part has not as many splitters as files");
    }
}

Part read_part(SectionReader& in, std::uint32_t dictionary_size) {
    Part part;
    const std::uint64_t flags = in.number();
    if (flags > kPartContinues) {
        fail("a part has unknown flags");
    }
    part.continues = flags != 0;
    part.num_tokens = in.number();
    part.inos.resize(in.count());
    std::uint64_t ino = 0;
    for (std::uint64_t& value : part.inos) {
        value = ino = in.number_behind(ino);
    }
    part.words.resize(in.count());
    std::uint64_t number = 0;
    for (std::uint32_t& value : part.words) {
        number = in.number_behind(number);
        if (number >= dictionary_size) {
            fail("a part has a word that the dictionary lacks");
        }
        value = static_cast<std::uint32_t>(number);
    }
    read_rules(in, part);
    return part;
}

void check_sizes(const std::vector<Part>& parts) {
    std::atomic<bool> are_right = true;
    parallel_for(parts.size(), std::thread::hardware_concurrency(), [&](std::size_t index) {
        const Part& part = parts[index];
        if (part.num_tokens >= kMaxTokens || rule_sizes(part)[0] != part.num_tokens) {
            are_right = false;
        }
    });
    if (!are_right) {
        fail("a part does not stand for as many words as it says");
    }
}

}  // namespace

std::vector<std::uint8_t> write_header(const SectionHeader& header) {
    std::vector<std::uint8_t> bytes(kMagic, kMagic + sizeof kMagic);
    append(bytes, kVersion);
    append(bytes, static_cast<std::uint8_t>(header.words_of_characters));
    append(bytes, static_cast<std::uint8_t>(header.builder));
    append(bytes, header.num_words);
    append(bytes, header.num_parts);
    bytes.resize(kHeaderSize);
    return bytes;
}

std::vector<std::uint8_t> write_part_head(const PartHead& part) {
    std::vector<std::uint8_t> bytes;
    append_number(bytes, part.continues ? kPartContinues : 0);
    append_number(bytes, part.num_tokens);
    append_number(bytes, part.inos.size());
    std::uint64_t previous = 0;
    for (const std::uint64_t ino : part.inos) {
        append_difference(bytes, previous, ino);
        previous = ino;
    }
    append_number(bytes, part.words.size());
    previous = 0;
    for (const std::uint32_t number : part.words) {
        append_difference(bytes, previous, number);
        previous = number;
    }
    return bytes;
}

std::vector<std::uint8_t> write_rules(const Rules& rules, std::uint64_t num_words) {
    std::vector<std::uint8_t> bytes;
    bytes.reserve(rules.symbols.size() * 3);
    const std::uint64_t num_rules = rules.size();
    append_number(bytes, num_rules);
    for (std::uint32_t rule = 0; rule < num_rules; ++rule) {
        append_number(bytes, rules.starts[rule + 1] - rules.starts[rule]);
    }
    // Words are odd, rules even and counted from the last one, which tends to be used most.
    for (const Symbol symbol : rules.symbols) {
        if (symbol == kSplitter) {
            bytes.push_back(0);
        } else {
            append_number(bytes, symbol < num_words ? 2 * std::uint64_t{symbol} + 1
                                                    : 2 * (num_words + num_rules - symbol));
        }
    }
    bytes.shrink_to_fit();
    return bytes;
}

Grammar read_grammar(std::span<const std::uint8_t> section) {
    SectionReader in(section);
    const auto magic = in.take(sizeof kMagic);
    if (!std::equal(magic.begin(), magic.end(), kMagic) || in.fixed<std::uint16_t>() != kVersion) {
        fail("it is no grammar of a version that this release knows");
    }
    const auto words_of_characters = in.fixed<std::uint8_t>();
    const auto builder = in.fixed<std::uint8_t>();
    const auto num_words = in.fixed<std::uint32_t>();
    const auto num_parts = in.fixed<std::uint32_t>();
    if (words_of_characters > 1 || builder > 1 || num_words >= kSplitter) {
        fail("its header makes no sense");
    }
    for (const std::uint8_t byte : in.take(kHeaderSize - 16)) {
        if (byte != 0) {
            fail("reserved bytes of its header are not zero");
        }
    }
    Grammar grammar;
    grammar.words_of_characters = words_of_characters != 0;
    grammar.builder = static_cast<BuilderKind>(builder);
    const StoredWords words = read_words(in, num_words);
    std::future<Dictionary> dictionary =
        std::async(std::launch::async, [&words] { return expand(words); });
    for (std::uint32_t number = 0; number < num_parts; ++number) {
        grammar.parts.push_back(read_part(in, num_words));
    }
    if (!in.at_end()) {
        fail("bytes follow its last part");
    }
    check_sizes(grammar.parts);
    grammar.dictionary = dictionary.get();
    return grammar;
}

}  // namespace gompfs
