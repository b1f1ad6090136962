// Reads the grammar section, every number checked. Its items say how many of them there are, but
// not how many bytes they take: where parts and ranges of the dictionary lie is found by counting
// the ends of numbers, which is fast; these are read in parallel, as soon as they are found.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "common/failures.h"
#include "common/little_endian.h"
#include "grammar/grammar.h"
#include "grammar/section.h"
#include "grammar/traversal.h"

namespace gompfs {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint32_t kMinWordsOfRange = 1 << 14;
constexpr std::size_t kMinPartSize = 6;  // of one rule without symbols

[[noreturn]] void fail(const char* what) { throw std::invalid_argument(what); }

class SectionCursor {
  public:
    explicit SectionCursor(Bytes bytes) : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }
    bool at_end() const { return next_ == end_; }
    const std::uint8_t* place() const { return next_; }

    Bytes take(std::uint64_t size) {
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
        // Most numbers have up to three bytes.
        if (left() >= 3) {
            std::uint64_t value = next_[0];
            if (value < 0x80) {
                next_ += 1;
                return value;
            }
            value = (value & 0x7f) | std::uint64_t{next_[1]} << 7;
            if (next_[1] < 0x80) {
                next_ += 2;
                return value;
            }
            value = (value & 0x3fff) | std::uint64_t{next_[2]} << 14;
            if (next_[2] < 0x80) {
                next_ += 3;
                return value;
            }
        }
        return long_number();
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

    // Goes on behind some numbers, whose bytes it gives, without looking at their values. Numbers
    // end in a byte without the highest bit, and 64 bytes hold no more than 64 ends.
    Bytes skip_numbers(std::uint64_t count) {
        const std::uint8_t* const start = next_;
        for (; count >= 64 && left() >= 64; next_ += 64) {
            for (std::size_t at = 0; at < 64; at += 8) {
                const std::uint64_t ends = ~load<std::uint64_t>(next_ + at) >> 7 & kLowBits;
                count -= ends * kLowBits >> 56;
            }
        }
        for (; count != 0; ++next_) {
            if (next_ == end_) {
                fail("it ends too early");
            }
            count -= *next_ < 0x80;
        }
        return {start, next_};
    }

  private:
    std::uint64_t long_number() {
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

    static constexpr std::uint64_t kLowBits = 0x0101010101010101u;

    const std::uint8_t* next_;
    const std::uint8_t* end_;
};

// Some words of the dictionary as they are stored: without the prefixes that they share with the
// word before. The first one of a range shares nothing.
struct WordRange {
    std::uint32_t first = 0;
    Bytes shared_lengths;
    Bytes rest_lengths;           // numbers
    std::uint64_t rest_size = 0;  // of the words, without and with what they share
    std::uint64_t size = 0;
    const std::uint8_t* rests = nullptr;
    std::uint64_t start = 0;  // in the bytes of the dictionary
};

// Cuts the dictionary where a word shares nothing, into ranges of about equal length where that can
// be had.
std::vector<WordRange> cut_dictionary(SectionCursor& in, std::uint32_t num_words) {
    constexpr std::uint32_t kMaxRanges = 128;
    const Bytes shared_lengths = in.take(num_words);
    const std::uint32_t step = std::max(num_words / kMaxRanges, kMinWordsOfRange);
    std::vector<WordRange> ranges;
    for (std::uint32_t first = 0; first < num_words;) {
        const std::uint32_t nearest = std::min(num_words - first, step);
        const auto next = std::find(shared_lengths.begin() + first + nearest, shared_lengths.end(),
                                    std::uint8_t{0});
        const auto end = static_cast<std::uint32_t>(next - shared_lengths.begin());
        WordRange& range = ranges.emplace_back();
        range.first = first;
        range.shared_lengths = shared_lengths.subspan(first, end - first);
        range.rest_lengths = in.skip_numbers(end - first);
        first = end;
    }
    return ranges;
}

void measure_words(WordRange& range, std::uint64_t max_size) {
    SectionCursor lengths(range.rest_lengths);
    std::uint64_t previous = 0;
    for (const std::uint8_t shared : range.shared_lengths) {
        const std::uint64_t rest = lengths.number();
        if (rest > max_size) {
            fail("it ends too early");
        }
        if (shared > previous) {
            fail("a word shares more than the word before has");
        }
        range.rest_size += rest;
        range.size += previous = shared + rest;
    }
}

void check_order(std::string_view previous, std::string_view word) {
    if (word <= previous) {
        fail("its words are not in order");
    }
}

void expand_words(const WordRange& range, Dictionary& dictionary) {
    SectionCursor lengths(range.rest_lengths);
    const char* rest = reinterpret_cast<const char*>(range.rests);
    char* word = dictionary.bytes.data() + range.start;
    const char* previous = word;
    std::size_t previous_size = 0;
    std::uint64_t* start = dictionary.starts.data() + range.first;
    for (const std::uint8_t shared : range.shared_lengths) {
        *start++ = static_cast<std::uint64_t>(word - dictionary.bytes.data());
        const std::size_t length = lengths.number();
        std::copy_n(previous, shared, word);
        std::copy_n(rest, length, word + shared);
        check_order({previous + shared, previous_size - shared}, {rest, length});
        rest += length;
        previous = word;
        previous_size = shared + length;
        word += previous_size;
    }
}

void read_rules(SectionCursor& in, Part& part) {
    const std::uint64_t num_words = part.words.size();
    const std::uint64_t num_rules = in.count();
    if (num_rules == 0 || num_words + num_rules >= kSplitter) {
        fail("a part has an impossible number of rules");
    }
    std::vector<std::uint64_t>& starts = part.rules.starts;
    starts.assign(1, 0);
    starts.reserve(num_rules + 1);
    for (std::uint64_t rule = 0; rule < num_rules; ++rule) {
        const std::uint64_t length = in.number();
        if (length > in.left() || starts.back() + length > in.left()) {
            fail("a rule is longer than the section");
        }
        starts.push_back(starts.back() + length);
    }
    part.rules.symbols.resize(starts.back());
    Symbol* symbol = part.rules.symbols.data();
    std::size_t num_splitters = 0;
    for (std::uint64_t rule = 0; rule < num_rules; ++rule) {
        for (const Symbol* const end = part.rules.symbols.data() + starts[rule + 1]; symbol != end;
             ++symbol) {
            const std::uint64_t coded = in.number();
            const std::uint64_t value = coded / 2;
            if ((coded & 1) != 0 ? value < num_words : value != 0 && value < num_rules - rule) {
                *symbol =
                    static_cast<Symbol>((coded & 1) != 0 ? value : num_words + num_rules - value);
            } else if (coded == 0 && rule == 0) {
                *symbol = kSplitter;
                ++num_splitters;
            } else {
                fail("a rule holds an impossible symbol");
            }
        }
    }
    if (starts[1] != 0 && part.rules.symbols[starts[1] - 1] != kSplitter) {
        fail("words follow the last file of a part");
    }
    if (num_splitters != part.inos.size()) {
        fail("a part has not as many splitters as files");
    }
}

Bytes skip_part(SectionCursor& in) {
    const std::uint8_t* const start = in.place();
    in.skip_numbers(2);
    in.skip_numbers(in.count());  // inodes
    in.skip_numbers(in.count());  // words
    std::uint64_t num_symbols = 0;
    for (std::uint64_t num_rules = in.count(); num_rules != 0; --num_rules) {
        const std::uint64_t length = in.number();
        if (length > in.left() || num_symbols + length > in.left()) {
            fail("a rule is longer than the section");
        }
        num_symbols += length;
    }
    in.skip_numbers(num_symbols);
    return {start, in.place()};
}

// Into a part that may have been used before.
void read_part(Bytes bytes, std::uint32_t dictionary_size, Part& part) {
    SectionCursor in(bytes);
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
    if (part.num_tokens >= kMaxTokens || rule_sizes(part)[0] != part.num_tokens) {
        fail("a part does not stand for as many words as it says");
    }
}

// Says where the ranges lie among the rests of the words, which follow, and in the dictionary.
void place_words(SectionCursor& in, std::vector<WordRange>& ranges, unsigned num_threads) {
    parallel_for_all(ranges.size(), num_threads,
                     [&](std::size_t index) { measure_words(ranges[index], in.left()); });
    std::uint64_t start = 0;
    for (WordRange& range : ranges) {
        range.rests = in.take(range.rest_size).data();
        range.start = start;
        start += range.size;
    }
}

// Finds the parts one after another, for whoever reads the next one.
class PartFinder {
  public:
    PartFinder(SectionCursor in, std::size_t num_parts) : in_(in), num_parts_(num_parts) {}

    // False when all are found. Throws where one cannot be found, and then finds no more.
    bool next(std::size_t& index, Bytes& bytes) {
        const std::lock_guard lock(mutex_);
        if (num_found_ == num_parts_) {
            return false;
        }
        index = std::exchange(num_found_, num_parts_);
        bytes = skip_part(in_);
        num_found_ = index + 1;
        return true;
    }
    bool at_end() const { return in_.at_end(); }

  private:
    std::mutex mutex_;
    SectionCursor in_;
    const std::size_t num_parts_;
    std::size_t num_found_ = 0;
};

}  // namespace

struct GrammarSection::Outline {
    bool words_of_characters;
    BuilderKind builder;
    std::uint32_t num_words;
    std::uint32_t num_parts;
    std::vector<WordRange> words;
    Bytes parts;
};

GrammarSection::GrammarSection(Bytes bytes, unsigned num_threads)
    : outline_(std::make_unique<Outline>()), num_threads_(num_threads) {
    SectionCursor in(bytes);
    const Bytes magic = in.take(sizeof kSectionMagic);
    if (!std::equal(magic.begin(), magic.end(), kSectionMagic) ||
        in.fixed<std::uint16_t>() != kSectionVersion) {
        fail("it is no grammar of a version that this release knows");
    }
    const auto words_of_characters = in.fixed<std::uint8_t>();
    const auto builder = in.fixed<std::uint8_t>();
    outline_->num_words = in.fixed<std::uint32_t>();
    const auto num_parts = in.fixed<std::uint32_t>();
    if (words_of_characters > 1 || builder > 1 || outline_->num_words >= kSplitter) {
        fail("its header makes no sense");
    }
    for (const std::uint8_t byte : in.take(kSectionHeaderSize - 16)) {
        if (byte != 0) {
            fail("reserved bytes of its header are not zero");
        }
    }
    outline_->words_of_characters = words_of_characters != 0;
    outline_->builder = static_cast<BuilderKind>(builder);
    outline_->words = cut_dictionary(in, outline_->num_words);
    place_words(in, outline_->words, num_threads);
    outline_->num_parts = num_parts;
    outline_->parts = in.take(in.left());
    if (num_parts > outline_->parts.size() / kMinPartSize) {
        fail("it ends too early");
    }
}

GrammarSection::~GrammarSection() = default;
std::uint32_t GrammarSection::num_words() const { return outline_->num_words; }
std::size_t GrammarSection::num_parts() const { return outline_->num_parts; }

Grammar GrammarSection::read(const TakePart& take) const {
    const std::vector<WordRange>& words = outline_->words;
    Grammar grammar{outline_->words_of_characters, outline_->builder, {}, {}};
    grammar.dictionary.starts.resize(num_words() + std::size_t{1});
    grammar.dictionary.starts.back() = words.empty() ? 0 : words.back().start + words.back().size;
    grammar.dictionary.bytes.resize(grammar.dictionary.starts.back());
    Failures failures;
    std::atomic<std::size_t> next_range = 0;
    PartFinder parts(SectionCursor(outline_->parts), num_parts());
    parallel_for(num_threads_, num_threads_, [&](std::size_t) {
        for (std::size_t index; (index = next_range++) < words.size();) {
            failures.watch(index, [&] { expand_words(words[index], grammar.dictionary); });
        }
        Part part;
        for (;;) {
            std::size_t index = 0;
            Bytes bytes;
            bool found = false;
            failures.watch(words.size() + num_parts(), [&] { found = parts.next(index, bytes); });
            if (!found) {
                break;
            }
            failures.watch(words.size() + index, [&] {
                read_part(bytes, num_words(), part);
                take(index, part);
            });
        }
    });
    failures.rethrow();
    if (!parts.at_end()) {
        fail("bytes follow its last part");
    }
    for (const WordRange& range : words) {
        if (range.first != 0) {
            check_order(grammar.dictionary.word(range.first - 1),
                        grammar.dictionary.word(range.first));
        }
    }
    return grammar;
}

Grammar read_grammar(Bytes bytes, unsigned num_threads) {
    const GrammarSection section(bytes, num_threads);
    std::vector<Part> parts(section.num_parts());
    Grammar grammar =
        section.read([&](std::size_t index, Part& part) { parts[index] = std::move(part); });
    grammar.parts = std::move(parts);
    return grammar;
}

}  // namespace gompfs
