// Builds parts; see parts_builder.h.
//
// From text to blocks
//
// 1. PartCollector cuts the text of the files into parts.
// 2. A background thread builds the grammar of a part (part_grammar.h), counts its tokens in
//    SharedTokens, and stores the grammar in temporary storage: which tokens other parts use as
//    well is known only when all parts are there.
// 3. After the last file, the shared tokens are numbered, and every part is encoded
//    (part_encoder.h).
//
// A part whose grammar is larger than its text in gompresso-bit is stored in that codec. Where an
// estimate and a fast trial say that this may happen, the blocks are encoded in step 2 and compared
// in step 3. A part has no grammar if one of its tokens is longer than a part, or than a symbol of
// a head may be; then its tokens are not counted, so that none of them gets into the section
// `words`. A part that exceeds another limit of the format falls back to gompresso-bit in step 3.
//
// What was encoded is decoded at once. A grammar that gives another text is replaced by blocks of
// gompresso-bit, and a block of gompresso-bit by one that stores the text as it is.
//
// Memory: each thread has a part, and 16 MiB of text wait, so that threads need not wait for a
// caller that reads files. Temporary storage begins in memory and continues in an unnamed file; it
// takes about a third of the text. Parts are encoded while the caller writes those before.
#include "parts/parts_builder.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>
#include <utility>

#include "codec/block.h"
#include "common/little_endian.h"
#include "parts/stored_grammar.h"

namespace gompfs {
namespace {

constexpr std::uint64_t kStoredInMemory = 64 << 20;
constexpr std::size_t kMaxWaiting = 16 << 20;
constexpr std::size_t kPartsAtOnce = 16;  // that a call returns
constexpr std::size_t kPartsInWork = 48;  // of the last step
constexpr int kFallbackLevel = 6;         // of gompresso-bit
constexpr int kTrialLevel = 1;            // gives 1.1 to 1.4 times the bytes of level 6

using Blocks = std::vector<std::vector<std::uint8_t>>;

// Encodes each block of a text.
template <typename Encode>
Blocks encode_each(std::string_view text, std::uint32_t block_size, Encode encode) {
    Blocks blocks;
    const Bytes bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    for (std::size_t at = 0; at < bytes.size(); at += block_size) {
        blocks.push_back(
            encode(bytes.subspan(at, std::min<std::size_t>(block_size, bytes.size() - at))));
    }
    return blocks;
}

EncodeOptions bit_options(int level) { return {Codec::gompresso_bit, level, false}; }

std::uint64_t total_size(const Blocks& blocks) {
    std::uint64_t size = 0;
    for (const std::vector<std::uint8_t>& block : blocks) {
        size += block.size();
    }
    return size;
}

std::vector<std::uint8_t> join_blocks(const Blocks& blocks) {
    std::vector<std::uint8_t> bytes;
    for (const std::vector<std::uint8_t>& block : blocks) {
        append(bytes, static_cast<std::uint32_t>(block.size()));
        bytes.insert(bytes.end(), block.begin(), block.end());
    }
    return bytes;
}

Blocks split_blocks(Bytes bytes) {
    Blocks blocks;
    while (!bytes.empty()) {
        const auto size = load<std::uint32_t>(bytes.data());
        const Bytes block = bytes.subspan(sizeof size, size);
        blocks.emplace_back(block.begin(), block.end());
        bytes = bytes.subspan(sizeof size + size);
    }
    return blocks;
}

// About log2(value) * 16.
std::uint64_t log2_in_16ths(std::uint64_t value) {
    const int whole = std::bit_width(value) - 1;
    const std::uint64_t fraction =
        whole >= 4 ? value >> (whole - 4) & 15 : value << (4 - whole) & 15;
    return static_cast<std::uint64_t>(whole) * 16 + fraction;
}

// About how many bytes a part takes as a grammar: the entropy of its symbols, and an eighth of the
// bytes of its tokens. Most parts of source code and prose take 0.9 to 1.1 times as much.
std::uint64_t estimated_size(const PartGrammar& part) {
    std::vector<std::uint32_t> counts(part.tokens.size() + std::size_t{part.rules.size()});
    for (const Symbol symbol : part.rules.symbols) {
        if (symbol != kSplitter) {
            ++counts[symbol];
        }
    }
    const std::uint64_t log2_total = log2_in_16ths(part.rules.symbols.size());
    std::uint64_t bits_in_16ths = 0;
    for (const std::uint32_t count : counts) {
        bits_in_16ths += count == 0 ? 0 : count * (log2_total - log2_in_16ths(count)) + 32;
    }
    std::uint64_t token_bytes = 0;
    for (std::uint32_t token = 0; token < part.tokens.size(); ++token) {
        token_bytes += part.tokens[token].size();
    }
    return bits_in_16ths / 128 + token_bytes / 8;
}

}  // namespace

PartsBuilder::PartsBuilder(Tokenizer tokenizer, Options options)
    : options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      collector_(tokenizer_, options_.part_size,
                 [this](CollectedPart part) {
                     const std::size_t size = part.text.size();
                     preparing_->push(std::move(part), size);
                 }),
      shared_(options_.max_shared_bytes),
      spill_({options_.directory, kStoredInMemory, ~std::uint64_t{0}}) {
    preparing_.emplace(options_.num_threads, kMaxWaiting, [this] {
        const auto builder = std::make_shared<PartGrammarBuilder>(tokenizer_, options_.block_size);
        return [this, builder](const CollectedPart& part) { return prepare(part, *builder); };
    });
}

PartsBuilder::Waiting PartsBuilder::prepare(const CollectedPart& part,
                                            PartGrammarBuilder& builder) {
    Waiting waiting{part.text.size(), {}, {}};
    std::optional<PartGrammar> grammar;
    if (part.text.size() <= options_.part_size) {
        grammar = builder.build(part.text, part.file_ends);
    }
    std::uint64_t estimate = 0;
    if (grammar && has_short_tokens(*grammar)) {
        shared_.add(grammar->tokens, grammar->are_words);
        waiting.grammar = store(store_grammar(*grammar));
        estimate = estimated_size(*grammar);
    } else {
        grammar.reset();
    }
    if (!grammar || may_be_smaller_as_blocks(part.text, estimate)) {
        const Blocks blocks = encode_blocks(part.text);
        if (!grammar || total_size(blocks) < estimate) {
            waiting.blocks = store(join_blocks(blocks));
        }
    }
    return waiting;
}

// Whether a part may take less space in gompresso-bit than its grammar, which takes about
// `estimate`. A part that is easy to compress is smaller as a grammar.
bool PartsBuilder::may_be_smaller_as_blocks(std::string_view text, std::uint64_t estimate) const {
    const auto encode = [](Bytes content) {
        return encode_block(content, bit_options(kTrialLevel));
    };
    return estimate > text.size() / 5 &&
           total_size(encode_each(text, options_.block_size, encode)) < estimate / 3 * 4;
}

// The blocks of a text in gompresso-bit.
PartsBuilder::Blocks PartsBuilder::encode_blocks(std::string_view text) const {
    return encode_each(text, options_.block_size, [this](Bytes content) {
        return encode_checked_block(content, bit_options(kFallbackLevel), num_wrong_);
    });
}

// The blocks of a part whose text is no longer there. Throws std::logic_error if its grammar stands
// for another text.
PartsBuilder::Blocks PartsBuilder::encode_text_of(const PartGrammar& part) const {
    Blocks blocks = encode_blocks(text_of(part));
    const auto is_same = [](const std::vector<std::uint8_t>& block, std::uint64_t xxh3) {
        return parse_block_header(block)->content_xxh3 == xxh3;
    };
    if (!std::equal(blocks.begin(), blocks.end(), part.block_xxh3.begin(), part.block_xxh3.end(),
                    is_same)) {
        throw std::logic_error("the grammar of a part is not its text");
    }
    return blocks;
}

PartsBuilder::Stored PartsBuilder::store(std::span<const std::uint8_t> bytes) {
    return {spill_.append(bytes), bytes.size()};
}

void PartsBuilder::finish() {
    collector_.flush();
    parts_ = preparing_->pop_all();
    preparing_.reset();  // frees the memory of its threads
    shared_.number(options_.num_threads);
    encoding_.emplace(options_.num_threads, kPartsInWork, [this] {
        return [this](std::size_t number) { return encode(parts_[number]); };
    });
}

std::vector<std::uint64_t> PartsBuilder::part_sizes() const {
    std::vector<std::uint64_t> sizes;
    for (const Waiting& part : parts_) {
        sizes.push_back(part.text_size);
    }
    return sizes;
}

std::vector<std::uint8_t> PartsBuilder::word_section() const {
    const WordSection& words = shared_.section();
    std::vector<std::uint8_t> section = write_word_section(words);
    const WordSection read(section, ~std::uint64_t{0}, options_.num_threads);
    if (!(read.words() == words.words() && read.separators() == words.separators())) {
        throw std::logic_error("the section of words is not read as it was written");
    }
    return section;
}

std::vector<EncodedPart> PartsBuilder::next_parts() {
    for (; next_part_ < parts_.size() && num_encoding_ < kPartsInWork; ++num_encoding_) {
        encoding_->push(next_part_++, 1);
    }
    std::vector<EncodedPart> parts;
    for (; num_encoding_ > 0 && parts.size() < kPartsAtOnce; --num_encoding_) {
        parts.push_back(*encoding_->pop());
    }
    return parts;
}

std::vector<std::uint8_t> PartsBuilder::load(const Stored& stored) const {
    std::vector<std::uint8_t> bytes(stored.size);
    spill_.read(stored.offset, bytes);
    return bytes;
}

EncodedPart PartsBuilder::encode(const Waiting& waiting) const {
    EncodedPart without_grammar;
    without_grammar.blocks = split_blocks(load(waiting.blocks));
    if (waiting.grammar.size == 0) {
        return without_grammar;
    }
    const PartGrammar part = load_grammar(load(waiting.grammar));
    std::optional<EncodedPart> of_grammar = encode_part(part, shared_, options_.block_size);
    if (of_grammar && !of_grammar->is_readable) {
        ++num_wrong_;
        of_grammar.reset();
    }
    if (!of_grammar && without_grammar.blocks.empty()) {
        without_grammar.blocks = encode_text_of(part);
    }
    // A grammar is worth 5% more: statistics need not decode its text.
    const bool is_smaller =
        of_grammar && (without_grammar.blocks.empty() ||
                       (of_grammar->head.size() + total_size(of_grammar->blocks)) * 20 <=
                           total_size(without_grammar.blocks) * 21);
    return is_smaller ? std::move(*of_grammar) : without_grammar;
}

}  // namespace gompfs
