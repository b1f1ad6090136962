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

// The text of a part: of whole files, or of a piece of one.
struct PartText {
    std::size_t number;  // of the part
    bool continues = false;
    LargeVector<char> bytes;
    std::vector<std::uint64_t> inos;
    std::vector<std::size_t> ends;  // of each file, in bytes

    std::string_view view() const { return {bytes.data(), bytes.size()}; }
};

// Some parts that are built elsewhere, their text one behind the other.
struct PartsInText {
    std::vector<std::unique_ptr<PartText>> texts;
    std::vector<std::uint32_t> file_ends;   // where each file has a newline behind it
    std::vector<std::uint32_t> part_files;  // the first file of each part, and the end

    std::size_t size() const { return file_ends.back() + std::size_t{1}; }
    // Writes the text, with the newlines, to as many bytes, and lets go of it.
    void move_to(std::uint8_t* bytes, unsigned num_threads);
};

// The words of these parts, those of each one behind the other in the order in which they first
// come, and their rules: rule r ends at rule_ends[r] in symbols, and those of the part at index p
// begin with number part_rules[p]. A symbol is a word, a rule behind all words, or a splitter.
struct PartsInRules {
    std::span<const char> word_bytes;
    std::span<const std::uint32_t> word_ends;   // of each word in word_bytes
    std::span<const std::uint32_t> part_words;  // the first word of each part, and the end
    std::span<const Symbol> symbols;
    std::span<const std::uint32_t> rule_ends;
    std::span<const std::uint32_t> part_rules;  // and the end
};

// Files are collected until their text fills a part. Each part is a thread's work: it cuts the text
// into words, numbers them, and builds a grammar. Parts only share the dictionary.
class GrammarBuilder {
  public:
    // `elsewhere`: who uses the builder takes the text of each part, and gives its words and rules.
    GrammarBuilder(BuilderKind builder, std::vector<std::uint8_t> word_characters,
                   unsigned num_threads, bool elsewhere = false);
    ~GrammarBuilder();
    GrammarBuilder(const GrammarBuilder&) = delete;
    GrammarBuilder& operator=(const GrammarBuilder&) = delete;

    // A file in pieces. Throws std::logic_error for calls that are not in this order.
    void begin_file(std::uint64_t ino);
    void add_bytes(std::string_view bytes);
    void end_file();

    // Parts that are to be built elsewhere, `most` at most; nothing while fewer than `least` wait,
    // or none. All have been taken when that is so for 1 after finish().
    std::optional<PartsInText> take_texts(std::size_t least, std::size_t most);
    // What became of parts that were taken. Throws std::invalid_argument for what makes no sense.
    void give_rules(const std::vector<std::size_t>& numbers, const PartsInRules& rules);

    // No more files: next_piece gives the grammar section of all piece by piece, as soon as all
    // that was taken has been given.
    void finish();
    std::optional<std::vector<std::uint8_t>> next_piece();

    // For a builder of the kind `none`, at any time instead: what it took since the last call, for
    // counting. Of a file that is not complete the rest comes with the next call.
    Grammar take();

  private:
    struct Workspace;
    // A part whose words are places in its own list.
    struct BuiltPart {
        PartHead head;
        std::vector<std::uint32_t> sorted_words;  // until it has rules
        std::vector<std::uint8_t> rules;          // as the section has them
        Rules root;                               // of the kind `none`, instead
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
    const bool elsewhere_;
    const Tokenizer tokenizer_;
    const bool words_of_characters_;
    std::unique_ptr<PartText> text_;  // collected now
    bool in_file_ = false;
    bool finished_ = false;
    bool merged_ = false;
    std::size_t next_cut_ = 0;  // the size of text_ at which the present file is cut
    std::size_t searched_ =
        0;  // bytes of text_ that are known to hold no place to cut the present file

    std::mutex mutex_;
    std::condition_variable changed_;
    std::unique_ptr<PartText> waiting_;
    std::size_t num_running_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
    std::vector<BuiltPart> parts_;
    std::deque<std::unique_ptr<PartText>> texts_;    // that are to be built elsewhere
    std::vector<WordList> word_lists_;               // of each part
    std::vector<std::vector<std::uint32_t>> ranks_;  // of each part's words in the dictionary
    std::vector<std::vector<std::uint8_t>> pieces_;  // of the section
    std::size_t next_piece_ = 0;
};

}  // namespace gompfs
