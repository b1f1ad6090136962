// The lines of statistics: fields that tabs separate, one for each column of a task.
//
// All fields after the first ones may be items of one kind: the files of a word, for example. A
// number and a space may be in front of each item (see gompfs/statistics/records.py).
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/cancellation.h"

namespace gompfs {

enum class FieldType : std::uint8_t {
    word,
    ngram,  // words, separated by spaces
    path,   // escaped, see gompfs/statistics/paths.py
    count,
    score,
};

struct Field {
    std::string name;
    FieldType type;
};

struct LineFormat {
    std::vector<Field> fields;    // the first fields of each line
    std::string items;            // what all others are called together
    std::optional<Field> value;   // of an item; none: a line has no others
    std::optional<Field> weight;  // the number in front of it
};

// Returns the text up to `end`, and removes it and `end` from `rest`.
inline std::string_view cut_off(std::string_view& rest, char end) {
    const std::size_t size = std::min(rest.find(end), rest.size());
    const std::string_view field = rest.substr(0, size);
    rest.remove_prefix(std::min(size + 1, rest.size()));
    return field;
}

// Return the value of a field, which is only that. Throw std::invalid_argument.
std::uint64_t count_of(std::string_view digits);
double score_of(std::string_view digits);

std::string unescaped(std::string_view path);

// The fields of a line, one after another.
class FieldReader {
  public:
    explicit FieldReader(std::string_view line) : rest_(line) {}

    bool next(std::string_view& field) {
        if (is_at_end_) {
            return false;
        }
        is_at_end_ = rest_.find('\t') == rest_.npos;
        field = cut_off(rest_, '\t');
        return true;
    }

  private:
    std::string_view rest_;
    bool is_at_end_ = false;
};

// Calls visitor.begin_line(fields) for each line, visitor.item(value, weight) for each of its
// items, and visitor.end_line(). Throws std::invalid_argument if a line has not the format: words
// of a hostile archive may contain tabs and line feeds.
template <typename Visitor>
void read_lines(std::string_view text, const LineFormat& format, Visitor& visitor) {
    std::vector<std::string_view> fields(format.fields.size());
    CancellationPoint point;
    while (!text.empty()) {
        point();
        FieldReader reader(cut_off(text, '\n'));
        for (std::string_view& field : fields) {
            if (!reader.next(field)) {
                throw std::invalid_argument("a line with too few fields");
            }
        }
        visitor.begin_line(fields);
        for (std::string_view value, weight; reader.next(value);) {
            if (!format.value) {
                throw std::invalid_argument("a line with too many fields");
            }
            if (format.weight) {
                weight = cut_off(value, ' ');
            }
            visitor.item(value, weight);
        }
        visitor.end_line();
    }
}

}  // namespace gompfs
