// Builds the grammar of the text of many files, in bounded memory and on several threads.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "common/background_work.h"
#include "grammar/external_rules.h"
#include "grammar/grammar.h"
#include "grammar/part_builder.h"
#include "grammar/text_collector.h"
#include "grammar/tokenizer.h"

namespace gompfs {

// Files are collected until their text fills a part. A thread then cuts the text of the part into
// words, numbers them and builds a grammar. Parts share only the dictionary.
class GrammarBuilder {
  public:
    // With `external_rules`, the caller takes the text of each part (take_texts) and supplies its
    // words and rules (give_rules).
    GrammarBuilder(BuilderKind builder, Tokenizer tokenizer, unsigned num_threads,
                   bool external_rules = false);
    GrammarBuilder(const GrammarBuilder&) = delete;
    GrammarBuilder& operator=(const GrammarBuilder&) = delete;

    // Adds a file in pieces. Throws std::logic_error if the calls are not in this order.
    void begin_file(std::uint64_t ino);
    void add_bytes(std::string_view bytes);
    void end_file();

    // Takes up to `most` parts, for which the caller builds the rules. Returns nothing if fewer
    // than `least` parts are waiting, or none. After finish(), all parts have been taken once a
    // call with `least` = 1 returns nothing.
    std::optional<PartsInText> take_texts(std::size_t least, std::size_t most);
    // Receives the words and rules of parts that were taken. Throws std::invalid_argument if they
    // are not valid.
    void give_rules(const std::vector<std::size_t>& numbers, const PartsInRules& rules);

    // Ends the input. next_piece() then returns the grammar section piece by piece; the rules of
    // all parts that were taken must have been given before.
    void finish();
    std::optional<std::vector<std::uint8_t>> next_piece();

    // For a builder of the kind `none`, instead of finish(), at any time: returns what was added
    // since the last call, for counting. The rest of an incomplete file comes with the next call.
    Grammar take();

  private:
    void dispatch(std::unique_ptr<PartText> text);

    const BuilderKind builder_;
    const unsigned num_threads_;
    const Tokenizer tokenizer_;
    TextCollector collector_;
    bool finished_ = false;
    bool merged_ = false;
    std::size_t num_parts_ = 0;
    std::mutex mutex_;  // of parts_ and texts_: external rules may come while text is added
    std::vector<BuiltPart> parts_;                   // complete after finish()
    std::deque<std::unique_ptr<PartText>> texts_;    // parts for external rules
    std::vector<std::vector<std::uint8_t>> pieces_;  // of the section
    std::size_t next_piece_ = 0;
    // Builds the rules, unless they are external. Last, as its threads use the members above.
    std::optional<BackgroundWork<std::unique_ptr<PartText>, BuiltPart>> building_;
};

}  // namespace gompfs
