// See line_fields.h.
#include "statistics/line_fields.h"

#include <charconv>

namespace gompfs {
namespace {

template <typename Number>
Number number_of(std::string_view digits, const char* what_is_missing) {
    Number number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [last, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || last != end) {
        throw std::invalid_argument(what_is_missing);
    }
    return number;
}

}  // namespace

std::uint64_t count_of(std::string_view digits) {
    return number_of<std::uint64_t>(digits, "a line without a count");
}

double score_of(std::string_view digits) {
    return number_of<double>(digits, "a line without a score");
}

std::string unescaped(std::string_view field) {
    std::string path;
    for (std::size_t index = 0; index < field.size(); ++index) {
        if (field[index] == '\\' && index + 1 < field.size()) {
            const char code = field[++index];
            path.push_back(code == 'n' ? '\n' : code == 't' ? '\t' : code);
        } else {
            path.push_back(field[index]);
        }
    }
    return path;
}

}  // namespace gompfs
