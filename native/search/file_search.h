// Searches one file whose bytes are in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/file_walker.h"
#include "search/match/matcher.h"
#include "search/print/search_options.h"

namespace gompfs::search {

// What a NUL means in a file that was named, or found in a directory.
NulMeaning nul_meaning(const SearchOptions& options, bool is_named);

// Searches a file whose bytes are in memory. Returns what was found. It is also added to a record,
// which may be nullptr. Throws SearchError; the sink has the lines before it then.
FileCounts search_file(const SearchOptions& options, NulMeaning meaning, MatchSession& session,
                       LineSink& sink, std::string_view path, std::string_view bytes,
                       ContentRecord* record = nullptr);

}  // namespace gompfs::search
