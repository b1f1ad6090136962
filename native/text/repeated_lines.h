// Estimates how much of the text of a part is in it twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gompfs {

// Looks at lines, in order; a long line counts as several. Lines that occur by themselves in
// different places, such as `return 0;`, are not counted: only kMinRun lines or more in a row that
// all occurred before.
class RepeatedLines {
  public:
    void clear();
    // Looks at the whole lines of `text` from `scanned()` on, until `scanned()` is at least `end`.
    // Without `is_end`, more text may follow, and the last line may be incomplete.
    void scan(std::string_view text, std::size_t end, bool is_end);

    std::size_t scanned() const { return scanned_; }
    std::size_t num_bytes() const { return num_bytes_; }  // that occurred before

  private:
    static constexpr std::size_t kMinRun = 4;
    static constexpr std::size_t kMaxLine = 256;
    static constexpr int kTableLog2 = 18;

    bool was_seen(std::string_view line);

    std::vector<std::uint32_t> table_;  // parts of hashes of lines
    std::size_t scanned_ = 0, num_bytes_ = 0;
    std::size_t run_lines_ = 0, run_bytes_ = 0;  // that occurred before, up to scanned_
};

}  // namespace gompfs
