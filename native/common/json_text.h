// Text and bytes in JSON.
#pragma once

#include <string>
#include <string_view>

namespace gompfs {

// Appends a string of JSON with its quotes. The text must be UTF-8.
void append_json_string(std::string& output, std::string_view text);

// Appends a part of a string of JSON. The part may begin and end inside a character.
void append_json_characters(std::string& output, std::string_view text);

// Appends bytes in base64, without quotes.
void append_base64(std::string& output, std::string_view bytes);

}  // namespace gompfs
