#include "grammar/report.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace gompfs {
namespace {

struct Line {
    std::string_view word;
    std::uint64_t count;
};

std::vector<Line> lines_by_word(const WordCounts& source) {
    std::vector<Line> lines;
    lines.reserve(source.counts->size());
    for (std::uint32_t number = 0; number < source.counts->size(); ++number) {
        if ((*source.counts)[number] != 0) {
            lines.push_back({source.dictionary->word(number), (*source.counts)[number]});
        }
    }
    return lines;
}

std::vector<Line> merge(const std::vector<Line>& left, const std::vector<Line>& right) {
    std::vector<Line> merged;
    merged.reserve(left.size() + right.size());
    auto other = right.begin();
    for (const Line& line : left) {
        for (; other != right.end() && other->word < line.word; ++other) {
            merged.push_back(*other);
        }
        merged.push_back(line);
        if (other != right.end() && other->word == line.word) {
            merged.back().count += (other++)->count;
        }
    }
    merged.insert(merged.end(), other, right.end());
    return merged;
}

}  // namespace

std::string word_count_report(const std::vector<WordCounts>& parts, bool by_count) {
    std::vector<Line> lines;
    for (const WordCounts& part : parts) {
        lines = lines.empty() ? lines_by_word(part) : merge(lines, lines_by_word(part));
    }
    if (by_count) {
        std::stable_sort(lines.begin(), lines.end(), [](const Line& left, const Line& right) {
            return left.count > right.count;
        });
    }
    std::string report;
    for (const Line& line : lines) {
        char digits[20];
        const char* const end = std::to_chars(digits, digits + sizeof digits, line.count).ptr;
        report.append(line.word).push_back('\t');
        report.append(digits, static_cast<std::size_t>(end - digits)).push_back('\n');
    }
    return report;
}

}  // namespace gompfs
