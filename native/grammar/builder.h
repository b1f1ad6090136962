// Builds the grammar of the text of many files, in bounded memory and on several threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/cancellation.h"
#include "common/large_vector.h"
#include "grammar/grammar.h"
#include "grammar/tokenizer.h"
#include "grammar/word_list.h"

namespace gompfs {

// The text of a part: of whole files, or of a piece of one file.
struct PartText {
    std::size_t number;  // of the part
    bool continues = false;
    LargeVector<char> bytes;
    std::vector<std::uint64_t> inos;
    std::vector<std::size_t> ends;  // end of each file, in bytes

    std::string_view view() const { return {bytes.data(), bytes.size()}; }
};

// Parts that are whose rules another builder makes (a GPU); their texts follow each other.
struct PartsInText {
    std::vector<std::unique_ptr<PartText>> texts;
    std::vector<std::uint32_t> file_ends;   // offset of the newline after each file
    std::vector<std::uint32_t> part_files;  // first file of each part, and the end

    std::vector<std::size_t> numbers() const;  // of the parts
    std::size_t size() const { return file_ends.back() + std::size_t{1}; }
    // Writes the text with its newlines to `bytes`, and frees the text here. Throws
    // std::invalid_argument unless `bytes` has size() bytes.
    void move_to(std::span<std::uint8_t> bytes, unsigned num_threads);
};

// The words and rules of such parts. The words of each part are in the order of their first
// occurrence; parts follow each other. Rule r ends at rule_ends[r] in symbols; the rules of the
// part at index p begin with rule part_rules[p]. A symbol is a word or a rule of the part (rules
// are numbered after the part's words), or a splitter.
struct PartsInRules {
    std::span<const char> word_bytes;
    std::span<const std::uint32_t> word_ends;   // end of each word in word_bytes
    std::span<const std::uint32_t> part_words;  // first word of each part, and the end
    std::span<const Symbol> symbols;
    std::span<const std::uint32_t> rule_ends;
    std::span<const std::uint32_t> part_rules;  // first rule of each part, and the end
};

// Files are collected until their text fills a part. A thread then cuts the text of the part into
// words, numbers them and builds a grammar. Parts share only the dictionary.
class GrammarBuilder {
  public:
    // With `external_rules`, the caller takes the text of each part (take_texts) and supplies its
    // words and rules (give_rules).
    GrammarBuilder(BuilderKind builder, std::vector<std::uint8_t> word_characters,
                   unsigned num_threads, bool external_rules = false);
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
    struct Workspace;
    // A part whose words are numbers in its own word list.
    struct BuiltPart {
        PartHead head;
        std::vector<std::uint32_t> sorted_words;  // until it has rules
        std::vector<std::uint8_t> rules;          // as the section stores them
        Rules root;                               // of the kind `none`, instead of `rules`
    };

    void require(bool in_file) const;
    void search_from(std::size_t size);
    void cut_file();
    void dispatch();
    void wait_until_built(std::unique_lock<std::mutex>& lock);
    void work();
    void build_part(const PartText& text, Workspace& workspace);
    void give_part(BuiltPart& part, WordList& list, const PartsInRules& rules, std::size_t index);
    void merge();
    void add_rules(BuiltPart& part, Rules rules) const;

    Cancellation cancellation_;  // of threads_
    const BuilderKind builder_;
    const unsigned num_threads_;
    const bool external_rules_;
    const Tokenizer tokenizer_;
    const bool words_of_characters_;
    std::unique_ptr<PartText> text_;  // being collected
    bool in_file_ = false;
    bool finished_ = false;
    bool merged_ = false;
    std::size_t next_cut_ = 0;  // size of text_ at which the present file is cut
    // Bytes of text_ that are known to contain no position to cut the present file.
    std::size_t searched_ = 0;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::unique_ptr<PartText> waiting_;
    std::size_t num_running_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
    std::vector<BuiltPart> parts_;
    std::deque<std::unique_ptr<PartText>> texts_;    // parts for external rules
    std::vector<WordList> word_lists_;               // per part
    std::vector<std::vector<std::uint32_t>> ranks_;  // per part: numbers of its words
    std::vector<std::vector<std::uint8_t>> pieces_;  // of the section
    std::size_t next_piece_ = 0;
};

}  // namespace gompfs
