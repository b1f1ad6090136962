// The lines of statistics as JSON Lines: an object for each line.
#pragma once

#include <string>
#include <string_view>

#include "statistics/line_fields.h"

namespace gompfs {

// Returns a line of JSON for each line of `text`: an object with a member for each field, and an
// array of the items; if there is only one field, its value. An n-gram is an array of its words. A
// word or path is a string, or {"bytes":"..."} in base64 if it is not UTF-8. Throws
// std::invalid_argument if `text` has not the format.
std::string json_lines(std::string_view text, const LineFormat& format);

}  // namespace gompfs
