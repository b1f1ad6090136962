// Builds the grammar of many files; see builder.h.
//
// From text to a section
//
// 1. TextCollector cuts the text of the files into parts of 8 MiB (text_collector.h).
// 2. A part is handed to a worker thread, whose PartBuilder numbers the words and builds the rules
//   (part_builder.h); or the caller does that (external_rules.h).
// 3. After the last file, the word lists of all parts are merged into one dictionary, and the
//   pieces of the section are written (part_merger.h).
//
// Memory
//
// One part is collected, one waits, and each worker has one, so memory is bounded by the number of
// threads, apart from the finished parts in their compact form. A failure in a worker is kept and
// thrown from the next call.
//
// Threads
//
// A builder has threads of its own and does not use those of WorkerPool. A part takes a thread for
// 0.2 s (Re-Pair) to 0.4 s (Sequitur), more than a hundred times as long as a batch of blocks, and
// a worker of the pool that has begun a part cannot help with anything else until it ends. So while
// a grammar is built, packing would encode blocks on one thread, and a mount that cuts text for
// statistics would decode a read's blocks on one thread. With threads of both kinds, the system's
// scheduler shares the processors between them.
#include "grammar/builder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/failures.h"
#include "grammar/part_merger.h"

namespace gompfs {

GrammarBuilder::GrammarBuilder(BuilderKind builder, Tokenizer tokenizer, unsigned num_threads,
                               bool external_rules)
    : builder_(builder),
      num_threads_(std::max(num_threads, 1u)),
      external_rules_(external_rules),
      tokenizer_(std::move(tokenizer)),
      collector_(tokenizer_,
                 [this](std::unique_ptr<PartText> text) { dispatch(std::move(text)); }) {
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

void GrammarBuilder::begin_file(std::uint64_t ino) { collector_.begin_file(ino); }

void GrammarBuilder::add_bytes(std::string_view bytes) { collector_.add_bytes(bytes); }

void GrammarBuilder::end_file() { collector_.end_file(); }

// Hands the text of a part to a worker, or to the queue of parts for external rules. Waits while
// all workers are busy and another text is already waiting.
void GrammarBuilder::dispatch(std::unique_ptr<PartText> text) {
    std::unique_lock lock(mutex_);
    wait_unless_cancelled(changed_, lock, [&] { return waiting_ == nullptr || failure_; });
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    text->number = parts_.size();
    parts_.emplace_back();
    if (external_rules_) {
        texts_.push_back(std::move(text));
    } else {
        waiting_ = std::move(text);
        changed_.notify_all();
    }
}

void GrammarBuilder::work() {
    const CancellationScope scope(&cancellation_);
    PartBuilder builder(builder_, tokenizer_);
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
        BuiltPart part;
        std::exception_ptr failure;
        try {
            part = builder.build(*text);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        parts_[text->number] = std::move(part);
        failure_ = failure_ ? failure_ : failure;
        --num_running_;
        changed_.notify_all();
    }
}

std::optional<PartsInText> GrammarBuilder::take_texts(std::size_t least, std::size_t most) {
    std::vector<std::unique_ptr<PartText>> texts;
    {
        const std::lock_guard lock(mutex_);
        if (texts_.empty() || texts_.size() < least) {
            return std::nullopt;
        }
        for (; !texts_.empty() && texts.size() < most; texts_.pop_front()) {
            BuiltPart& part = parts_[texts_.front()->number];
            part.head.continues = texts_.front()->continues;
            part.head.inos = texts_.front()->inos;
            texts.push_back(std::move(texts_.front()));
        }
    }
    return PartsInText(std::move(texts));
}

void GrammarBuilder::give_rules(const std::vector<std::size_t>& numbers,
                                const PartsInRules& rules) {
    check_num_parts(rules, numbers.size());
    std::vector<BuiltPart> parts;
    {
        const std::lock_guard lock(mutex_);
        for (const std::size_t number : numbers) {
            parts.push_back(std::move(parts_.at(number)));
        }
    }
    parallel_for_all(parts.size(), num_threads_, [&](std::size_t index) {
        set_external_rules(parts[index], builder_, rules, index);
    });
    const std::lock_guard lock(mutex_);
    for (std::size_t index = 0; index < numbers.size(); ++index) {
        parts_[numbers[index]] = std::move(parts[index]);
    }
}

void GrammarBuilder::wait_until_built(std::unique_lock<std::mutex>& lock) {
    wait_unless_cancelled(changed_, lock,
                          [&] { return (waiting_ == nullptr && num_running_ == 0) || failure_; });
    if (failure_) {
        std::rethrow_exception(failure_);
    }
}

void GrammarBuilder::finish() {
    collector_.flush();
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
    collector_.close();
}

std::optional<std::vector<std::uint8_t>> GrammarBuilder::next_piece() {
    if (!merged_) {
        const auto has_no_rules = [](const BuiltPart& part) { return part.rules.empty(); };
        if (!finished_ || std::any_of(parts_.begin(), parts_.end(), has_no_rules)) {
            throw std::logic_error("a part has no rules");
        }
        merged_ = true;
        pieces_ =
            merge_to_section(std::exchange(parts_, {}), builder_, tokenizer_.rule(), num_threads_);
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
    if (!finished_ && !collector_.is_in_file()) {
        collector_.flush();
    }
    std::unique_lock lock(mutex_);
    wait_until_built(lock);
    return merge_to_grammar(std::exchange(parts_, {}), tokenizer_.rule(), num_threads_);
}

}  // namespace gompfs
