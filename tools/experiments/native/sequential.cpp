// Sequential TADOC (Zhang et al., VLDB 2018); see sequential.h. It is deliberately simple, with
// ordinary hash tables (std::unordered_map, which allocates a node per entry).
#include "sequential.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "statistics/ngrams.h"

namespace gompfs {
namespace {

struct NgramOfFile {
    NgramKey key;
    std::uint32_t file;

    bool operator==(const NgramOfFile&) const = default;
};

struct NgramHash {
    std::size_t operator()(const NgramOfFile& ngram) const {
        const auto low = static_cast<std::uint64_t>(ngram.key);
        const auto high = static_cast<std::uint64_t>(ngram.key >> 64);
        std::uint64_t hash = (low ^ high * 0x9e3779b97f4a7c15u) + ngram.file * 0xc2b2ae3d27d4eb4fu;
        hash ^= hash >> 32;
        hash *= 0x9e3779b97f4a7c15u;
        return hash ^ hash >> 29;
    }
};

using NgramTable = std::unordered_map<NgramOfFile, std::uint64_t, NgramHash>;
using FileWeights = std::unordered_map<std::uint32_t, std::uint64_t>;

class SequentialCounter {
  public:
    SequentialCounter(const Corpus& corpus, bool per_file) : corpus_(corpus), per_file_(per_file) {}

    void count_part(std::size_t grammar, const Part& part) {
        const NgramReader reader(corpus_, grammar, part);
        const Rules& rules = part.rules;
        weights_.assign(rules.size(), {});
        count_root(reader, part);
        for (std::uint32_t rule = 1; rule < rules.size(); ++rule) {
            const FileWeights weights = std::move(weights_[rule]);
            WordBuffer tail;
            for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
                visit(reader, part, rules.symbols[at], tail, weights);
            }
        }
    }

    std::vector<CountedNgram> finish() const {
        std::vector<CountedNgram> found;
        for (const auto& [ngram, count] : table_) {
            found.push_back({ngram.key, ngram.file, count});
        }
        std::sort(found.begin(), found.end(), [](const auto& left, const auto& right) {
            return left.key != right.key ? left.key < right.key : left.file < right.file;
        });
        return found;
    }

  private:
    void count_root(const NgramReader& reader, const Part& part) {
        std::size_t index = 0;
        FileWeights weights = weights_of_file(part, 0);
        const bool goes_on = part.continues && !part.inos.empty() && part.inos[0] == last_ino_;
        WordBuffer tail = goes_on ? last_tail_ : WordBuffer{};
        last_tail_ = {};
        for (std::uint64_t at = 0; at < part.rules.starts[1]; ++at) {
            const Symbol symbol = part.rules.symbols[at];
            if (symbol != kSplitter) {
                visit(reader, part, symbol, tail, weights);
                continue;
            }
            last_ino_ = part.inos[index];
            last_tail_ = tail;
            tail = {};
            weights = weights_of_file(part, ++index);
        }
    }

    FileWeights weights_of_file(const Part& part, std::size_t index) const {
        const std::uint32_t file =
            index < part.inos.size() ? corpus_.file_number(part.inos[index]) : kLeftOut;
        return file == kLeftOut ? FileWeights{} : FileWeights{{per_file_ ? file : 0, 1}};
    }

    void visit(const NgramReader& reader, const Part& part, Symbol symbol, WordBuffer& tail,
               const FileWeights& weights) {
        reader.read(symbol, tail, [&](NgramKey key) {
            for (const auto& [file, weight] : weights) {
                table_[{key, file}] += weight;
            }
        });
        if (symbol >= part.words.size()) {
            FileWeights& of_rule = weights_[symbol - part.words.size()];
            for (const auto& [file, weight] : weights) {
                of_rule[file] += weight;
            }
        }
    }

    const Corpus& corpus_;
    const bool per_file_;
    NgramTable table_;
    std::vector<FileWeights> weights_;  // per rule
    std::uint64_t last_ino_ = 0;        // last file of the part before
    WordBuffer last_tail_;              // last words of that file
};

}  // namespace

std::vector<CountedNgram> count_sequentially(const Corpus& corpus, bool per_file) {
    SequentialCounter counter(corpus, per_file);
    for (std::size_t grammar = 0; grammar < corpus.grammars.size(); ++grammar) {
        for (const Part& part : corpus.grammars[grammar]->parts) {
            counter.count_part(grammar, part);
        }
    }
    return counter.finish();
}

}  // namespace gompfs
