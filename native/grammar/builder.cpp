// Builds the grammar of many files; see builder.h.
//
// From text to a section
//
// 1. TextCollector cuts the text of the files into parts of 8 MiB (text_collector.h).
// 2. A part is handed to a background thread, whose PartBuilder numbers the words and builds the
// rules
//   (part_builder.h); or the caller does that (external_rules.h).
// 3. After the last file, the word lists of all parts are merged into one dictionary, and the
//   pieces of the section are written (part_merger.h).
//
// Memory
//
// One part is collected, one waits, and each thread has one, so memory is bounded by the number of
// threads, apart from the finished parts in their compact form.
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
      tokenizer_(std::move(tokenizer)),
      collector_(tokenizer_,
                 [this](std::unique_ptr<PartText> text) { dispatch(std::move(text)); }) {
    if (!external_rules) {
        building_.emplace(num_threads_, std::size_t{1}, [this] {
            const auto parts = std::make_shared<PartBuilder>(builder_, tokenizer_);
            return [parts](std::unique_ptr<PartText> text) { return parts->build(*text); };
        });
    }
}

void GrammarBuilder::begin_file(std::uint64_t ino) { collector_.begin_file(ino); }

void GrammarBuilder::add_bytes(std::string_view bytes) { collector_.add_bytes(bytes); }

void GrammarBuilder::end_file() { collector_.end_file(); }

// Hands the text of a part to the threads, or to the queue of parts for external rules.
void GrammarBuilder::dispatch(std::unique_ptr<PartText> text) {
    text->number = num_parts_++;
    if (building_) {
        building_->push(std::move(text), 1);
    } else {
        const std::lock_guard lock(mutex_);
        parts_.emplace_back();
        texts_.push_back(std::move(text));
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

void GrammarBuilder::finish() {
    collector_.flush();
    if (building_) {
        parts_ = building_->pop_all();
        building_.reset();  // frees the memory of its threads, which the merge needs
    }
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
    if (building_) {
        parts_ = building_->pop_all();
    }
    num_parts_ = 0;
    return merge_to_grammar(std::exchange(parts_, {}), tokenizer_.rule(), num_threads_);
}

}  // namespace gompfs
