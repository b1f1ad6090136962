// Builds the grammar of many files; see builder.h.
//
// From text to a section
//
// 1. Files are appended to the text of a part (begin_file, add_bytes, end_file). When the text has
//   8 MiB the part is handed to a worker thread (dispatch); a larger file is cut after a complete
//   word and continues in the next part (cut_file). Cuts depend on the text only, not on the pieces
//   in which it arrives or on timing.
// 2. A worker tokenizes the text, numbers the words in the order of first occurrence, builds rules
//   with Re-Pair or Sequitur, sorts the words, and renumbers them so that the section gets small
//   (build_part).
// 3. After the last file, the word lists of all parts are merged into one dictionary, and the
//   pieces of the section are written (merge).
//
// Memory
//
// One part is collected, one waits, and each worker has one, so memory is bounded by the number of
// threads, apart from the finished parts in their compact form. A failure in a worker is kept and
// thrown from the next call.
#include "grammar/builder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "common/failures.h"
#include "common/parallel.h"
#include "grammar/numbers.h"
#include "grammar/repair.h"
#include "grammar/sequitur.h"
#include "grammar/word_head.h"
#include "grammar/word_table.h"

namespace gompfs {
namespace {

// Parts four times as large make the section 2% smaller, but the build takes 20% longer because its
// data no longer fits into the processor's caches.
constexpr std::size_t kPartSize = 8 << 20;
constexpr std::size_t kMinCutDistance = 1 << 20;
constexpr std::size_t kMaxFilesOfPart = 1 << 20;

// The words of a text, numbered in the order of first occurrence, and the text as these numbers.
struct Tokens {
    WordTable words{1 << 16};
    std::vector<Symbol> symbols;

    void clear() {
        words.clear();
        symbols.clear();
    }
};

void tokenize(const Tokenizer& tokenizer, std::string_view text, Tokens& tokens) {
    // The hashes of several words are computed before the first of them is looked up, so that their
    // slots are prefetched.
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

// The numbers of the words, in byte order of the words.
std::vector<std::uint32_t> sort_words(const std::vector<std::string_view>& words) {
    std::vector<WordHead> heads;
    heads.reserve(words.size());
    for (const std::string_view word : words) {
        heads.emplace_back(word, static_cast<std::uint32_t>(heads.size()));
    }
    sort_heads(heads, words);
    std::vector<std::uint32_t> sorted(words.size());
    std::transform(heads.begin(), heads.end(), sorted.begin(),
                   [](const WordHead& head) { return head.number; });
    return sorted;
}

WordList list_words(const std::vector<std::string_view>& words,
                    const std::vector<std::uint32_t>& sorted) {
    WordList list;
    for (const std::uint32_t word : sorted) {
        list.append(words[word]);
    }
    return list;
}

// Renumbers the words of a part so that frequent words have small numbers, and words of similar
// frequency are in byte order: both make the section smaller. `sorted` has the words in byte order;
// the result maps new numbers to indexes in it.
std::vector<std::uint32_t> order_words(const std::vector<std::uint32_t>& sorted, Rules& rules) {
    const auto num_words = static_cast<std::uint32_t>(sorted.size());
    std::vector<std::uint32_t> counts(num_words);
    for (const Symbol symbol : rules.symbols) {
        if (symbol < num_words) {
            ++counts[symbol];
        }
    }
    constexpr int kNumClasses = 33;
    std::array<std::uint32_t, kNumClasses + 1> next{};  // by rarity: next number of its class
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

[[noreturn]] void refuse() {
    throw std::invalid_argument("the rules do not belong to the text that was taken");
}

// The words of the part at an index. Throws if their bounds are not valid.
std::vector<std::string_view> take_words(const PartsInRules& all, std::size_t index) {
    const std::uint32_t begin = all.part_words[index], end = all.part_words[index + 1];
    if (begin > end || end > all.word_ends.size()) {
        refuse();
    }
    std::vector<std::string_view> words;
    words.reserve(end - begin);
    std::uint32_t from = begin == 0 ? 0 : all.word_ends[begin - 1];
    for (std::uint32_t word = begin; word < end; ++word) {
        const std::uint32_t to = all.word_ends[word];
        if (to <= from || to > all.word_bytes.size()) {
            refuse();
        }
        words.emplace_back(all.word_bytes.data() + from, to - from);
        from = to;
    }
    return words;
}

// The rules of the part at an index. Throws if their bounds are not valid.
Rules take_rules(const PartsInRules& all, std::size_t index) {
    const std::uint32_t begin = all.part_rules[index], end = all.part_rules[index + 1];
    if (begin >= end || end > all.rule_ends.size()) {
        refuse();
    }
    const std::uint32_t from = begin == 0 ? 0 : all.rule_ends[begin - 1];
    Rules rules;
    rules.starts.push_back(0);
    for (std::uint32_t rule = begin; rule < end; ++rule) {
        if (all.rule_ends[rule] < from + rules.starts.back() ||
            all.rule_ends[rule] > all.symbols.size()) {
            refuse();
        }
        rules.starts.push_back(all.rule_ends[rule] - from);
    }
    rules.symbols.assign(all.symbols.begin() + from, all.symbols.begin() + all.rule_ends[end - 1]);
    return rules;
}

// The number of words that rules stand for. Throws if they are not the grammar of num_files files.
std::uint64_t count_tokens(const Rules& rules, std::uint64_t num_words, std::size_t num_files) {
    const std::uint32_t num_rules = rules.size();
    std::vector<std::uint64_t> sizes(num_rules);
    std::size_t num_splitters = 0;
    for (std::uint32_t rule = num_rules; rule-- > 0;) {
        for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
            const Symbol symbol = rules.symbols[at];
            const std::uint64_t used = symbol - num_words;
            if (symbol == kSplitter && rule == 0) {
                ++num_splitters;
            } else if (symbol < num_words) {
                ++sizes[rule];
            } else if (used > rule && used < num_rules && sizes[used] < kMaxTokens / 2) {
                sizes[rule] += sizes[used];
            } else {
                refuse();
            }
        }
    }
    if (num_splitters != num_files || rules.symbols[rules.starts[1] - 1] != kSplitter) {
        refuse();
    }
    return sizes[0];
}

}  // namespace

// Working memory of a thread, kept from part to part.
struct GrammarBuilder::Workspace {
    Tokens tokens;
    Repair repair;
};

GrammarBuilder::GrammarBuilder(BuilderKind builder, std::vector<std::uint8_t> word_characters,
                               unsigned num_threads, bool external_rules)
    : builder_(builder),
      num_threads_(std::max(num_threads, 1u)),
      external_rules_(external_rules),
      tokenizer_(word_characters),
      words_of_characters_(!word_characters.empty()),
      text_(std::make_unique<PartText>()) {
    for (unsigned number = 0; number < num_threads_ && !external_rules_; ++number) {
        threads_.emplace_back([this] { work(); });
    }
}

GrammarBuilder::~GrammarBuilder() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    cancellation_.cancel();
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void GrammarBuilder::require(bool in_file) const {
    if (in_file != in_file_ || finished_) {
        throw std::logic_error(
            "files must be added one after another, before the grammar is finished");
    }
}

void GrammarBuilder::begin_file(std::uint64_t ino) {
    require(false);
    in_file_ = true;
    if (text_->bytes.size() >= kPartSize || text_->inos.size() >= kMaxFilesOfPart) {
        dispatch();
    }
    text_->inos.push_back(ino);
    text_->bytes.reserve(kPartSize + kMinCutDistance);
    search_from(text_->bytes.size());
}

void GrammarBuilder::add_bytes(std::string_view bytes) {
    require(true);
    while (!bytes.empty()) {
        const std::size_t size = std::min(bytes.size(), next_cut_ - text_->bytes.size());
        text_->bytes.insert(text_->bytes.end(), bytes.begin(),
                            bytes.begin() + static_cast<std::ptrdiff_t>(size));
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

// Sets the size of the text at which the present file is cut next. It depends on the text alone,
// not on the pieces in which the text arrives.
void GrammarBuilder::search_from(std::size_t size) {
    searched_ = size;
    next_cut_ = std::max(kPartSize, size + kMinCutDistance);
}

// Hands on the text up to the last position after a complete word of the present file.
void GrammarBuilder::cut_file() {
    const std::string_view fresh = text_->view().substr(searched_);
    const std::size_t complete = searched_ + tokenizer_.complete_prefix(fresh);
    if (complete == searched_) {
        search_from(text_->bytes.size());
        return;
    }
    const std::uint64_t ino = text_->inos.back();
    const std::string rest(text_->view().substr(complete));
    text_->bytes.resize(complete);
    text_->ends.push_back(complete);
    dispatch();
    text_->continues = true;
    text_->inos.push_back(ino);
    text_->bytes.assign(rest.begin(), rest.end());
    search_from(rest.size());
}

// Hands the collected text to a worker, or to the queue of parts for external rules. Waits while
// all workers are busy and another text is already waiting.
void GrammarBuilder::dispatch() {
    std::unique_lock lock(mutex_);
    wait_unless_cancelled(changed_, lock, [&] { return waiting_ == nullptr || failure_; });
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    text_->number = parts_.size();
    parts_.emplace_back();
    word_lists_.emplace_back();
    std::unique_ptr<PartText> text = std::exchange(text_, std::make_unique<PartText>());
    if (external_rules_) {
        texts_.push_back(std::move(text));
    } else {
        waiting_ = std::move(text);
        changed_.notify_all();
    }
}

void GrammarBuilder::work() {
    const CancellationScope scope(&cancellation_);
    Workspace workspace;
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return waiting_ != nullptr || stopping_; });
        if (waiting_ == nullptr) {
            return;
        }
        const std::unique_ptr<PartText> text = std::move(waiting_);
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

void GrammarBuilder::build_part(const PartText& text, Workspace& workspace) {
    Tokens& tokens = workspace.tokens;
    tokens.clear();
    std::size_t start = 0;
    for (const std::size_t end : text.ends) {
        throw_if_cancelled();
        tokenize(tokenizer_, text.view().substr(start, end - start), tokens);
        tokens.symbols.push_back(kSplitter);
        start = end;
    }
    BuiltPart part;
    part.head.continues = text.continues;
    part.head.inos = text.inos;
    part.head.num_tokens = tokens.symbols.size() - text.inos.size();
    const auto& words = tokens.words.words();
    const auto num_words = static_cast<std::uint32_t>(words.size());
    throw_if_cancelled();
    part.sorted_words = sort_words(words);
    WordList list = list_words(words, part.sorted_words);
    throw_if_cancelled();
    add_rules(part, build_rules(builder_, workspace.repair, tokens.symbols, num_words));
    const std::lock_guard lock(mutex_);
    parts_[text.number] = std::move(part);
    word_lists_[text.number] = std::move(list);
}

void GrammarBuilder::add_rules(BuiltPart& part, Rules rules) const {
    part.head.words = order_words(part.sorted_words, rules);
    part.sorted_words = {};
    if (builder_ == BuilderKind::none) {
        part.root = std::move(rules);
    } else {
        part.rules = write_rules(rules, part.head.words.size());
    }
}

std::optional<PartsInText> GrammarBuilder::take_texts(std::size_t least, std::size_t most) {
    PartsInText parts;
    {
        const std::lock_guard lock(mutex_);
        if (texts_.empty() || texts_.size() < least) {
            return std::nullopt;
        }
        for (; !texts_.empty() && parts.texts.size() < most; texts_.pop_front()) {
            BuiltPart& part = parts_[texts_.front()->number];
            part.head.continues = texts_.front()->continues;
            part.head.inos = texts_.front()->inos;
            parts.texts.push_back(std::move(texts_.front()));
        }
    }
    std::size_t start = 0;
    for (const auto& text : parts.texts) {
        parts.part_files.push_back(static_cast<std::uint32_t>(parts.file_ends.size()));
        for (const std::size_t end : text->ends) {
            const std::size_t num_newlines = parts.file_ends.size() - parts.part_files.back();
            parts.file_ends.push_back(static_cast<std::uint32_t>(start + end + num_newlines));
        }
        start += text->bytes.size() + text->ends.size();
    }
    parts.part_files.push_back(static_cast<std::uint32_t>(parts.file_ends.size()));
    if (start >= std::size_t{1} << 32) {
        throw std::length_error("a word of several gigabytes is too much for a device");
    }
    return parts;
}

std::vector<std::size_t> PartsInText::numbers() const {
    std::vector<std::size_t> numbers;
    for (const auto& text : texts) {
        numbers.push_back(text->number);
    }
    return numbers;
}

void PartsInText::move_to(std::span<std::uint8_t> bytes, unsigned num_threads) {
    if (bytes.size() != size()) {
        throw std::invalid_argument("the memory does not have the size of the text");
    }
    parallel_for(texts.size(), num_threads, [&](std::size_t part) {
        const std::unique_ptr<PartText> text = std::move(texts[part]);
        const std::uint32_t file = part_files[part];
        std::uint8_t* out = bytes.data() + (file == 0 ? 0 : file_ends[file - 1] + std::size_t{1});
        std::size_t start = 0;
        for (const std::size_t end : text->ends) {
            out = std::copy(text->bytes.data() + start, text->bytes.data() + end, out);
            *out++ = '\n';
            start = end;
        }
    });
}

void GrammarBuilder::give_rules(const std::vector<std::size_t>& numbers,
                                const PartsInRules& rules) {
    const auto are_bounds = [&](std::span<const std::uint32_t> bounds, std::size_t end) {
        return bounds.size() == numbers.size() + 1 && bounds.front() == 0 && bounds.back() == end;
    };
    if (!are_bounds(rules.part_words, rules.word_ends.size()) ||
        !are_bounds(rules.part_rules, rules.rule_ends.size())) {
        refuse();
    }
    std::vector<BuiltPart> parts;
    std::vector<WordList> lists(numbers.size());
    {
        const std::lock_guard lock(mutex_);
        for (const std::size_t number : numbers) {
            parts.push_back(std::move(parts_.at(number)));
        }
    }
    parallel_for_all(parts.size(), num_threads_, [&](std::size_t index) {
        give_part(parts[index], lists[index], rules, index);
    });
    const std::lock_guard lock(mutex_);
    for (std::size_t index = 0; index < numbers.size(); ++index) {
        parts_[numbers[index]] = std::move(parts[index]);
        word_lists_[numbers[index]] = std::move(lists[index]);
    }
}

void GrammarBuilder::give_part(BuiltPart& part, WordList& list, const PartsInRules& rules,
                               std::size_t index) {
    const std::vector<std::string_view> words = take_words(rules, index);
    part.sorted_words = sort_words(words);
    for (std::size_t place = 1; place < words.size(); ++place) {
        if (words[part.sorted_words[place - 1]] == words[part.sorted_words[place]]) {
            refuse();
        }
    }
    list = list_words(words, part.sorted_words);
    Rules own = take_rules(rules, index);
    part.head.num_tokens = count_tokens(own, words.size(), part.head.inos.size());
    add_rules(part, std::move(own));
}

void GrammarBuilder::wait_until_built(std::unique_lock<std::mutex>& lock) {
    wait_unless_cancelled(changed_, lock,
                          [&] { return (waiting_ == nullptr && num_running_ == 0) || failure_; });
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
    for (std::thread& thread : threads_) {
        thread.join();  // frees its workspace; the merge needs the memory
    }
    threads_.clear();
    finished_ = true;
}

// Merges the dictionary of all parts and writes all pieces of the section.
void GrammarBuilder::merge() {
    if (!finished_ || std::any_of(parts_.begin(), parts_.end(),
                                  [](const BuiltPart& part) { return part.rules.empty(); })) {
        throw std::logic_error("a part has no rules");
    }
    merged_ = true;
    std::vector<DictionaryRange> ranges = merge_word_lists(word_lists_, num_threads_, ranks_);
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
    const std::size_t num_before = pieces_.size();
    pieces_.resize(num_before + 2 * parts_.size());
    parallel_for(parts_.size(), num_threads_, [&](std::size_t number) {
        BuiltPart part = std::move(parts_[number]);
        for (std::uint32_t& word : part.head.words) {
            word = ranks_[number][word];
        }
        ranks_[number] = {};
        pieces_[num_before + 2 * number] = write_part_head(part.head);
        pieces_[num_before + 2 * number + 1] = std::move(part.rules);
    });
}

std::optional<std::vector<std::uint8_t>> GrammarBuilder::next_piece() {
    if (!merged_) {
        merge();
    }
    if (next_piece_ == pieces_.size()) {
        return std::nullopt;
    }
    return std::move(pieces_[next_piece_++]);
}

Grammar GrammarBuilder::take() {
    if (builder_ != BuilderKind::none) {
        throw std::logic_error("only a builder without rules returns its grammar in memory");
    }
    if (!in_file_ && !text_->inos.empty()) {
        dispatch();
    }
    std::unique_lock lock(mutex_);
    wait_until_built(lock);
    const std::vector<DictionaryRange> ranges = merge_word_lists(word_lists_, num_threads_, ranks_);
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
