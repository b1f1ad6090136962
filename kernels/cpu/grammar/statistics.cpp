#include "grammar/statistics.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace gompfs {
namespace {

using Pieces = std::vector<std::string>;

constexpr unsigned kRangesPerThread = 4;

struct NgramCount {
    NgramKey key;
    std::uint64_t count;
};

struct FileCount {
    std::uint32_t file;
    std::uint64_t count;
};

struct WordCount {
    std::uint32_t word;
    std::uint64_t count;
};

void append_count(std::string& text, std::uint64_t count) {
    char digits[20];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, count).ptr);
}

class Reporter {
  public:
    Reporter(const Corpus& corpus, std::uint64_t top, unsigned num_threads, MemoryBudget& budget,
             std::vector<Run> runs)
        : corpus_(corpus),
          top_(top == 0 ? std::numeric_limits<std::uint64_t>::max() : top),
          num_threads_(num_threads),
          budget_(budget),
          runs_(std::move(runs)) {}

    Pieces inverted_index() {
        return of_ranges([&](const RunMerger& merger, std::size_t range, std::string& text) {
            write_inverted_index(merger, range, text);
        });
    }

    Pieces ranked_inverted_index() {
        return of_ranges([&](const RunMerger& merger, std::size_t range, std::string& text) {
            write_ranked_index(merger, range, text);
        });
    }

    Pieces sequence_count();
    Pieces term_vector();

  private:
    template <typename Write>
    Pieces of_ranges(Write&& write) {
        const RunMerger merger(runs_, num_threads_ * kRangesPerThread);
        Pieces texts(merger.num_ranges());
        parallel_for(texts.size(), num_threads_,
                     [&](std::size_t range) { write(merger, range, texts[range]); });
        return checked(std::move(texts));
    }

    Pieces checked(Pieces texts) {
        budget_.check();
        return texts;
    }

    void write_inverted_index(const RunMerger& merger, std::size_t range, std::string& text);
    void write_ranked_index(const RunMerger& merger, std::size_t range, std::string& text);
    void write_ranked_line(NgramKey key, std::vector<FileCount>& files, std::string& text);
    void write_term_line(std::uint32_t file, std::span<WordCount> words, std::string& text);
    std::vector<NgramCount> count_ngrams();

    // Takes what a line adds to a text; false where that is too much.
    bool take_line(std::size_t size_before, const std::string& text) {
        return budget_.take(text.size() - size_before);
    }

    const Corpus& corpus_;
    const std::uint64_t top_;
    const unsigned num_threads_;
    MemoryBudget& budget_;
    std::vector<Run> runs_;
};

void Reporter::write_inverted_index(const RunMerger& merger, std::size_t range, std::string& text) {
    NgramKey last = 0;
    std::uint64_t num_lines = 0;
    merger.merge(range, [&](NgramKey key, std::uint32_t file, std::uint64_t) {
        if (budget_.is_exceeded()) {
            return;
        }
        const std::size_t size_before = text.size();
        if (num_lines == 0 || key != last) {
            text.append(num_lines == 0 ? "" : "\n");
            corpus_.append_ngram(text, key);
            last = key;
            ++num_lines;
        }
        text.append("\t").append(corpus_.files[file].path);
        take_line(size_before, text);
    });
    text.append(num_lines == 0 ? "" : "\n");
}

void Reporter::write_ranked_index(const RunMerger& merger, std::size_t range, std::string& text) {
    NgramKey last = 0;
    std::vector<FileCount> files;
    merger.merge(range, [&](NgramKey key, std::uint32_t file, std::uint64_t count) {
        if (key != last && !files.empty()) {
            write_ranked_line(last, files, text);
        }
        last = key;
        files.push_back({file, count});
    });
    if (!files.empty()) {
        write_ranked_line(last, files, text);
    }
}

void Reporter::write_ranked_line(NgramKey key, std::vector<FileCount>& files, std::string& text) {
    if (!budget_.is_exceeded()) {
        const std::size_t size_before = text.size();
        std::stable_sort(
            files.begin(), files.end(),
            [](const FileCount& left, const FileCount& right) { return left.count > right.count; });
        files.resize(std::min<std::uint64_t>(files.size(), top_));
        corpus_.append_ngram(text, key);
        for (const FileCount& file : files) {
            text.push_back('\t');
            append_count(text, file.count);
            text.append(" ").append(corpus_.files[file.file].path);
        }
        text.push_back('\n');
        take_line(size_before, text);
    }
    files.clear();
}

// All n-grams in byte order with their counts.
std::vector<NgramCount> Reporter::count_ngrams() {
    const RunMerger merger(runs_, num_threads_ * kRangesPerThread);
    std::vector<std::vector<NgramCount>> ranges(merger.num_ranges());
    parallel_for(ranges.size(), num_threads_, [&](std::size_t range) {
        merger.merge(range, [&](NgramKey key, std::uint32_t, std::uint64_t count) {
            ranges[range].push_back({key, count});
        });
        budget_.take(ranges[range].size() * sizeof(NgramCount));
    });
    budget_.check();
    std::vector<NgramCount> counts = std::move(ranges[0]);
    for (std::size_t range = 1; range < ranges.size(); ++range) {
        counts.insert(counts.end(), ranges[range].begin(), ranges[range].end());
        ranges[range] = {};
    }
    runs_.clear();
    return counts;
}

// By falling count; equal ones stay in order. Most counts are small: these are sorted by counting.
void sort_by_count(std::vector<NgramCount>& counts) {
    constexpr std::uint64_t kSmall = 1024;
    std::vector<std::uint64_t> places(kSmall + 1);  // of count kSmall - 1, then falling
    std::vector<NgramCount> sorted;
    for (const NgramCount& ngram : counts) {
        if (ngram.count >= kSmall) {
            sorted.push_back(ngram);
        } else {
            ++places[kSmall - ngram.count];
        }
    }
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const NgramCount& left, const NgramCount& right) { return left.count > right.count; });
    places[0] = sorted.size();
    std::partial_sum(places.begin(), places.end(), places.begin());
    sorted.resize(counts.size());
    for (const NgramCount& ngram : counts) {
        if (ngram.count < kSmall) {
            sorted[places[kSmall - 1 - ngram.count]++] = ngram;
        }
    }
    counts = std::move(sorted);
}

Pieces Reporter::sequence_count() {
    std::vector<NgramCount> counts = count_ngrams();
    sort_by_count(counts);
    counts.resize(std::min<std::uint64_t>(counts.size(), top_));
    Pieces texts(num_threads_ * kRangesPerThread);
    parallel_for(texts.size(), num_threads_, [&](std::size_t index) {
        const std::size_t end = counts.size() * (index + 1) / texts.size();
        std::string& text = texts[index];
        for (std::size_t at = counts.size() * index / texts.size(); at < end; ++at) {
            const std::size_t size_before = text.size();
            corpus_.append_ngram(text, counts[at].key);
            text.push_back('\t');
            append_count(text, counts[at].count);
            text.push_back('\n');
            if (!take_line(size_before, text)) {
                return;
            }
        }
    });
    return checked(std::move(texts));
}

Pieces Reporter::term_vector() {
    std::vector<std::uint64_t> starts(corpus_.files.size() + 2);
    for (const Run& run : runs_) {
        for (const Posting& posting : run.postings) {
            ++starts[posting.file + 2];
        }
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    budget_.take(starts.back() * sizeof(WordCount));
    budget_.check();
    std::vector<WordCount> words(starts.back());
    for (Run& run : runs_) {
        for (const Posting& posting : run.postings) {
            const auto word = static_cast<std::uint32_t>((*run.keys)[posting.term]);
            words[starts[posting.file + 1]++] = {word, posting.count};
        }
        run = {};
    }
    const std::size_t num_files = corpus_.files.size();
    Pieces texts(std::min<std::size_t>(num_threads_ * kRangesPerThread, num_files));
    parallel_for(texts.size(), num_threads_, [&](std::size_t index) {
        const std::size_t end = num_files * (index + 1) / texts.size();
        for (std::size_t file = num_files * index / texts.size(); file < end; ++file) {
            const std::span<WordCount> its_words(words.data() + starts[file],
                                                 starts[file + 1] - starts[file]);
            write_term_line(static_cast<std::uint32_t>(file), its_words, texts[index]);
        }
    });
    return checked(std::move(texts));
}

// Words of a file come once for each part that it reaches over.
void Reporter::write_term_line(std::uint32_t file, std::span<WordCount> words, std::string& text) {
    if (words.empty() || budget_.is_exceeded()) {
        return;
    }
    const std::size_t size_before = text.size();
    std::sort(words.begin(), words.end(),
              [](const WordCount& left, const WordCount& right) { return left.word < right.word; });
    std::size_t size = 0;
    for (const WordCount& word : words) {
        if (size != 0 && words[size - 1].word == word.word) {
            words[size - 1].count += word.count;
        } else {
            words[size++] = word;
        }
    }
    std::stable_sort(
        words.begin(), words.begin() + size,
        [](const WordCount& left, const WordCount& right) { return left.count > right.count; });
    text.append(corpus_.files[file].path);
    for (const WordCount& word : words.first(std::min<std::uint64_t>(size, top_))) {
        text.push_back('\t');
        append_count(text, word.count);
        text.append(" ").append(corpus_.words[word.word]);
    }
    text.push_back('\n');
    take_line(size_before, text);
}

// The first lines of a text.
void keep_lines(Pieces& texts, std::uint64_t num_lines) {
    for (std::string& text : texts) {
        std::size_t end = 0;
        for (; num_lines != 0 && end != text.size(); --num_lines) {
            end = text.find('\n', end) + 1;
        }
        text.resize(end);
    }
}

std::vector<std::string> write_report(Reporter reporter, Task task, std::uint64_t top) {
    switch (task) {
        case Task::term_vector:
            return reporter.term_vector();
        case Task::sequence_count:
            return reporter.sequence_count();
        case Task::ranked_inverted_index:
            return reporter.ranked_inverted_index();
        case Task::inverted_index:
            break;
    }
    Pieces texts = reporter.inverted_index();
    if (top != 0) {
        keep_lines(texts, top);
    }
    return texts;
}

void check_task(const Corpus& corpus, Task task) {
    if (task == Task::term_vector && corpus.n != 1) {
        throw std::invalid_argument("a term vector is of single words");
    }
}

}  // namespace

std::vector<std::string> report_statistics(const Corpus& corpus, Task task, std::uint64_t top,
                                           const Traversal& traversal, std::uint64_t memory_limit) {
    check_task(corpus, task);
    MemoryBudget budget(memory_limit);
    std::vector<Run> runs = gather_postings(corpus, is_per_file(task), traversal, budget);
    const unsigned num_threads = traversal.sequential ? 1 : traversal.num_threads;
    return write_report({corpus, top, num_threads, budget, std::move(runs)}, task, top);
}

std::vector<std::string> report_runs(const Corpus& corpus, Task task, std::uint64_t top,
                                     std::vector<Run> runs, unsigned num_threads,
                                     std::uint64_t memory_limit) {
    check_task(corpus, task);
    MemoryBudget budget(memory_limit);
    for (const Run& run : runs) {
        budget.take(run.keys->size() * sizeof(NgramKey) + run.postings.size() * sizeof(Posting));
    }
    budget.check();
    return write_report({corpus, top, num_threads, budget, std::move(runs)}, task, top);
}

}  // namespace gompfs
