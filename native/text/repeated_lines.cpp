// Estimates repetition; see repeated_lines.h. The table forgets a line when another one needs its
// slot.
#include "text/repeated_lines.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gompfs {

void RepeatedLines::clear() {
    table_.assign(std::size_t{1} << kTableLog2, 0);
    scanned_ = num_bytes_ = run_lines_ = run_bytes_ = 0;
}

void RepeatedLines::scan(std::string_view text, std::size_t end, bool is_end) {
    while (scanned_ < std::min(end, text.size())) {
        const std::string_view line = text.substr(scanned_, kMaxLine);
        const void* const found = std::memchr(line.data(), '\n', line.size());
        if (found == nullptr && line.size() < kMaxLine && !is_end) {
            return;
        }
        const std::size_t size =
            found == nullptr
                ? line.size()
                : static_cast<std::size_t>(static_cast<const char*>(found) - line.data()) + 1;
        const bool is_repeated = was_seen(line.substr(0, size));
        run_lines_ = is_repeated ? run_lines_ + 1 : 0;
        run_bytes_ = is_repeated ? run_bytes_ + size : 0;
        num_bytes_ += run_lines_ > kMinRun ? size : run_lines_ == kMinRun ? run_bytes_ : 0;
        scanned_ += size;
    }
}

bool RepeatedLines::was_seen(std::string_view line) {
    const std::uint64_t hash = XXH3_64bits(line.data(), line.size());
    std::uint32_t& slot = table_[hash >> (64 - kTableLog2)];
    return std::exchange(slot, static_cast<std::uint32_t>(hash)) ==
           static_cast<std::uint32_t>(hash);
}

}  // namespace gompfs
