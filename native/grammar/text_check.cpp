// Compares text with a grammar; see text_check.h. The grammar is expanded one word at a time with a
// stack of open rules (next_word), so it is never expanded into memory. A rule that is used as the
// last symbol of another replaces it on the stack, so deep right recursion needs no space.
#include "grammar/text_check.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/cancellation.h"

namespace gompfs {
TextCheck::TextCheck(const Grammar* grammar, Tokenizer tokenizer)
    : grammar_(grammar), tokenizer_(std::move(tokenizer)) {
    if (grammar_ == nullptr) {
        return;
    }
    for (const Part& part : grammar_->parts) {
        std::vector<std::uint64_t>& splitters = splitters_.emplace_back();
        splitters.reserve(part.inos.size());
        for (std::uint64_t at = 0; at < part.rules.starts[1]; ++at) {
            if (part.rules.symbols[at] == kSplitter) {
                splitters.push_back(at);
            }
        }
    }
}

void TextCheck::begin(std::vector<PieceOfFile> pieces) {
    for (const auto& [part, file] : pieces) {
        if (part >= splitters_.size() || file >= splitters_[part].size()) {
            throw std::invalid_argument("the grammar does not have this piece of a file");
        }
    }
    pieces_ = std::move(pieces);
    next_piece_ = 0;
    levels_.clear();
    rest_.clear();
    number_ = 0;
    difference_.reset();
}

// A word is compared once it is known to have ended, that is, when a separator follows.
void TextCheck::add(std::string_view text) {
    if (difference_) {
        return;
    }
    if (!rest_.empty()) {
        const auto separator = std::find_if(text.begin(), text.end(), [this](char byte) {
            return is_separator(tokenizer_.rule(), byte);
        });
        rest_.append(text.begin(), separator);
        if (separator == text.end()) {
            return;
        }
        compare(rest_);
        rest_.clear();
        text.remove_prefix(static_cast<std::size_t>(separator - text.begin()));
    }
    const std::size_t complete = tokenizer_.complete_prefix(text);
    compare(text.substr(0, complete));
    rest_.assign(text.substr(complete));
}

std::optional<Difference> TextCheck::end() {
    compare(rest_);
    rest_.clear();
    if (!difference_) {
        if (const std::optional<std::string_view> word = next_word()) {
            difference_ = {number_, std::nullopt, std::string(*word)};
        }
    }
    return difference_;
}

void TextCheck::compare(std::string_view text) {
    CancellationPoint point;
    tokenizer_.for_each_word(text, [&](std::string_view word) {
        if (difference_) {
            return;
        }
        point();
        const std::optional<std::string_view> expected = next_word();
        if (expected != word) {
            difference_ = {number_, std::string(word), std::nullopt};
            if (expected) {
                difference_->in_grammar = *expected;
            }
        }
        ++number_;
    });
}

std::optional<std::string_view> TextCheck::next_word() {
    while (!levels_.empty() || enter_piece()) {
        Level& level = levels_.back();
        if (level.at == level.end) {
            levels_.pop_back();
            continue;
        }
        const Symbol symbol = part_->rules.symbols[level.at++];
        if (symbol < part_->words.size()) {
            return grammar_->dictionary.word(part_->words[symbol]);
        }
        const std::uint64_t rule = symbol - part_->words.size();
        if (level.at == level.end) {
            levels_.pop_back();
        }
        levels_.push_back({part_->rules.starts[rule], part_->rules.starts[rule + 1]});
    }
    return std::nullopt;
}

// Continues with the next piece: the symbols of the file in the root of the piece's part.
bool TextCheck::enter_piece() {
    if (next_piece_ == pieces_.size()) {
        return false;
    }
    const auto& [part, file] = pieces_[next_piece_++];
    part_ = &grammar_->parts[part];
    const std::vector<std::uint64_t>& splitters = splitters_[part];
    levels_.push_back({file == 0 ? 0 : splitters[file - 1] + 1, splitters[file]});
    return true;
}

bool has_short_rules(const Grammar& grammar) {
    return std::any_of(grammar.parts.begin(), grammar.parts.end(), [](const Part& part) {
        const auto& starts = part.rules.starts;
        for (std::uint32_t rule = 1; rule < part.rules.size(); ++rule) {
            if (starts[rule + 1] - starts[rule] < 2) {
                return true;
            }
        }
        return false;
    });
}

}  // namespace gompfs
