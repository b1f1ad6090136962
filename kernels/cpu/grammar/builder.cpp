#include "grammar/builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "common/parallel.h"
#include "grammar/repair.h"
#include "grammar/sequitur.h"

namespace gompfs {
namespace {

// Larger parts find more repetition, but take more memory (about seven times this) and leave the caches.
constexpr std::size_t kPartSize = 32 << 20;
constexpr std::size_t kMaxFilesOfPart = 1 << 20;

// The words of a text, numbered in the order in which they come, and the text in those numbers.
struct Tokens {
    WordTable words{1 << 16};
    std::vector<Symbol> symbols;
};

void tokenize(const Tokenizer& tokenizer, std::string_view text, Tokens& tokens) {
    // Hashes of a few words are computed before the first is looked up, so that their slots are on the way.
    constexpr std::size_t kBatch = 16;
    std::array<WordKey, kBatch> batch;
    std::size_t count = kBatch;
    while (count == kBatch) {
        count = 0;
        while (count < kBatch) {
            const std::string_view word = tokenizer.next(text);
            if (word.empty()) {
                break;
            }
            batch[count] = WordKey(word);
            tokens.words.prefetch(batch[count++]);
        }
        for (std::size_t index = 0; index < count; ++index) {
            tokens.symbols.push_back(tokens.words.find_or_add(batch[index], [](std::string_view word) { return word; }));
        }
    }
}

// Numbers the words of a part so that frequent ones have small numbers, and neighbours in the dictionary are
// neighbours where they are about as frequent: both keep the section small.
void order_words(Part& part) {
    const auto num_words = static_cast<std::uint32_t>(part.words.size());
    std::vector<std::uint32_t> counts(num_words);
    for (const Symbol symbol : part.rules.symbols) {
        if (symbol < num_words) {
            ++counts[symbol];
        }
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> order(num_words);
    for (std::uint32_t word = 0; word < num_words; ++word) {
        const std::uint64_t rarity = 32 - std::bit_width(counts[word]);
        order[word] = {rarity << 32 | part.words[word], word};
    }
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> number(num_words);
    for (std::uint32_t place = 0; place < num_words; ++place) {
        part.words[place] = static_cast<std::uint32_t>(order[place].first);
        number[order[place].second] = place;
    }
    for (Symbol& symbol : part.rules.symbols) {
        symbol = symbol < num_words ? number[symbol] : symbol;
    }
}

}  // namespace

GrammarBuilder::GrammarBuilder(BuilderKind builder, std::vector<std::uint8_t> word_characters, unsigned num_threads)
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

void GrammarBuilder::begin_file(std::uint64_t ino) {
    if (text_->bytes.size() >= kPartSize || text_->inos.size() >= kMaxFilesOfPart) {
        dispatch();
    }
    text_->inos.push_back(ino);
    searched_ = text_->bytes.size();
}

void GrammarBuilder::add_bytes(std::string_view bytes) {
    for (std::size_t start = 0; start < bytes.size();) {
        const std::size_t room = kPartSize - std::min(text_->bytes.size(), kPartSize);
        const std::size_t size = std::min(bytes.size() - start, std::max<std::size_t>(room, 1 << 20));
        text_->bytes.append(bytes.substr(start, size));
        start += size;
        if (text_->bytes.size() >= kPartSize) {
            cut_file();
        }
    }
}

void GrammarBuilder::end_file() { text_->ends.push_back(text_->bytes.size()); }

// Hands on the text up to the last place where the present file has a whole word before it.
void GrammarBuilder::cut_file() {
    const std::string_view fresh = std::string_view(text_->bytes).substr(searched_);
    const std::size_t complete = searched_ + tokenizer_.complete_prefix(fresh);
    if (complete == searched_) {
        searched_ = text_->bytes.size();
        return;
    }
    const std::uint64_t ino = text_->inos.back();
    const std::string rest = text_->bytes.substr(complete);
    text_->bytes.resize(complete);
    end_file();
    dispatch();
    text_->continues = true;
    text_->inos.push_back(ino);
    text_->bytes = rest;
    searched_ = rest.size();
}

// Gives the collected text to a thread; waits while all of them are busy and one more text is waiting.
void GrammarBuilder::dispatch() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ == nullptr || failure_; });
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    text_->number = parts_.size();
    parts_.emplace_back();
    waiting_ = std::exchange(text_, std::make_unique<Text>());
    changed_.notify_all();
}

void GrammarBuilder::work() {
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
            build_part(*text);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        failure_ = failure_ ? failure_ : failure;
        --num_running_;
        changed_.notify_all();
    }
}

void GrammarBuilder::build_part(const Text& text) {
    Part part;
    part.continues = text.continues;
    part.inos = text.inos;
    Tokens tokens;
    tokens.symbols.reserve(text.bytes.size() / 6 + text.inos.size());
    std::size_t start = 0;
    for (const std::size_t end : text.ends) {
        tokenize(tokenizer_, std::string_view(text.bytes).substr(start, end - start), tokens);
        tokens.symbols.push_back(kSplitter);
        start = end;
    }
    part.num_tokens = tokens.symbols.size() - text.inos.size();
    const auto& words = tokens.words.words();
    const auto num_words = static_cast<std::uint32_t>(words.size());
    part.rules = builder_ == BuilderKind::repair ? build_repair(std::move(tokens.symbols), num_words)
                                                 : build_sequitur(tokens.symbols, num_words);
    part.words.reserve(num_words);
    const std::lock_guard lock(mutex_);
    for (const std::string_view word : words) {
        part.words.push_back(words_.find_or_add(WordKey(word), [&](std::string_view fresh) { return arena_.keep(fresh); }));
    }
    parts_[text.number] = std::move(part);
}

// The words in byte order; ranks leads from their numbers to their places there.
Dictionary GrammarBuilder::sort_words(std::vector<std::uint32_t>& ranks) const {
    struct Key {
        std::uint64_t head;  // the first bytes, so that most comparisons need not follow the word
        std::uint32_t number;
    };
    const auto& words = words_.words();
    std::vector<Key> keys(words.size());
    for (std::uint32_t number = 0; number < words.size(); ++number) {
        std::uint64_t head = 0;
        std::memcpy(&head, words[number].data(), std::min<std::size_t>(words[number].size(), 8));
        keys[number] = {__builtin_bswap64(head), number};
    }
    const auto less = [&](const Key& left, const Key& right) {
        return left.head != right.head ? left.head < right.head : words[left.number] < words[right.number];
    };
    const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
    parallel_for(2, 2, [&](std::size_t half) {
        half == 0 ? std::sort(keys.begin(), middle, less) : std::sort(middle, keys.end(), less);
    });
    std::inplace_merge(keys.begin(), middle, keys.end(), less);
    Dictionary dictionary;
    ranks.resize(words.size());
    for (std::uint32_t rank = 0; rank < keys.size(); ++rank) {
        const std::string_view word = words[keys[rank].number];
        ranks[keys[rank].number] = rank;
        dictionary.bytes.insert(dictionary.bytes.end(), word.begin(), word.end());
        dictionary.starts.push_back(dictionary.bytes.size());
    }
    return dictionary;
}

std::vector<std::uint8_t> GrammarBuilder::finish() {
    if (!text_->inos.empty()) {
        dispatch();
    }
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return (waiting_ == nullptr && num_running_ == 0) || failure_; });
        if (failure_) {
            std::rethrow_exception(failure_);
        }
    }
    Grammar grammar;
    grammar.words_of_characters = words_of_characters_;
    grammar.builder = builder_;
    std::vector<std::uint32_t> ranks;
    grammar.dictionary = sort_words(ranks);
    std::vector<std::vector<std::uint8_t>> written(parts_.size());
    parallel_for(parts_.size(), static_cast<unsigned>(threads_.size()), [&](std::size_t index) {
        Part& part = parts_[index];
        for (std::uint32_t& word : part.words) {
            word = ranks[word];
        }
        order_words(part);
        written[index] = write_part(part);
        part = {};
    });
    std::vector<std::uint8_t> section = write_dictionary(grammar, parts_.size());
    for (const auto& bytes : written) {
        section.insert(section.end(), bytes.begin(), bytes.end());
    }
    return section;
}

}  // namespace gompfs
