// Sorts postings by file; see term_vector_report.h. The ranges of files are cut so that each has
// about equally many postings (cut_files).
#include "statistics/term_vector_report.h"

#include <algorithm>
#include <atomic>

#include "common/failures.h"

namespace gompfs {
namespace {

// Calls take(posting) for every posting of a run.
template <typename Take>
void for_each_posting(const Spill& spill, const Run& run, Take&& take) {
    RunReader reader(spill, run, 0);
    CancellationPoint point;
    for (KeyedPosting posting; reader.next(posting);) {
        point();
        take(posting);
    }
}

}  // namespace

TermVectorReport::TermVectorReport(const Corpus& corpus, Postings& postings, bool by_tfidf,
                                   std::uint64_t top, unsigned num_threads)
    : corpus_(corpus),
      spill_(postings.spill),
      top_(top),
      range_starts_(cut_files(corpus, postings, num_threads)),
      buckets_(postings.spill, range_starts_.size() - 1),
      by_tfidf_(by_tfidf) {
    distribute(postings, num_threads);
    if (by_tfidf) {
        count_files_of_words(num_threads);
    }
}

// Cuts the files into ranges with about equally many postings.
std::vector<std::uint32_t> TermVectorReport::cut_files(const Corpus& corpus,
                                                       const Postings& postings,
                                                       unsigned num_threads) {
    constexpr std::uint64_t kPostingsOfRange = 1 << 16;
    constexpr std::uint64_t kMaxRanges = 1024;
    std::vector<std::uint64_t> sizes(corpus.files.size());
    parallel_for_all(postings.runs.size(), num_threads, [&](std::size_t run) {
        for_each_posting(postings.spill, postings.runs[run], [&](const KeyedPosting& posting) {
            std::atomic_ref(sizes[posting.file]).fetch_add(1, std::memory_order_relaxed);
        });
    });
    std::uint64_t total = 0;
    for (const std::uint64_t size : sizes) {
        total += size;
    }
    const std::uint64_t range_size = std::max(kPostingsOfRange, total / kMaxRanges);
    std::vector<std::uint32_t> starts{0};
    std::uint64_t size = 0;
    for (std::uint32_t file = 0; file < sizes.size(); ++file) {
        if (size >= range_size) {
            starts.push_back(file);
            size = 0;
        }
        size += sizes[file];
    }
    starts.push_back(static_cast<std::uint32_t>(sizes.size()));
    return starts;
}

// An entry of a bucket is the difference to the previous word, the index of the file in the range,
// and the count.
void TermVectorReport::distribute(const Postings& postings, unsigned num_threads) {
    std::atomic<std::size_t> next_run = 0;
    parallel_for_all(num_threads, num_threads, [&](std::size_t thread) {
        BucketSort::Writer writer(buckets_, static_cast<std::uint32_t>(thread));
        for (std::size_t run; (run = next_run++) < postings.runs.size();) {
            for_each_posting(spill_, postings.runs[run], [&](const KeyedPosting& posting) {
                const auto range =
                    std::upper_bound(range_starts_.begin(), range_starts_.end() - 1, posting.file) -
                    range_starts_.begin() - 1;
                BucketSort::Writer::Open& bucket = writer.open(static_cast<std::size_t>(range));
                // Each run starts again with low words, so the difference may be negative; it
                // wraps.
                append_number(bucket.bytes, static_cast<std::uint32_t>(posting.key - bucket.last));
                append_number(bucket.bytes, posting.file - range_starts_[range]);
                append_number(bucket.bytes, posting.count);
                bucket.last = posting.key;
            });
        }
        writer.finish();
    });
}

std::vector<WordOfFile> TermVectorReport::words_of_piece(std::size_t index) const {
    std::vector<WordOfFile> words;
    std::vector<std::uint8_t> bytes;
    for (const BucketSort::Chunk& chunk : buckets_.chunks(index)) {
        throw_if_cancelled();
        bytes.resize(chunk.size);
        spill_.read(chunk.offset, bytes);
        std::uint32_t word = 0;
        for (const std::uint8_t* next = bytes.data(); next != bytes.data() + bytes.size();) {
            word += static_cast<std::uint32_t>(read_number(next));
            const auto file = static_cast<std::uint32_t>(read_number(next));
            words.push_back({range_starts_[index] + file, word, read_number(next)});
        }
    }
    return words;
}

// Calls take(words) for each file of a piece, with its words in byte order, each once.
template <typename Take>
void TermVectorReport::for_each_file(std::size_t index, Take&& take) const {
    std::vector<WordOfFile> words = words_of_piece(index);
    std::sort(words.begin(), words.end(), [](const WordOfFile& left, const WordOfFile& right) {
        return left.file != right.file ? left.file < right.file : left.word < right.word;
    });
    // A word comes once for each part that contains a piece of the file.
    std::size_t size = 0;
    for (const WordOfFile& word : words) {
        if (size != 0 && words[size - 1].file == word.file && words[size - 1].word == word.word) {
            words[size - 1].count += word.count;
        } else {
            words[size++] = word;
        }
    }
    words.resize(size);
    for (std::size_t first = 0, end; first < size; first = end) {
        throw_if_cancelled();
        for (end = first; end < size && words[end].file == words[first].file; ++end) {
        }
        take(std::span<WordOfFile>(words.data() + first, end - first));
    }
}

void TermVectorReport::count_files_of_words(unsigned num_threads) {
    files_of_words_.resize(corpus_.words.size());
    parallel_for_all(num_pieces(), num_threads, [&](std::size_t index) {
        for_each_file(index, [&](std::span<const WordOfFile> words) {
            std::atomic_ref(num_files_).fetch_add(1, std::memory_order_relaxed);
            for (const WordOfFile& word : words) {
                std::atomic_ref(files_of_words_[word.word]).fetch_add(1, std::memory_order_relaxed);
            }
        });
    });
}

std::string TermVectorReport::piece(std::size_t index) const {
    const FilesOfWords scored{files_of_words_, num_files_};
    const TermVectorLines lines(corpus_, top_, by_tfidf_ ? &scored : nullptr);
    std::string text;
    for_each_file(index, [&](std::span<WordOfFile> words) { lines.append(text, words); });
    return text;
}

}  // namespace gompfs
