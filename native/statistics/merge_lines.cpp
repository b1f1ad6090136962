// See merge_lines.h. The readers of all texts are in a priority queue, ordered by their lines.
#include "statistics/merge_lines.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <stdexcept>

#include "common/cancellation.h"
#include "statistics/line_fields.h"
#include "statistics/report.h"

namespace gompfs {
namespace {

constexpr std::size_t kLinesBetweenChecks = 1 << 12;  // for a cancellation

struct Line {
    std::string_view key, fields;
};

struct CountedLine {
    std::uint64_t count;
    std::string_view line;  // with its newline
};

bool is_path_before(std::string_view left, std::string_view right) {
    if (left.find('\\') == left.npos && right.find('\\') == right.npos) {
        return left < right;
    }
    return unescaped(left) < unescaped(right);
}

bool is_term_before(std::string_view left, std::string_view right) { return left < right; }

using IsBefore = bool (*)(std::string_view, std::string_view);

// The lines of a text, one after another.
class LineReader {
  public:
    LineReader(std::string_view text, IsBefore is_before) : rest_(text), is_before_(is_before) {}

    const Line& line() const { return line_; }

    // Reads the next line. Returns false at the end.
    bool next() {
        if (rest_.empty()) {
            return false;
        }
        if (rest_.find('\n') == rest_.npos) {
            throw std::invalid_argument("a line without an end");
        }
        std::string_view fields = cut_off(rest_, '\n');
        const std::string_view key = cut_off(fields, '\t');
        if (has_line_ && is_before_ != nullptr && !is_before_(line_.key, key)) {
            throw std::invalid_argument("lines that are not sorted");
        }
        line_ = {key, fields};
        has_line_ = true;
        return true;
    }

  private:
    std::string_view rest_;
    IsBefore is_before_;  // null: lines need not be sorted
    Line line_;
    bool has_line_ = false;
};

void append_line(std::string& text, const Line& line) {
    text.append(line.key).append("\t").append(line.fields).append("\n");
}

void append_sum(std::string& text, const std::vector<Line>& lines) {
    std::uint64_t sum = 0;
    for (const Line& line : lines) {
        const std::uint64_t count = count_of(line.fields);
        if (count > std::numeric_limits<std::uint64_t>::max() - sum) {
            throw std::invalid_argument("counts that exceed 64 bits");
        }
        sum += count;
    }
    text.append(lines.front().key).append("\t");
    append_count(text, sum);
    text.append("\n");
}

void append_joined(std::string& text, const std::vector<Line>& lines) {
    std::vector<std::string_view> paths;
    for (const Line& line : lines) {
        for (std::string_view rest = line.fields; !rest.empty();) {
            paths.push_back(cut_off(rest, '\t'));
        }
    }
    std::stable_sort(paths.begin(), paths.end(), is_path_before);
    text.append(lines.front().key);
    for (const std::string_view path : paths) {
        text.append("\t").append(path);
    }
    text.append("\n");
}

void append_ranked(std::string& text, const std::vector<Line>& lines, std::uint64_t top) {
    struct Item {
        std::uint64_t count;
        std::string_view path, field;
    };
    std::vector<Item> items;
    for (const Line& line : lines) {
        for (std::string_view rest = line.fields; !rest.empty();) {
            const std::string_view field = cut_off(rest, '\t');
            std::string_view path = field;
            const std::uint64_t count = count_of(cut_off(path, ' '));
            items.push_back({count, path, field});
        }
    }
    std::stable_sort(items.begin(), items.end(), [](const Item& left, const Item& right) {
        return left.count != right.count ? left.count > right.count
                                         : is_path_before(left.path, right.path);
    });
    items.resize(top == 0 ? items.size() : std::min<std::uint64_t>(top, items.size()));
    text.append(lines.front().key);
    for (const Item& item : items) {
        text.append("\t").append(item.field);
    }
    text.append("\n");
}

// Appends the line, or lines, that lines of one key become.
void append_merged(std::string& text, const std::vector<Line>& lines, LineMerge how,
                   std::uint64_t top) {
    if (lines.size() == 1) {
        append_line(text, lines.front());
    } else if (how == LineMerge::add_counts) {
        append_sum(text, lines);
    } else if (how == LineMerge::join_paths) {
        append_joined(text, lines);
    } else if (how == LineMerge::join_ranked_paths) {
        append_ranked(text, lines, top);
    } else {
        throw std::invalid_argument("two lines of the same file");
    }
}

std::vector<CountedLine> counted_lines(std::string_view text) {
    std::vector<CountedLine> lines;
    LineReader reader(text, nullptr);
    while (reader.next()) {
        const Line& line = reader.line();
        lines.push_back(
            {count_of(line.fields), {line.key.data(), line.key.size() + line.fields.size() + 2}});
    }
    return lines;
}

}  // namespace

std::string merge_lines(const std::vector<std::string_view>& texts, LineMerge how,
                        std::uint64_t top) {
    const IsBefore is_before = how == LineMerge::join_files ? is_path_before : is_term_before;
    std::vector<LineReader> readers;
    std::size_t size = 0;
    for (const std::string_view text : texts) {
        readers.emplace_back(text, is_before);
        size += text.size();
    }
    const auto is_after = [&](const LineReader* left, const LineReader* right) {
        return is_before(right->line().key, left->line().key);
    };
    std::priority_queue<LineReader*, std::vector<LineReader*>, decltype(is_after)> queue(is_after);
    for (LineReader& reader : readers) {
        if (reader.next()) {
            queue.push(&reader);
        }
    }
    std::string merged;
    merged.reserve(size);
    std::vector<Line> lines;
    for (std::size_t count = 0; !queue.empty(); ++count) {
        if (count % kLinesBetweenChecks == 0) {
            throw_if_cancelled();
        }
        lines.clear();
        do {
            LineReader* const reader = queue.top();
            queue.pop();
            lines.push_back(reader->line());
            if (reader->next()) {
                queue.push(reader);
            }
        } while (!queue.empty() && queue.top()->line().key == lines.front().key);
        append_merged(merged, lines, how, top);
    }
    return merged;
}

std::string sort_lines(std::string_view text) {
    std::vector<Line> lines;
    LineReader reader(text, nullptr);
    while (reader.next()) {
        lines.push_back(reader.line());
    }
    std::sort(lines.begin(), lines.end(),
              [](const Line& left, const Line& right) { return left.key < right.key; });
    throw_if_cancelled();
    std::string sorted;
    sorted.reserve(text.size());
    for (const Line& line : lines) {
        append_line(sorted, line);
    }
    return sorted;
}

std::string sort_lines_by_count(std::string_view text, std::uint64_t top) {
    std::vector<CountedLine> lines = counted_lines(text);
    std::stable_sort(
        lines.begin(), lines.end(),
        [](const CountedLine& left, const CountedLine& right) { return left.count > right.count; });
    throw_if_cancelled();
    lines.resize(top == 0 ? lines.size() : std::min<std::uint64_t>(top, lines.size()));
    std::string sorted;
    for (const CountedLine& line : lines) {
        sorted.append(line.line);
    }
    return sorted;
}

}  // namespace gompfs
