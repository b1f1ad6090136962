// Builds a forest from parts; see forest.h. It takes three parallel passes over the parts: measure
// finds the files, the needed rules and the sizes; after all parts have their positions
// (set_position), write_elements writes their nodes and elements; write_levels computes depths and
// heights.
#include "statistics/forest.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>

#include "common/parallel.h"

namespace gompfs {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

struct FileRange {
    std::uint32_t file;
    std::uint64_t begin, end;  // in the symbols of the root
};

// A part, and the numbers of its dictionary's words by index (null: the indexes themselves).
struct ForestPart {
    const Part* part;
    const std::vector<std::uint32_t>* ranks;
};

// One part that becomes a piece of the forest: first it is measured, then written to its position.
class PartOfForest {
  public:
    PartOfForest(const ForestPart& source) : part_(source.part), ranks_(source.ranks) {}

    // Finds the files [begin, end) of the part, the rules that they need, and the number of
    // elements.
    void measure(std::uint64_t begin, std::uint64_t end,
                 const std::function<std::uint32_t(std::uint64_t)>& file_number) {
        find_files(begin, end, file_number);
        if (files_.empty()) {
            return;
        }
        find_rules();
        for (const FileRange& file : files_) {
            num_file_elements_ += count_elements(file.begin, file.end);
        }
        for (std::uint32_t rule = 1; rule < part_->rules.size(); ++rule) {
            if (nodes_[rule] != kNone) {
                nodes_[rule] = num_rules_++;
                num_rule_elements_ += count_elements(starts()[rule], starts()[rule + 1]);
            }
        }
    }

    // Whether its first file continues the last file of `before`, the part before it, and both
    // count.
    bool continues(const PartOfForest& before) const {
        return part_->continues && begins_with_first_ && before.ends_with_last_ &&
               before.part_->inos.back() == part_->inos.front();
    }

    // Makes one node of this file and the first file of `next`, the part after it.
    void join(PartOfForest& next) {
        is_joined_after_ = true;
        next.is_joined_before_ = true;
    }

    // Sets the positions of its nodes and elements. The first file is the last one of the part
    // before if both are joined.
    void set_position(std::uint32_t first_file, std::uint32_t first_rule,
                      std::uint64_t first_file_element, std::uint64_t first_rule_element) {
        first_file_ = first_file;
        first_rule_ = first_rule;
        first_file_element_ = first_file_element;
        first_rule_element_ = first_rule_element;
    }

    void write_elements(Forest& forest) const {
        std::uint64_t position = first_file_element_;
        for (std::uint32_t at = 0; at < files_.size(); ++at) {
            forest.files[first_file_ + at] = files_[at].file;
            position = write_elements(forest, files_[at].begin, files_[at].end, position);
            if (at + 1 != files_.size() || !is_joined_after_) {
                forest.starts[first_file_ + at + std::size_t{1}] = position;
            }
        }
        position = first_rule_element_;
        for (std::uint32_t rule = 1; rule < nodes_.size(); ++rule) {
            if (nodes_[rule] != kNone) {
                position = write_elements(forest, starts()[rule], starts()[rule + 1], position);
                forest.starts[first_rule_ + nodes_[rule] + std::size_t{1}] = position;
            }
        }
    }

    // All elements of the forest must have been written. Of a file node that two parts share, each
    // looks at its own elements.
    void write_levels(Forest& forest) const {
        const auto set_depths = [&](std::uint32_t first, std::uint32_t count) {
            for (std::uint32_t node = first; node < first + count; ++node) {
                for_each_child(forest, node, [&](std::uint32_t child) {
                    forest.depths[child] = std::max(forest.depths[child], forest.depths[node] + 1);
                });
            }
        };
        const auto set_heights = [&](std::uint32_t first, std::uint32_t count) {
            for (std::uint32_t node = first + count; node-- > first;) {
                for_each_child(forest, node, [&](std::uint32_t child) {
                    raise_to(forest.heights[node], forest.heights[child] + 1);
                });
            }
        };
        const auto num_file_nodes = static_cast<std::uint32_t>(files_.size());
        set_depths(first_file_, num_file_nodes);
        set_depths(first_rule_, num_rules_);
        set_heights(first_rule_, num_rules_);
        set_heights(first_file_, num_file_nodes);
    }

    // The number of files that do not continue a file of the part before.
    std::uint32_t num_new_files() const {
        return static_cast<std::uint32_t>(files_.size()) - is_joined_before_;
    }
    bool is_joined_before() const { return is_joined_before_; }
    std::uint32_t num_rules() const { return num_rules_; }
    std::uint64_t num_file_elements() const { return num_file_elements_; }
    std::uint64_t num_rule_elements() const { return num_rule_elements_; }

  private:
    const std::vector<std::uint64_t>& starts() const { return part_->rules.starts; }
    std::uint32_t num_words() const { return static_cast<std::uint32_t>(part_->words.size()); }

    // The rule that a symbol refers to; kNone for a word.
    std::uint32_t rule_of(Symbol symbol) const {
        return symbol < num_words() ? kNone : symbol - num_words();
    }
    bool stays(Symbol symbol) const {
        return symbol < num_words() || nodes_[symbol - num_words()] != kNone;
    }

    void find_files(std::uint64_t begin, std::uint64_t end,
                    const std::function<std::uint32_t(std::uint64_t)>& file_number) {
        end = std::min<std::uint64_t>(end, part_->inos.size());
        std::uint64_t start = 0;
        for (std::uint64_t index = 0; index < end; ++index) {
            std::uint64_t stop = start;
            while (part_->rules.symbols[stop] != kSplitter) {
                ++stop;
            }
            const std::uint32_t file = index < begin ? kLeftOut : file_number(part_->inos[index]);
            if (file != kLeftOut) {
                files_.push_back({file, start, stop});
                begins_with_first_ = begins_with_first_ || index == 0;
                ends_with_last_ = index + 1 == part_->inos.size();
            }
            start = stop + 1;
        }
    }

    // Marks in nodes_ the rules that the files use and that stand for words.
    void find_rules() {
        const std::uint32_t size = part_->rules.size();
        std::vector<bool> has_words(size);
        for (std::uint32_t rule = size; --rule > 0;) {
            has_words[rule] = std::any_of(begin_of(rule), begin_of(rule + 1), [&](Symbol symbol) {
                return symbol < num_words() || has_words[symbol - num_words()];
            });
        }
        nodes_.assign(size, kNone);
        const auto mark = [&](const Symbol* begin, const Symbol* end) {
            for (; begin != end; ++begin) {
                if (const std::uint32_t rule = rule_of(*begin); rule != kNone && has_words[rule]) {
                    nodes_[rule] = 0;
                }
            }
        };
        for (const FileRange& file : files_) {
            mark(part_->rules.symbols.data() + file.begin, part_->rules.symbols.data() + file.end);
        }
        for (std::uint32_t rule = 1; rule < size; ++rule) {
            if (nodes_[rule] != kNone) {
                mark(begin_of(rule), begin_of(rule + 1));
            }
        }
    }

    const Symbol* begin_of(std::uint32_t rule) const {
        return part_->rules.symbols.data() + starts()[rule];
    }

    std::uint64_t count_elements(std::uint64_t begin, std::uint64_t end) const {
        const Symbol* const symbols = part_->rules.symbols.data();
        return static_cast<std::uint64_t>(std::count_if(
            symbols + begin, symbols + end, [&](Symbol symbol) { return stays(symbol); }));
    }

    // Writes the elements of a node or of a piece of it; returns where they end.
    std::uint64_t write_elements(Forest& forest, std::uint64_t begin, std::uint64_t end,
                                 std::uint64_t position) const {
        for (std::uint64_t at = begin; at < end; ++at) {
            const Symbol symbol = part_->rules.symbols[at];
            if (symbol < num_words()) {
                const std::uint32_t word = part_->words[symbol];
                forest.elements[position++] = ranks_ == nullptr ? word : (*ranks_)[word];
            } else if (stays(symbol)) {
                forest.elements[position++] = kNode | (first_rule_ + nodes_[symbol - num_words()]);
            }
        }
        return position;
    }

    // Other parts raise the height of a node that they share.
    static void raise_to(std::uint32_t& height, std::uint32_t at_least) {
        std::atomic_ref shared(height);
        std::uint32_t known = shared.load(std::memory_order_relaxed);
        while (known < at_least && !shared.compare_exchange_weak(known, at_least)) {
        }
    }

    template <typename Take>
    void for_each_child(const Forest& forest, std::uint32_t node, Take&& take) const {
        std::uint64_t at = forest.starts[node], end = forest.starts[node + 1];
        if (node < first_rule_) {
            at = std::max(at, first_file_element_);
            end = std::min(end, first_file_element_ + num_file_elements_);
        }
        for (; at < end; ++at) {
            if ((forest.elements[at] & kNode) != 0) {
                take(forest.elements[at] & ~kNode);
            }
        }
    }

    const Part* part_;
    const std::vector<std::uint32_t>* ranks_;
    std::vector<FileRange> files_;
    std::vector<std::uint32_t> nodes_;  // by rule: index among the kept rules, or kNone
    std::uint32_t num_rules_ = 0, first_file_ = 0, first_rule_ = 0;
    std::uint64_t num_file_elements_ = 0, num_rule_elements_ = 0;
    std::uint64_t first_file_element_ = 0, first_rule_element_ = 0;
    // Whether its first and its last file are among files_, and are joined with those of the parts
    // before and after it.
    bool begins_with_first_ = false, ends_with_last_ = false;
    bool is_joined_before_ = false, is_joined_after_ = false;
};

Forest allocate_forest(std::vector<PartOfForest>& parts) {
    std::uint64_t num_files = 0, num_nodes = 0, num_file_elements = 0, num_elements = 0;
    for (const PartOfForest& part : parts) {
        num_files += part.num_new_files();
        num_file_elements += part.num_file_elements();
        num_nodes += part.num_new_files() + part.num_rules();
        num_elements += part.num_file_elements() + part.num_rule_elements();
    }
    if (num_nodes >= kNode) {
        throw std::invalid_argument("there are too many rules for one forest");
    }
    Forest forest;
    forest.files.resize(num_files);
    forest.starts.resize(num_nodes + 1);
    forest.elements.resize(num_elements);
    forest.depths.resize(num_nodes);
    forest.heights.resize(num_nodes);
    std::uint64_t file = 0, rule = num_files, of_files = 0, of_rules = num_file_elements;
    for (PartOfForest& part : parts) {
        part.set_position(static_cast<std::uint32_t>(file) - part.is_joined_before(),
                          static_cast<std::uint32_t>(rule), of_files, of_rules);
        forest.part_files.push_back(part.num_new_files());
        forest.part_elements.push_back(part.num_file_elements() + part.num_rule_elements());
        file += part.num_new_files();
        rule += part.num_rules();
        of_files += part.num_file_elements();
        of_rules += part.num_rule_elements();
    }
    return forest;
}

// Builds the forest of the files [begin, end), counted over the files of all parts.
// file_number(ino) is kLeftOut for files that do not count.
Forest build_forest(const std::vector<ForestPart>& sources, std::uint64_t begin, std::uint64_t end,
                    const std::function<std::uint32_t(std::uint64_t)>& file_number, bool join_files,
                    unsigned num_threads) {
    std::vector<PartOfForest> parts(sources.begin(), sources.end());
    std::vector<std::uint64_t> first_files;
    std::uint64_t num_files = 0;
    for (const ForestPart& source : sources) {
        first_files.push_back(num_files);
        num_files += source.part->inos.size();
    }
    const auto index_in = [&](std::size_t part, std::uint64_t file) {
        return file - std::min(file, first_files[part]);
    };
    parallel_for(parts.size(), num_threads, [&](std::size_t part) {
        parts[part].measure(index_in(part, begin), index_in(part, end), file_number);
    });
    for (std::size_t part = 1; join_files && part < parts.size(); ++part) {
        if (parts[part].continues(parts[part - 1])) {
            parts[part - 1].join(parts[part]);
        }
    }
    Forest forest = allocate_forest(parts);
    parallel_for(parts.size(), num_threads,
                 [&](std::size_t part) { parts[part].write_elements(forest); });
    parallel_for(parts.size(), num_threads,
                 [&](std::size_t part) { parts[part].write_levels(forest); });
    return forest;
}

}  // namespace

Forest forest_of_corpus(const Corpus& corpus, std::uint64_t begin, std::uint64_t end,
                        bool join_files, unsigned num_threads) {
    std::vector<ForestPart> parts;
    for (std::size_t grammar = 0; grammar < corpus.grammars.size(); ++grammar) {
        for (const Part& part : corpus.grammars[grammar]->parts) {
            parts.push_back({&part, corpus.words.ranks(grammar)});
        }
    }
    const auto file_number = [&](std::uint64_t ino) { return corpus.file_number(ino); };
    return build_forest(parts, begin, end, file_number, join_files, num_threads);
}

Forest forest_of_grammar(const Grammar& grammar, const CountedFiles& files, std::uint64_t begin,
                         std::uint64_t end, unsigned num_threads) {
    std::vector<ForestPart> parts;
    for (const Part& part : grammar.parts) {
        parts.push_back({&part, nullptr});
    }
    const auto file_number = [&](std::uint64_t ino) { return files.contains(ino) ? 0 : kLeftOut; };
    return build_forest(parts, begin, end, file_number, false, num_threads);
}

}  // namespace gompfs
