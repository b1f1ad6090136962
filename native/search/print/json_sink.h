// Writes what a search finds in ripgrep's JSON Lines format.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "search/print/line_sink.h"
#include "search/print/search_options.h"

namespace gompfs::search {

// Appends {"text":"..."}, or {"bytes":"..."} in base64 if the bytes are not UTF-8. Calls end_step()
// after each piece of a large text.
void append_json_bytes(std::string& output, std::string_view bytes,
                       const std::function<void()>& end_step);

class JsonSink : public LineSink {
  public:
    using LineSink::LineSink;

    void begin_file(std::string_view path) override;
    void matched(const FoundLines& lines) override { add_lines("match", lines); }
    void context(const FoundLines& line) override { add_lines("context", line); }
    void gap() override {}
    void end_file(const FileCounts& counts) override;

  private:
    void add_lines(std::string_view type, const FoundLines& lines);

    std::string path_;  // as JSON
};

}  // namespace gompfs::search
