// Computes the number of words of rules and files; see rule_sizes.h. Rules are visited from the
// last one down, so that every rule is known before it is used.
#include "grammar/rule_sizes.h"

#include <algorithm>
#include <cstddef>

namespace gompfs {

std::vector<std::uint64_t> rule_sizes(const Part& part) {
    const Rules& rules = part.rules;
    std::vector<std::uint64_t> sizes(rules.size());
    for (std::uint32_t rule = rules.size(); rule-- > 0;) {
        std::uint64_t size = 0;
        for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
            const Symbol symbol = rules.symbols[at];
            if (symbol != kSplitter) {
                size += symbol < part.words.size() ? 1 : sizes[symbol - part.words.size()];
                size = std::min(size, kMaxTokens);
            }
        }
        sizes[rule] = size;
    }
    return sizes;
}

std::vector<std::uint64_t> file_sizes(const Part& part) {
    const std::vector<std::uint64_t> sizes = rule_sizes(part);
    std::vector<std::uint64_t> files(part.inos.size());
    std::size_t file = 0;
    for (std::uint64_t at = 0; at < part.rules.starts[1]; ++at) {
        const Symbol symbol = part.rules.symbols[at];
        if (symbol == kSplitter) {
            ++file;
        } else {
            files[file] += symbol < part.words.size() ? 1 : sizes[symbol - part.words.size()];
        }
    }
    return files;
}

}  // namespace gompfs
