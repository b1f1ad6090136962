// Reads the grammar section, every number checked. Its items say how many of them there are, but
// not how many bytes they take: where parts and ranges of the dictionary lie is found by counting
// the ends of numbers, which is fast; these are read in parallel, as soon as they are found.
#include "grammar/section_reader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "common/failures.h"
#include "grammar/section.h"
#include "grammar/traversal.h"

namespace gompfs {
namespace {

using Bytes = SectionCursor::Bytes;

constexpr std::size_t kMinPartSize = 6;  // of one rule without symbols

void read_rules(SectionCursor& in, Part& part) {
    const std::uint64_t num_words = part.words.size();
    const std::uint64_t num_rules = in.count();
    if (num_rules == 0 || num_words + num_rules >= kSplitter) {
        fail_section("a part has an impossible number of rules");
    }
    std::vector<std::uint64_t>& starts = part.rules.starts;
    starts.assign(1, 0);
    starts.reserve(num_rules + 1);
    for (std::uint64_t rule = 0; rule < num_rules; ++rule) {
        const std::uint64_t length = in.number();
        if (length > in.left() || starts.back() + length > in.left()) {
            fail_section("a rule is longer than the section");
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
            const std::uint64_t value = coded / 2, is_rule = ~coded & 1;
            const std::uint64_t limit = is_rule != 0 ? num_rules - rule : num_words;
            if (value - is_rule < limit - is_rule) [[likely]] {
                *symbol = static_cast<Symbol>(is_rule != 0 ? num_words + num_rules - value : value);
            } else if (coded == 0 && rule == 0) {
                *symbol = kSplitter;
                ++num_splitters;
            } else {
                fail_section("a rule holds an impossible symbol");
            }
        }
    }
    if (starts[1] != 0 && part.rules.symbols[starts[1] - 1] != kSplitter) {
        fail_section("words follow the last file of a part");
    }
    if (num_splitters != part.inos.size()) {
        fail_section("a part has not as many splitters as files");
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
            fail_section("a rule is longer than the section");
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
        fail_section("a part has unknown flags");
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
            fail_section("a part has a word that the dictionary lacks");
        }
        value = static_cast<std::uint32_t>(number);
    }
    read_rules(in, part);
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

GrammarSection::Head::Head(SectionCursor& in) {
    const Bytes magic = in.take(sizeof kSectionMagic);
    if (!std::equal(magic.begin(), magic.end(), kSectionMagic) ||
        in.fixed<std::uint16_t>() != kSectionVersion) {
        fail_section("it is no grammar of a version that this release knows");
    }
    const auto words = in.fixed<std::uint8_t>();
    const auto kind = in.fixed<std::uint8_t>();
    num_words = in.fixed<std::uint32_t>();
    num_parts = in.fixed<std::uint32_t>();
    if (words > 1 || kind > 1 || num_words >= kSplitter) {
        fail_section("its header makes no sense");
    }
    for (const std::uint8_t byte : in.take(kSectionHeaderSize - 16)) {
        if (byte != 0) {
            fail_section("reserved bytes of its header are not zero");
        }
    }
    words_of_characters = words != 0;
    builder = static_cast<BuilderKind>(kind);
}

GrammarSection::GrammarSection(Bytes bytes, unsigned num_threads)
    : num_threads_(num_threads),
      in_(bytes),
      head_(in_),
      words_(in_, head_.num_words, num_threads),
      parts_(in_.take(in_.left())) {
    if (num_parts() > parts_.size() / kMinPartSize) {
        fail_section("it ends too early");
    }
}

void GrammarSection::read(const TakeRange& take_range, const TakePart& take_part) const {
    Failures failures;
    std::atomic<std::size_t> next_range = 0;
    PartFinder parts(SectionCursor(parts_), num_parts());
    parallel_for(num_threads_, num_threads_, [&](std::size_t) {
        for (std::size_t index; (index = next_range++) < words_.num_ranges();) {
            failures.watch(index, [&] { take_range(index); });
        }
        Part part;
        for (;;) {
            std::size_t index = 0;
            Bytes bytes;
            bool found = false;
            failures.watch(words_.num_ranges() + num_parts(),
                           [&] { found = parts.next(index, bytes); });
            if (!found) {
                break;
            }
            failures.watch(words_.num_ranges() + index, [&] {
                read_part(bytes, head_.num_words, part);
                take_part(index, part);
            });
        }
    });
    failures.rethrow();
    if (!parts.at_end()) {
        fail_section("bytes follow its last part");
    }
}

void check_num_tokens(const Part& part, std::uint64_t num_tokens) {
    if (num_tokens >= kMaxTokens || num_tokens != part.num_tokens) {
        fail_section("a part does not stand for as many words as it says");
    }
}

Grammar read_grammar(Bytes bytes, unsigned num_threads) {
    GrammarSection section(bytes, num_threads);
    Grammar grammar{section.words_of_characters(), section.builder(), section.words().room(), {}};
    grammar.parts.resize(section.num_parts());
    section.read([&](std::size_t range) { section.words().expand(range, grammar.dictionary); },
                 [&](std::size_t index, Part& part) {
                     check_num_tokens(part, rule_sizes(part)[0]);
                     grammar.parts[index] = std::move(part);
                 });
    return grammar;
}

}  // namespace gompfs
