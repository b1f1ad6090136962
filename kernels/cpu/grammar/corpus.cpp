#include "grammar/corpus.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <stdexcept>

namespace gompfs {

Corpus::Corpus(std::vector<const Grammar*> its_grammars, std::vector<File> its_files,
               unsigned words_of_ngram)
    : grammars(std::move(its_grammars)), files(std::move(its_files)), n(words_of_ngram) {
    if (n < 1 || n > kMaxWordsOfNgram) {
        throw std::invalid_argument("there are n-grams of 1 to 5 words");
    }
    merge_dictionaries();
    bits = static_cast<unsigned>(std::bit_width(words.size()));
    if (n * bits > 128) {
        throw std::invalid_argument("there are too many words for n-grams of this length");
    }
    if (n > 1) {
        rank_inner_words();
    }
    for (std::uint32_t file = 0; file < files.size(); ++file) {
        files_by_ino_.emplace_back(files[file].ino, file);
    }
    std::sort(files_by_ino_.begin(), files_by_ino_.end());
}

void Corpus::merge_dictionaries() {
    if (grammars.size() == 1) {
        const Dictionary& dictionary = grammars[0]->dictionary;
        words.resize(dictionary.size());
        for (std::uint32_t word = 0; word < words.size(); ++word) {
            words[word] = dictionary.word(word);
        }
        std::vector<std::uint32_t>& places = ranks.emplace_back(words.size());
        std::iota(places.begin(), places.end(), 0);
        return;
    }
    for (const Grammar* grammar : grammars) {
        std::vector<std::string_view> more(grammar->dictionary.size()), merged;
        for (std::uint32_t word = 0; word < more.size(); ++word) {
            more[word] = grammar->dictionary.word(word);
        }
        std::set_union(words.begin(), words.end(), more.begin(), more.end(),
                       std::back_inserter(merged));
        words = std::move(merged);
    }
    for (const Grammar* grammar : grammars) {
        std::vector<std::uint32_t>& places = ranks.emplace_back(grammar->dictionary.size());
        std::uint32_t rank = 0;
        for (std::uint32_t word = 0; word < places.size(); ++word) {
            while (words[rank] != grammar->dictionary.word(word)) {
                ++rank;
            }
            places[word] = rank;
        }
    }
}

void Corpus::rank_inner_words() {
    const auto is_low = [](char byte) { return static_cast<unsigned char>(byte) < ' '; };
    if (std::none_of(words.begin(), words.end(), [&](std::string_view word) {
            return std::any_of(word.begin(), word.end(), is_low);
        })) {
        return;
    }
    words_of_inner_ranks.resize(words.size());
    std::iota(words_of_inner_ranks.begin(), words_of_inner_ranks.end(), 0);
    std::sort(words_of_inner_ranks.begin(), words_of_inner_ranks.end(),
              [&](std::uint32_t left, std::uint32_t right) {
                  const std::string_view a = words[left], b = words[right];
                  const std::size_t shared = std::min(a.size(), b.size());
                  const int order = a.substr(0, shared).compare(b.substr(0, shared));
                  if (order != 0 || a.size() == b.size()) {
                      return order < 0;
                  }
                  return a.size() < b.size() ? !is_low(b[shared]) : is_low(a[shared]);
              });
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
    for (unsigned word = n; word-- > 0;) {
        const auto rank = static_cast<std::uint32_t>(key >> (word * bits) & mask);
        const bool is_inner = word != 0 && !words_of_inner_ranks.empty();
        text.append(words[is_inner ? words_of_inner_ranks[rank] : rank]);
        if (word != 0) {
            text.push_back(' ');
        }
    }
}

}  // namespace gompfs
