// Writes what a search finds as text, byte for byte as ripgrep does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "search/line_sink.h"
#include "search/search_options.h"

namespace gompfs::search {

class TextSink : public LineSink {
  public:
    explicit TextSink(const SearchOptions& options) : options_(options) {}

    void begin_file(std::string_view path) override;
    void matched(const FoundLines& lines) override;
    void context(const FoundLines& line) override;
    void gap() override;
    void end_file(const FileCounts& counts) override;
    std::string take_output() override;

    // What stands between the outputs of two files.
    static std::string_view separator(const SearchOptions& options);

  private:
    void add_path();
    void add_prefix(std::uint64_t line_number, std::optional<std::size_t> column, char separator);
    void add_line(std::string_view line, std::span<const Match> matches, bool is_context);
    void add_colored(std::string_view line, std::span<const Match> matches);
    void add_each_match(const FoundLines& lines);
    void add_omitted(std::size_t num_matches, bool is_context);
    bool is_too_long(std::string_view line) const {
        return options_.max_columns != 0 && line.size() > options_.max_columns;
    }

    const SearchOptions& options_;
    std::string output_;
    std::string path_;
};

}  // namespace gompfs::search
