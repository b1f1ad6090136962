// Numbers words and files across segments; see corpus.h. The only difficulty is the order of
// n-grams as text: words are joined by spaces, and bytes below the space exist, so words that other
// words follow need ranks of their own (rank_inner_words).
#include "statistics/corpus.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "common/cancellation.h"
#include "statistics/report.h"

namespace gompfs {
namespace {

bool is_low(char byte) { return static_cast<unsigned char>(byte) < ' '; }

std::vector<const Dictionary*> dictionaries(const std::vector<const Grammar*>& grammars) {
    std::vector<const Dictionary*> dictionaries;
    for (const Grammar* grammar : grammars) {
        dictionaries.push_back(&grammar->dictionary);
    }
    return dictionaries;
}

}  // namespace

Corpus::Corpus(std::vector<const Grammar*> its_grammars, std::vector<File> its_files,
               unsigned length)
    : Corpus(std::make_shared<const Vocabulary>(dictionaries(its_grammars)), its_grammars,
             std::move(its_files), length) {
    if (length > 1) {
        rank_inner_words();
    }
}

Corpus::Corpus(const Corpus& of_words, std::vector<File> its_files, unsigned length)
    : Corpus(of_words.vocabulary, of_words.grammars, std::move(its_files), length) {
    if (of_words.ngram_length > 1) {
        inner_ranks = of_words.inner_ranks;
        words_of_inner_ranks = of_words.words_of_inner_ranks;
    } else if (length > 1) {
        rank_inner_words();
    }
}

Corpus::Corpus(std::shared_ptr<const Vocabulary> of_words, std::vector<const Grammar*> its_grammars,
               std::vector<File> its_files, unsigned length)
    : vocabulary(std::move(of_words)),
      grammars(std::move(its_grammars)),
      files(std::move(its_files)),
      ngram_length(length),
      words(*vocabulary) {
    if (length < 1 || length > kMaxNgramLength) {
        throw std::invalid_argument("n-grams have 1 to 5 words");
    }
    bits = static_cast<unsigned>(std::bit_width(words.size()));
    if (length * bits > 128) {
        throw std::invalid_argument("there are too many words for n-grams of this length");
    }
    check_num_tokens();
    for (std::uint32_t file = 0; file < files.size(); ++file) {
        files_by_ino_.emplace_back(files[file].ino, file);
    }
    std::sort(files_by_ino_.begin(), files_by_ino_.end());
}

void Corpus::check_num_tokens() const {
    std::uint64_t sum = 0;
    for (const Grammar* grammar : grammars) {
        for (const Part& part : grammar->parts) {
            sum = std::min(sum + part.num_tokens, kMaxTokens);
        }
    }
    if (sum >= kMaxTokens) {
        throw std::invalid_argument("there are 2^62 words or more to count");
    }
}

// Whether a word sorts before another if spaces follow both. That is byte order, except if the byte
// after the common prefix is below the space.
bool Corpus::is_before_inside(std::uint32_t left, std::uint32_t right) const {
    const std::string_view a = words.word(left), b = words.word(right);
    const std::size_t shared = std::min(a.size(), b.size());
    const int order = a.substr(0, shared).compare(b.substr(0, shared));
    if (order != 0 || a.size() == b.size()) {
        return order < 0;
    }
    return a.size() < b.size() ? !is_low(b[shared]) : is_low(a[shared]);
}

void Corpus::rank_inner_words() {
    // Words without low bytes keep their byte order among themselves; the few other words are
    // inserted between them.
    std::vector<std::uint32_t> low, others;
    CancellationPoint point;
    for (std::uint32_t rank = 0; rank < words.size(); ++rank) {
        point();
        const std::string_view word = words.word(rank);
        if (std::any_of(word.begin(), word.end(), is_low)) {
            low.push_back(rank);
        }
    }
    if (low.empty()) {
        return;
    }
    others.reserve(words.size());
    for (std::uint32_t rank = 0; rank < words.size(); ++rank) {
        const std::size_t num_low = rank - others.size();
        if (num_low == low.size() || low[num_low] != rank) {
            others.push_back(rank);
        }
    }
    const auto is_before = [&](std::uint32_t left, std::uint32_t right) {
        point();
        return is_before_inside(left, right);
    };
    std::sort(low.begin(), low.end(), is_before);
    words_of_inner_ranks.reserve(words.size());
    auto next = others.begin();
    for (const std::uint32_t word : low) {
        const auto end = std::lower_bound(next, others.end(), word, is_before);
        words_of_inner_ranks.insert(words_of_inner_ranks.end(), next, end);
        words_of_inner_ranks.push_back(word);
        next = end;
    }
    words_of_inner_ranks.insert(words_of_inner_ranks.end(), next, others.end());
    inner_ranks.resize(words.size());
    for (std::uint32_t rank = 0; rank < words.size(); ++rank) {
        inner_ranks[words_of_inner_ranks[rank]] = rank;
    }
}

std::uint32_t Corpus::file_number(std::uint64_t ino) const {
    const auto found = std::lower_bound(files_by_ino_.begin(), files_by_ino_.end(),
                                        std::pair(ino, std::uint32_t{0}));
    return found != files_by_ino_.end() && found->first == ino ? found->second : kLeftOut;
}

void Corpus::append_ngram(std::string& text, NgramKey key) const {
    const NgramKey mask = (NgramKey{1} << bits) - 1;
    for (unsigned word = ngram_length; word-- > 0;) {
        const auto rank = static_cast<std::uint32_t>(key >> (word * bits) & mask);
        const bool is_inner = word != 0 && !words_of_inner_ranks.empty();
        text.append(words.word(is_inner ? words_of_inner_ranks[rank] : rank));
        if (word != 0) {
            text.push_back(' ');
        }
    }
}

std::string Corpus::items(std::span<const std::uint64_t> ranks,
                          std::span<const std::uint64_t> counts) const {
    std::string text;
    for (std::size_t item = 0; item < ranks.size(); ++item) {
        text.push_back('\t');
        append_count(text, counts[item]);
        text.append(" ").append(words.word(static_cast<std::uint32_t>(ranks[item])));
    }
    return text;
}

std::string Corpus::file_lines(std::span<const std::uint64_t> numbers,
                               std::span<const std::uint64_t> counts) const {
    std::string text;
    for (std::size_t line = 0; line < numbers.size(); ++line) {
        text.append(files[numbers[line]].path).push_back('\t');
        append_count(text, counts[line]);
        text.push_back('\n');
    }
    return text;
}

}  // namespace gompfs
