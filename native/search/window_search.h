// Searches a file of which only the lines that match were made (file_windows.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "search/file_walker.h"
#include "search/grammar/file_windows.h"
#include "search/match/matcher.h"
#include "search/print/search_options.h"

namespace gompfs::search {

// Whether the options ask for nothing but lines that match, and what is in them.
bool can_search_windows(const SearchOptions& options);

// As search_file(), for a file of `size` bytes.
FileCounts search_windows(const SearchOptions& options, MatchSession& session, LineSink& sink,
                          std::string_view path, const FileWindows& file, std::uint64_t size,
                          ContentRecord* record);

}  // namespace gompfs::search
