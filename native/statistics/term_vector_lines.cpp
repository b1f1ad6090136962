// Ranks and writes the words of a file; see term_vector_lines.h.
#include "statistics/term_vector_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "statistics/report.h"

namespace gompfs {
namespace {

void append_score(std::string& text, double score) {
    char digits[48];  // a count below 2^63, times a logarithm below 22
    text.append(
        digits,
        std::to_chars(digits, digits + sizeof digits, score, std::chars_format::fixed, 3).ptr);
}

}  // namespace

double TermVectorLines::score(const WordOfFile& word) const {
    return static_cast<double>(word.count) *
           std::log(static_cast<double>(scored_->num_files) /
                    static_cast<double>(scored_->by_word[word.word]));
}

void TermVectorLines::append(std::string& text, std::span<WordOfFile> words) const {
    std::stable_sort(
        words.begin(), words.end(), [this](const WordOfFile& left, const WordOfFile& right) {
            return scored_ != nullptr ? score(left) > score(right) : left.count > right.count;
        });
    text.append(corpus_.files[words[0].file].path);
    for (const WordOfFile& word : words.first(std::min<std::uint64_t>(words.size(), top_))) {
        text.push_back('\t');
        scored_ != nullptr ? append_score(text, score(word)) : append_count(text, word.count);
        text.append(" ").append(corpus_.words.word(word.word));
    }
    text.push_back('\n');
}

}  // namespace gompfs
