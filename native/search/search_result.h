// What was found in some files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "blocks/read_failure.h"
#include "search/print/line_sink.h"
#include "search/print/search_options.h"

namespace gompfs::search {

struct SearchTotals {
    std::uint64_t num_matches = 0, num_matched_lines = 0;
    std::uint64_t num_files = 0, num_files_with_matches = 0;
    std::uint64_t num_bytes = 0, num_bytes_printed = 0;

    // Adds a file.
    void add(const FileCounts& counts);
    void add(const SearchTotals& other);
};

// A file that could not be read; or that the pattern takes too long in, which `message` says.
struct FailedFile {
    std::string path;
    std::uint64_t ino;
    ReadFailure failure;
    std::string message = {};
};

struct Found {
    std::string output;
    std::vector<FailedFile> failed;
};

struct SearchResult {
    Found found;
    SearchTotals totals;
    bool needs_separator = false;

    // Takes what a sink wrote.
    void take_output(LineSink& sink);
};

// A sink for the output that the options ask for; see LineSink.
std::unique_ptr<LineSink> make_sink(const SearchOptions& options, std::size_t max_output,
                                    std::function<void()> when_full);

}  // namespace gompfs::search
