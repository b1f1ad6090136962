// Builds the grammar of the text of many files, in bounded memory and on several threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "common/cancellation.h"
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
    ~GrammarBuilder();
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
    void wait_until_built(std::unique_lock<std::mutex>& lock);
    void work();

    Cancellation cancellation_;  // of threads_
    const BuilderKind builder_;
    const unsigned num_threads_;
    const bool external_rules_;
    const Tokenizer tokenizer_;
    TextCollector collector_;
    bool finished_ = false;
    bool merged_ = false;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::unique_ptr<PartText> waiting_;
    std::size_t num_running_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
    std::vector<BuiltPart> parts_;
    std::deque<std::unique_ptr<PartText>> texts_;    // parts for external rules
    std::vector<std::vector<std::uint8_t>> pieces_;  // of the section
    std::size_t next_piece_ = 0;
};

}  // namespace gompfs
