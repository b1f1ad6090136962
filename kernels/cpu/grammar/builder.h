// Builds the grammar of the text of many files, in bounded memory and on several threads.
#pragma once

#include <condition_variable>
#include <cstdint>
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

#include "grammar/grammar.h"
#include "grammar/tokenizer.h"
#include "grammar/word_list.h"

namespace gompfs {

// Some parts in words, one behind the other, whose rules are built elsewhere.
struct PartsInWords {
    std::vector<std::size_t> numbers;      // of the parts
    std::vector<Symbol> symbols;           // words, numbered in each part, and splitters
    std::vector<std::uint32_t> starts{0};  // of each part in symbols, and the end
    std::vector<std::uint32_t> num_words;  // of each part
};

// The rules of all these parts, one behind the other: rule r ends at ends[r] in symbols, and those
// of the part at index p begin with number places[p].
struct PartsInRules {
    std::span<const Symbol> symbols;
    std::span<const std::uint32_t> ends;
    std::span<const std::uint32_t> places;  // and the end
};

// Files are collected until their text fills a part. Each part is a thread's work: it cuts the text
// into words, numbers them, and builds a grammar. Parts only share the dictionary.
class GrammarBuilder {
  public:
    // `rules_elsewhere`: who uses the builder takes the words of each part, and gives the rules.
    GrammarBuilder(BuilderKind builder, std::vector<std::uint8_t> word_characters,
                   unsigned num_threads, bool rules_elsewhere = false);
    ~GrammarBuilder();
    GrammarBuilder(const GrammarBuilder&) = delete;
    GrammarBuilder& operator=(const GrammarBuilder&) = delete;

    // A file in pieces. Throws std::logic_error for calls that are not in this order.
    void begin_file(std::uint64_t ino);
    void add_bytes(std::string_view bytes);
    void end_file();

    // Parts whose rules are to be built elsewhere, `most` at most; nothing while fewer than `least`
    // wait, or none. All have been taken when that is so for 1 after finish().
    std::optional<PartsInWords> take_words(std::size_t least, std::size_t most);
    // The rules of parts that were taken. Throws std::invalid_argument for rules that are not
    // theirs.
    void give_rules(const std::vector<std::size_t>& numbers, const PartsInRules& rules);

    // No more files: the grammar section of all is ready as soon as the rules are, and next_piece
    // gives it piece by piece.
    void finish();
    std::optional<std::vector<std::uint8_t>> next_piece();

    // For a builder of the kind `none`, at any time instead: what it took since the last call, for
    // counting. Of a file that is not complete the rest comes with the next call.
    Grammar take();

  private:
    struct Text {
        std::size_t number;
        bool continues = false;
        std::string bytes;
        std::vector<std::uint64_t> inos;
        std::vector<std::size_t> ends;  // of each file, in bytes
    };

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
    void build_part(const Text& text, Workspace& workspace);
    void add_rules(BuiltPart& part, Rules rules) const;

    const BuilderKind builder_;
    const unsigned num_threads_;
    const bool rules_elsewhere_;
    const Tokenizer tokenizer_;
    const bool words_of_characters_;
    std::unique_ptr<Text> text_;  // collected now
    bool in_file_ = false;
    std::size_t next_cut_ = 0;  // the size of text_ at which the present file is cut
    std::size_t searched_ =
        0;  // bytes of text_ that are known to hold no place to cut the present file

    std::mutex mutex_;
    std::condition_variable changed_;
    std::unique_ptr<Text> waiting_;
    std::size_t num_running_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
    std::vector<BuiltPart> parts_;
    std::vector<std::pair<std::size_t, std::vector<Symbol>>> words_;  // parts that lack rules
    std::vector<WordList> word_lists_;                                // of each part
    std::vector<std::vector<std::uint32_t>> ranks_;  // of each part's words in the dictionary
    std::vector<std::vector<std::uint8_t>> pieces_;  // what comes before the parts
    std::size_t next_piece_ = 0;
};

}  // namespace gompfs
