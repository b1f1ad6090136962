// Reads a grammar section and checks every number; see section_reader.h.
//
// Items are stored with their counts but without their sizes in bytes. So the ends of parts and of
// ranges of the dictionary are found by counting the last bytes of numbers, which is fast. One
// thread locates the parts one after another (FoundParts), while all other threads already read the
// parts that are located.
#include "grammar/section_reader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "common/cancellation.h"
#include "common/failures.h"
#include "grammar/rule_sizes.h"
#include "grammar/section.h"
#include "grammar/section_part.h"

namespace gompfs {
namespace {

using Bytes = SectionCursor::Bytes;

constexpr std::size_t kMinPartSize = 6;  // a part with one rule without symbols

// The parts that have been located so far. One thread locates them; others wait for a part and read
// it.
class FoundParts {
  public:
    FoundParts(SectionCursor in, std::size_t num_parts) : in_(in), parts_(num_parts) {}

    // Locates all parts. Throws at the first part that cannot be located.
    void find() {
        const Ended ended(*this);
        for (std::size_t index = 0; index < parts_.size(); ++index) {
            throw_if_cancelled();
            parts_[index] = skip_part(in_);
            set_found(index + 1);
        }
        if (!in_.at_end()) {
            fail_section("bytes follow its last part");
        }
    }

    // Waits for a part. Returns nothing if it cannot be located.
    std::optional<Bytes> wait_for(std::size_t index) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return index < num_found_ || has_ended_; });
        return index < num_found_ ? std::optional(parts_[index]) : std::nullopt;
    }

  private:
    struct Ended {
        explicit Ended(FoundParts& parts) : parts(parts) {}
        ~Ended() {
            const std::lock_guard lock(parts.mutex_);
            parts.has_ended_ = true;
            parts.changed_.notify_all();
        }
        FoundParts& parts;
    };

    void set_found(std::size_t num_found) {
        const std::lock_guard lock(mutex_);
        num_found_ = num_found;
        changed_.notify_all();
    }

    SectionCursor in_;
    std::vector<Bytes> parts_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t num_found_ = 0;
    bool has_ended_ = false;
};

}  // namespace

GrammarSection::Head::Head(SectionCursor& in) {
    const Bytes magic = in.take(sizeof kSectionMagic);
    if (!std::equal(magic.begin(), magic.end(), kSectionMagic) ||
        in.fixed<std::uint16_t>() != kSectionVersion) {
        fail_section("its version is not supported by this release");
    }
    const auto words = in.fixed<std::uint8_t>();
    const auto kind = in.fixed<std::uint8_t>();
    num_words = in.fixed<std::uint32_t>();
    num_parts = in.fixed<std::uint32_t>();
    if (words > static_cast<unsigned>(WordRule::identifiers) || kind > 1 ||
        num_words >= kSplitter) {
        fail_section("its header is invalid");
    }
    for (const std::uint8_t byte : in.take(kSectionHeaderSize - 16)) {
        if (byte != 0) {
            fail_section("reserved bytes of its header are not zero");
        }
    }
    word_rule = static_cast<WordRule>(words);
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

void GrammarSection::read(const TakeRange& take_range, const MakeTaker& make_taker) const {
    const std::size_t num_ranges = words_.num_ranges();
    Failures failures;
    std::atomic<std::size_t> next_range = 0, next_part = 0;
    FoundParts parts(SectionCursor(parts_), num_parts());
    parallel_for(num_threads_, num_threads_, [&](std::size_t thread) {
        if (thread == 0) {
            failures.watch(num_ranges + num_parts(), [&] { parts.find(); });
        }
        for (std::size_t index; (index = next_range++) < num_ranges;) {
            failures.watch(index, [&] {
                throw_if_cancelled();
                take_range(index);
            });
        }
        const TakePart take_part = make_taker();
        for (std::size_t index; (index = next_part++) < num_parts();) {
            if (const std::optional<Bytes> bytes = parts.wait_for(index)) {
                failures.watch(num_ranges + index, [&] {
                    throw_if_cancelled();
                    take_part(index, *bytes);
                });
            }
        }
    });
    failures.rethrow();
}

Grammar read_grammar(Bytes bytes, unsigned num_threads) {
    GrammarSection section(bytes, num_threads);
    Grammar grammar{section.word_rule(), section.builder(), section.words().empty_dictionary(), {}};
    grammar.parts.resize(section.num_parts());
    TokenSum num_tokens;
    section.read([&](std::size_t range) { section.words().expand(range, grammar.dictionary); },
                 [&] {
                     return [&](std::size_t index, Bytes part_bytes) {
                         Part& part = grammar.parts[index];
                         read_part(part_bytes, section.words().size(), part);
                         check_num_tokens(part, rule_sizes(part)[0]);
                         num_tokens.add(part.num_tokens);
                     };
                 });
    num_tokens.check();
    return grammar;
}

}  // namespace gompfs
