// Collects what was found; see search_result.h.
#include "search/search_result.h"

#include <utility>

#include "search/print/json_sink.h"
#include "search/print/text_sink.h"

namespace gompfs::search {

void SearchTotals::add(const FileCounts& counts) {
    num_matches += counts.num_matches;
    num_matched_lines += counts.num_lines;
    num_bytes += counts.num_bytes;
    num_bytes_printed += counts.num_bytes_printed;
    ++num_files;
    num_files_with_matches += counts.num_matched_lines != 0;
}

void SearchTotals::add(const SearchTotals& other) {
    num_matches += other.num_matches;
    num_matched_lines += other.num_matched_lines;
    num_files += other.num_files;
    num_files_with_matches += other.num_files_with_matches;
    num_bytes += other.num_bytes;
    num_bytes_printed += other.num_bytes_printed;
}

void SearchResult::take_output(LineSink& sink) {
    LineSink::Output output = sink.take_output();
    found.output = std::move(output.text);
    needs_separator = output.needs_separator;
}

std::unique_ptr<LineSink> make_sink(const SearchOptions& options, std::size_t max_output,
                                    std::function<void()> when_full) {
    if (options.output() == SearchOptions::Output::json) {
        return std::make_unique<JsonSink>(options, max_output, std::move(when_full));
    }
    return std::make_unique<TextSink>(options, max_output, std::move(when_full));
}

}  // namespace gompfs::search
