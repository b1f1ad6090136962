// Expands a range of a file's words; see words_report.h. A binary search in the root finds the
// first symbol; from there an explicit stack descends into rules and skips those that lie before
// the range.
#include "statistics/words_report.h"

#include <algorithm>

#include "grammar/rule_sizes.h"

namespace gompfs {

WordsReport::WordsReport(const std::vector<const Grammar*>& grammars, std::uint64_t ino,
                         std::uint64_t begin, std::uint64_t end) {
    for (const Grammar* grammar : grammars) {
        for (const Part& part : grammar->parts) {
            if (std::find(part.inos.begin(), part.inos.end(), ino) != part.inos.end()) {
                sizes_.push_back(rule_sizes(part));
                add_stretches(*grammar, part, ino);
            }
        }
    }
    const std::uint64_t size = stretches_.empty() ? 0 : stretches_.back().starts.back();
    end_ = std::min(end, size);
    begin_ = std::min(begin, end_);
}

void WordsReport::add_stretches(const Grammar& grammar, const Part& part, std::uint64_t ino) {
    std::uint64_t at = 0;
    for (const std::uint64_t its_ino : part.inos) {
        const std::uint64_t first = at;
        for (; part.rules.symbols[at] != kSplitter; ++at) {
        }
        if (its_ino == ino) {
            std::uint64_t start = stretches_.empty() ? 0 : stretches_.back().starts.back();
            Stretch stretch{&grammar, &part, first, {start}, sizes_.size() - 1};
            for (std::uint64_t symbol = first; symbol < at; ++symbol) {
                const std::uint64_t rule = part.rules.symbols[symbol] - part.words.size();
                start += part.rules.symbols[symbol] < part.words.size() ? 1 : sizes_.back()[rule];
                stretch.starts.push_back(start);
            }
            stretches_.push_back(std::move(stretch));
        }
        ++at;
    }
}

std::string WordsReport::piece(std::size_t index) const {
    std::string text;
    const std::uint64_t begin = begin_ + index * kWordsOfPiece;
    const std::uint64_t end = std::min(begin + kWordsOfPiece, end_);
    for (const Stretch& stretch : stretches_) {
        const std::uint64_t from = std::max(begin, stretch.starts.front());
        const std::uint64_t to = std::min(end, stretch.starts.back());
        if (from < to) {
            append_words(text, stretch, from, to);
        }
    }
    return text;
}

void WordsReport::append_words(std::string& text, const Stretch& stretch, std::uint64_t begin,
                               std::uint64_t end) const {
    const Part& part = *stretch.part;
    const Rules& rules = part.rules;
    const std::vector<std::uint64_t>& sizes = sizes_[stretch.sizes];
    // The symbol that contains the first word, and the stack of open rules. The stack is explicit
    // because rules can be nested as deeply as there are rules.
    const auto first = std::upper_bound(stretch.starts.begin(), stretch.starts.end(), begin) - 1;
    const auto number = static_cast<std::uint64_t>(first - stretch.starts.begin());
    std::vector<Range> open{
        {stretch.first_symbol + number, stretch.first_symbol + stretch.starts.size() - 1}};
    std::uint64_t to_skip = begin - *first;
    for (std::uint64_t left = end - begin; left != 0;) {
        if (open.back().at == open.back().end) {
            open.pop_back();
            continue;
        }
        const Symbol symbol = rules.symbols[open.back().at++];
        const bool is_word = symbol < part.words.size();
        const std::uint64_t rule = symbol - part.words.size();
        const std::uint64_t size = is_word ? 1 : sizes[rule];
        if (to_skip >= size) {
            to_skip -= size;
        } else if (is_word) {
            text.append(stretch.grammar->dictionary.word(part.words[symbol])).push_back('\n');
            --left;
        } else {
            open.push_back({rules.starts[rule], rules.starts[rule + 1]});
        }
    }
}

}  // namespace gompfs
