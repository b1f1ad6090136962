"""Plain Python for the statistics of files and n-grams. The C++ core must give the same bytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from oracle.grammar import split_words

Texts = Mapping[bytes, Counter[bytes]]  # path: its n-grams


def ngrams_of(files: Iterable[tuple[bytes, bytes]], ngram_length: int = 1, word_rule: str = "whitespace") -> Texts:
    """Returns the n-grams of files given as (path, content), in byte order of the paths."""
    found = {}
    for path, content in sorted(files):
        words = split_words(content, word_rule)
        starts = range(len(words) - ngram_length + 1)
        found[path] = Counter(b" ".join(words[start : start + ngram_length]) for start in starts)
    return found


def inverted_index(texts: Texts) -> bytes:
    paths_of: dict[bytes, list[bytes]] = {}
    for path, words in texts.items():
        for word in words:
            paths_of.setdefault(word, []).append(path)
    return b"".join(b"\t".join([word, *paths]) + b"\n" for word, paths in sorted(paths_of.items()))


def term_vector(texts: Texts, top: int | None = None) -> bytes:
    lines = []
    for path, words in texts.items():
        ranked = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:top]
        if ranked:
            lines.append(b"\t".join([path, *(b"%d %s" % (count, word) for word, count in ranked)]) + b"\n")
    return b"".join(lines)


def sequence_count(texts: Texts) -> bytes:
    total: Counter[bytes] = Counter()
    for ngrams in texts.values():
        total.update(ngrams)
    ranked = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return b"".join(b"%s\t%d\n" % item for item in ranked)


def ranked_inverted_index(texts: Texts, top: int | None = None) -> bytes:
    files_of: dict[bytes, list[tuple[int, bytes]]] = {}
    for path, ngrams in texts.items():
        for ngram, count in ngrams.items():
            files_of.setdefault(ngram, []).append((-count, path))
    lines = []
    for ngram, files in sorted(files_of.items()):
        fields = [b"%d %s" % (-count, path) for count, path in sorted(files)[:top]]
        lines.append(b"\t".join([ngram, *fields]) + b"\n")
    return b"".join(lines)


def tfidf(texts: Texts, top: int) -> bytes:
    texts = {path: words for path, words in texts.items() if words}
    files_of = Counter(word for words in texts.values() for word in words)
    lines = []
    for path, words in texts.items():
        scores = {word: count * math.log(len(texts) / files_of[word]) for word, count in words.items()}
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:top]
        lines.append(b"\t".join([path, *(b"%.3f %s" % (score, word) for word, score in ranked)]) + b"\n")
    return b"".join(lines)
