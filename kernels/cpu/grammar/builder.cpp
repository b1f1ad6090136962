#include "grammar/builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "common/parallel.h"
#include "grammar/numbers.h"
#include "grammar/repair.h"
#include "grammar/sequitur.h"
#include "grammar/word_table.h"

namespace gompfs {
namespace {

// Parts four times as large make the section 2% smaller and the work 20% slower, as it leaves the
// caches.
constexpr std::size_t kPartSize = 8 << 20;
constexpr std::size_t kMinCutDistance = 1 << 20;
constexpr std::size_t kMaxFilesOfPart = 1 << 20;

// The words of a text, numbered in the order in which they come, and the text in those numbers.
struct Tokens {
    WordTable words{1 << 16};
    std::vector<Symbol> symbols;

    void clear() {
        words.clear();
        symbols.clear();
    }
};

void tokenize(const Tokenizer& tokenizer, std::string_view text, Tokens& tokens) {
    // Hashes of a few words are computed before the first is looked up, so that their slots are on
    // the way.
    constexpr std::size_t kBatch = 16;
    std::array<WordKey, kBatch> batch;
    std::size_t count = 0;
    const auto look_up = [&] {
        for (std::size_t index = 0; index < count; ++index) {
            tokens.symbols.push_back(tokens.words.find_or_add(batch[index]));
        }
        count = 0;
    };
    tokenizer.for_each_word(text, [&](std::string_view word) {
        batch[count] = WordKey(word);
        tokens.words.prefetch(batch[count]);
        if (++count == kBatch) {
            look_up();
        }
    });
    look_up();
}

// The numbers of words in byte order of the words.
std::vector<std::uint32_t> sort_words(const std::vector<std::string_view>& words) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> keys(words.size());
    for (std::uint32_t number = 0; number < words.size(); ++number) {
        keys[number] = {word_head(words[number]), number};
    }
    std::sort(keys.begin(), keys.end(), [&](const auto& left, const auto& right) {
        return left.first != right.first ? left.first < right.first
                                         : words[left.second] < words[right.second];
    });
    std::vector<std::uint32_t> sorted(words.size());
    std::transform(keys.begin(), keys.end(), sorted.begin(),
                   [](const auto& key) { return key.second; });
    return sorted;
}

// Numbers the words of a part anew, so that frequent ones have small numbers, and neighbours in
// byte order are neighbours where they are about as frequent: both keep the section small. `sorted`
// holds the words in byte order; the result leads from new numbers to places there.
std::vector<std::uint32_t> order_words(const std::vector<std::uint32_t>& sorted, Rules& rules) {
    const auto num_words = static_cast<std::uint32_t>(sorted.size());
    std::vector<std::uint32_t> counts(num_words);
    for (const Symbol symbol : rules.symbols) {
        if (symbol < num_words) {
            ++counts[symbol];
        }
    }
    constexpr int kNumClasses = 33;
    std::array<std::uint32_t, kNumClasses + 1> next{};  // by rarity: the next number of its class
    const auto rarity = [&](std::uint32_t word) { return 32 - std::bit_width(counts[word]); };
    for (std::uint32_t word = 0; word < num_words; ++word) {
        ++next[rarity(word) + 1];
    }
    for (int index = 1; index <= kNumClasses; ++index) {
        next[index] += next[index - 1];
    }
    std::vector<std::uint32_t> number(num_words), places(num_words);
    for (std::uint32_t place = 0; place < num_words; ++place) {
        number[sorted[place]] = next[rarity(sorted[place])]++;
        places[number[sorted[place]]] = place;
    }
    for (Symbol& symbol : rules.symbols) {
        symbol = symbol < num_words ? number[symbol] : symbol;
    }
    return places;
}

Rules build_rules(BuilderKind builder, Repair& repair, std::vector<Symbol>& symbols,
                  std::uint32_t num_words) {
    switch (builder) {
        case BuilderKind::repair:
            return repair.build(symbols, num_words);
        case BuilderKind::sequitur:
            return build_sequitur(symbols, num_words);
        case BuilderKind::none:
            break;
    }
    return {{0, symbols.size()}, symbols};
}

Dictionary expand(const std::vector<DictionaryRange>& ranges) {
    Dictionary dictionary;
    for (const DictionaryRange& range : ranges) {
        const std::uint8_t* length = range.suffix_lengths.data();
        auto suffix = range.suffixes.begin();
        std::size_t previous = 0;
        for (const std::uint8_t shared : range.shared_lengths) {
            const std::size_t start = dictionary.bytes.size();
            const auto rest = static_cast<std::ptrdiff_t>(read_number(length));
            dictionary.bytes.resize(start + shared);
            std::copy_n(dictionary.bytes.begin() + static_cast<std::ptrdiff_t>(previous), shared,
                        dictionary.bytes.begin() + static_cast<std::ptrdiff_t>(start));
            dictionary.bytes.insert(dictionary.bytes.end(), suffix, suffix + rest);
            suffix += rest;
            dictionary.starts.push_back(dictionary.bytes.size());
            previous = start;
        }
    }
    return dictionary;
}

}  // namespace

// What a thread needs for a part, kept from one to the next.
struct GrammarBuilder::Workspace {
    Tokens tokens;
    Repair repair;
};

GrammarBuilder::GrammarBuilder(BuilderKind builder, std::vector<std::uint8_t> word_characters,
                               unsigned num_threads)
    : builder_(builder),
      tokenizer_(word_characters),
      words_of_characters_(!word_characters.empty()),
      text_(std::make_unique<Text>()) {
    for (unsigned number = 0; number < std::max(num_threads, 1u); ++number) {
        threads_.emplace_back([this] { work(); });
    }
}

GrammarBuilder::~GrammarBuilder() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void GrammarBuilder::require(bool in_file) const {
    if (in_file != in_file_ || threads_.empty()) {
        throw std::logic_error("a grammar takes files one after another, until it is finished");
    }
}

void GrammarBuilder::begin_file(std::uint64_t ino) {
    require(false);
    in_file_ = true;
    if (text_->bytes.size() >= kPartSize || text_->inos.size() >= kMaxFilesOfPart) {
        dispatch();
    }
    text_->inos.push_back(ino);
    search_from(text_->bytes.size());
}

void GrammarBuilder::add_bytes(std::string_view bytes) {
    require(true);
    while (!bytes.empty()) {
        const std::size_t size = std::min(bytes.size(), next_cut_ - text_->bytes.size());
        text_->bytes.append(bytes.substr(0, size));
        bytes.remove_prefix(size);
        if (text_->bytes.size() == next_cut_) {
            cut_file();
        }
    }
}

void GrammarBuilder::end_file() {
    require(true);
    in_file_ = false;
    text_->ends.push_back(text_->bytes.size());
}

// The next place where the present file is cut depends on the text alone, not on the pieces it
// comes in.
void GrammarBuilder::search_from(std::size_t size) {
    searched_ = size;
    next_cut_ = std::max(kPartSize, size + kMinCutDistance);
}

// Hands on the text up to the last place where the present file has a whole word before it.
void GrammarBuilder::cut_file() {
    const std::string_view fresh = std::string_view(text_->bytes).substr(searched_);
    const std::size_t complete = searched_ + tokenizer_.complete_prefix(fresh);
    if (complete == searched_) {
        search_from(text_->bytes.size());
        return;
    }
    const std::uint64_t ino = text_->inos.back();
    const std::string rest = text_->bytes.substr(complete);
    text_->bytes.resize(complete);
    text_->ends.push_back(complete);
    dispatch();
    text_->continues = true;
    text_->inos.push_back(ino);
    text_->bytes = rest;
    search_from(rest.size());
}

// Gives the collected text to a thread; waits while all of them are busy and one more text is
// waiting.
void GrammarBuilder::dispatch() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ == nullptr || failure_; });
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    text_->number = parts_.size();
    parts_.emplace_back();
    word_lists_.emplace_back();
    waiting_ = std::exchange(text_, std::make_unique<Text>());
    changed_.notify_all();
}

void GrammarBuilder::work() {
    Workspace workspace;
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return waiting_ != nullptr || stopping_; });
        if (waiting_ == nullptr) {
            return;
        }
        const std::unique_ptr<Text> text = std::move(waiting_);
        ++num_running_;
        lock.unlock();
        changed_.notify_all();
        std::exception_ptr failure;
        try {
            build_part(*text, workspace);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        failure_ = failure_ ? failure_ : failure;
        --num_running_;
        changed_.notify_all();
    }
}

void GrammarBuilder::build_part(const Text& text, Workspace& workspace) {
    Tokens& tokens = workspace.tokens;
    tokens.clear();
    std::size_t start = 0;
    for (const std::size_t end : text.ends) {
        tokenize(tokenizer_, std::string_view(text.bytes).substr(start, end - start), tokens);
        tokens.symbols.push_back(kSplitter);
        start = end;
    }
    BuiltPart part;
    part.head.continues = text.continues;
    part.head.inos = text.inos;
    part.head.num_tokens = tokens.symbols.size() - text.inos.size();
    const auto& words = tokens.words.words();
    const auto num_words = static_cast<std::uint32_t>(words.size());
    Rules rules = build_rules(builder_, workspace.repair, tokens.symbols, num_words);
    const std::vector<std::uint32_t> sorted = sort_words(words);
    WordList list;
    for (const std::uint32_t word : sorted) {
        list.append(words[word]);
    }
    part.head.words = order_words(sorted, rules);
    if (builder_ == BuilderKind::none) {
        part.root = std::move(rules);
    } else {
        part.rules = write_rules(rules, num_words);
    }
    const std::lock_guard lock(mutex_);
    parts_[text.number] = std::move(part);
    word_lists_[text.number] = std::move(list);
}

void GrammarBuilder::wait_until_built(std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock, [&] { return (waiting_ == nullptr && num_running_ == 0) || failure_; });
    if (failure_) {
        std::rethrow_exception(failure_);
    }
}

void GrammarBuilder::finish() {
    require(false);
    if (!text_->inos.empty()) {
        dispatch();
    }
    {
        std::unique_lock lock(mutex_);
        wait_until_built(lock);
        stopping_ = true;
    }
    changed_.notify_all();
    const auto num_threads = static_cast<unsigned>(threads_.size());
    for (std::thread& thread : threads_) {
        thread.join();  // its workspace goes, which the merge has use for
    }
    threads_.clear();
    std::vector<DictionaryRange> ranges = merge_word_lists(word_lists_, num_threads, ranks_);
    word_lists_.clear();
    std::uint32_t num_words = 0;
    for (const DictionaryRange& range : ranges) {
        num_words += range.num_words;
    }
    pieces_.push_back(write_header(
        {words_of_characters_, builder_, num_words, static_cast<std::uint32_t>(parts_.size())}));
    for (const auto stream : {&DictionaryRange::shared_lengths, &DictionaryRange::suffix_lengths,
                              &DictionaryRange::suffixes}) {
        for (DictionaryRange& range : ranges) {
            pieces_.push_back(std::move(range.*stream));
        }
    }
}

std::optional<std::vector<std::uint8_t>> GrammarBuilder::next_piece() {
    const std::size_t index = next_piece_++;
    if (index < pieces_.size()) {
        return std::move(pieces_[index]);
    }
    const std::size_t number = index - pieces_.size();
    if (number >= parts_.size()) {
        return std::nullopt;
    }
    BuiltPart part = std::move(parts_[number]);
    for (std::uint32_t& word : part.head.words) {
        word = ranks_[number][word];
    }
    ranks_[number] = {};
    std::vector<std::uint8_t> piece = write_part_head(part.head);
    piece.insert(piece.end(), part.rules.begin(), part.rules.end());
    return piece;
}

Grammar GrammarBuilder::take() {
    if (builder_ != BuilderKind::none) {
        throw std::logic_error("only what has no rules is taken so");
    }
    if (!in_file_ && !text_->inos.empty()) {
        dispatch();
    }
    std::unique_lock lock(mutex_);
    wait_until_built(lock);
    const auto num_threads = static_cast<unsigned>(threads_.size());
    const std::vector<DictionaryRange> ranges = merge_word_lists(word_lists_, num_threads, ranks_);
    word_lists_.clear();
    Grammar grammar{words_of_characters_, builder_, expand(ranges), {}};
    for (std::size_t number = 0; number < parts_.size(); ++number) {
        Part& part = grammar.parts.emplace_back();
        static_cast<PartHead&>(part) = std::move(parts_[number].head);
        part.rules = std::move(parts_[number].root);
        for (std::uint32_t& word : part.words) {
            word = ranks_[number][word];
        }
    }
    parts_.clear();
    ranks_.clear();
    return grammar;
}

}  // namespace gompfs
