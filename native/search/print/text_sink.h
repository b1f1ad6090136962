// Writes what a search finds as text, byte for byte as ripgrep does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "search/print/line_sink.h"
#include "search/print/search_options.h"

namespace gompfs::search {

class TextSink : public LineSink {
  public:
    using LineSink::LineSink;

    void begin_file(std::string_view path) override;
    void matched(const FoundLines& lines) override { add_lines(lines, false); }
    void context(const FoundLines& line) override { add_lines(line, true); }
    void gap() override;
    void end_file(const FileCounts& counts) override;

    // What stands between the outputs of two files.
    static std::string separator(const SearchOptions& options);

  private:
    void begin_lines();
    void add_path();
    void add_path_field(std::string_view separator);
    void add_number(std::uint64_t number, std::string_view color);
    // What is printed before a line. The column is counted from 0.
    void add_prefix(std::uint64_t number, std::optional<std::size_t> column);
    void add_lines(const FoundLines& lines, bool is_context);
    void add_several(const FoundLines& lines);
    void add_matches(const FoundLines& lines);
    void add_matches_by_line(const FoundLines& lines);
    void add_each_match(const FoundLines& lines);
    void add_line_of_each_match(const FoundLines& lines);
    void add_line(std::string_view line, std::span<const Match> matches, std::size_t num_matches);
    void add_long_line(std::size_t num_matches);
    void add_colored(std::string_view line, std::span<const Match> matches);
    void add_binary_message(const FileCounts& counts);
    std::span<const Match> matches_of_line(const FoundLines& lines, const Match& match) const;
    std::string_view field_end() const { return is_context_ ? "-" : ":"; }
    bool is_too_long(std::string_view line) const {
        return options_.max_columns != 0 && line.size() > options_.max_columns;
    }

    std::string path_;
    bool has_lines_ = false;  // of the file
    // Of what is printed now: whether it is a line of context, and whether it is a single line.
    bool is_context_ = false, is_one_line_ = true;
};

}  // namespace gompfs::search
