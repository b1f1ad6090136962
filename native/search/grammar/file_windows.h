// The lines of a file that match, and may match, as windows (line_windows.h) of all of its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "search/grammar/line_windows.h"

namespace gompfs::search {

class FileWindows {
  public:
    // Whole lines, some of which match; others only where a part ends.
    struct Window {
        std::string_view text;
        std::uint64_t file_offset;
        std::uint64_t num_line_feeds;  // before it, if they were counted
    };

    // Adds the next piece of the file, which is one of the part, and has so many bytes. Returns
    // false if that is not possible.
    bool add(std::shared_ptr<const PartWindows> part, std::size_t piece, std::uint64_t size);
    // Ends the file.
    void finish() { add_pending(); }

    const std::vector<Window>& windows() const { return windows_; }

  private:
    void add_pending();

    std::vector<Window> windows_;
    std::vector<std::shared_ptr<const PartWindows>> parts_;
    std::list<std::string> lines_;  // that are in several parts
    std::uint64_t size_ = 0;        // of the pieces that were added
    // The beginning of a line that goes on in the next part, if the last piece went on.
    bool goes_on_ = false;
    std::string pending_;
    std::uint64_t pending_offset_ = 0;
    std::uint64_t num_line_feeds_ = 0;  // before the pending line
};

}  // namespace gompfs::search
