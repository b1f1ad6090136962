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
// A part whose grammar is larger than its text in gompresso-bit is stored in that codec. Where a
// fast trial says that this may happen, the text is encoded in step 3 and compared. A part has no
// grammar if one of its tokens is longer than a part, or than a symbol of a head may be; then its
// tokens are not counted, so that none of them gets into the section `words`, and its blocks are
// encoded in step 2. A part that exceeds another limit of the format is stored in gompresso-bit.
//
// The payload is decoded at once. A grammar that gives another text is replaced by blocks of
// gompresso-bit, and a block of gompresso-bit by one that stores the text as it is.
//
// Memory: each thread has a part, and 16 MiB of text wait, so that threads need not wait for a
// caller that reads files. Temporary storage begins in memory and continues in an unnamed file; it
// takes about a third of the text. Parts are encoded while the caller writes those before.
#include "text/parts_builder.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "codec/block.h"
#include "common/little_endian.h"
#include "text/stored_grammar.h"

namespace gompfs {
namespace {

constexpr std::uint64_t kStoredInMemory = 64 << 20;
constexpr std::size_t kMaxWaiting = 16 << 20;
constexpr std::size_t kPartsAtOnce = 16;  // that a call returns
constexpr std::size_t kPartsInWork = 48;  // of the last step
constexpr int kTrialLevel = 1;            // of gompresso-bit: 1.1 to 1.4 times the bytes of level 6

using Blocks = std::vector<std::vector<std::uint8_t>>;

Bytes as_bytes(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Encodes each block of a text.
template <typename Encode>
Blocks encode_each(std::string_view text, std::uint32_t block_size, Encode encode) {
    Blocks blocks;
    for (std::size_t at = 0; at < text.size(); at += block_size) {
        blocks.push_back(encode(as_bytes(text.substr(at, block_size))));
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

std::uint64_t size_of(const EncodedPart& part) {
    return part.head.size() + total_size(part.blocks);
}

}  // namespace

PartsBuilder::PartsBuilder(Tokenizer tokenizer, Options options)
    : options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      collector_(tokenizer_, options_.part_size, options_.max_part_size,
                 [this](CollectedPart part) {
                     const std::size_t size = part.text.size();
                     preparing_->push(std::move(part), size);
                 }),
      shared_(options_.max_shared_bytes),
      spill_({options_.directory, kStoredInMemory, ~std::uint64_t{0}}),
      file_ends_(options_.directory),
      inodes_(options_.directory) {
    preparing_.emplace(options_.num_threads, kMaxWaiting, [this] {
        const auto builder = std::make_shared<PartGrammarBuilder>(tokenizer_, options_.block_size);
        return [this, builder](const CollectedPart& part) { return prepare(part, *builder); };
    });
}

PartsBuilder::Waiting PartsBuilder::prepare(const CollectedPart& part,
                                            PartGrammarBuilder& builder) {
    Waiting waiting{part.text.size(), {}, {}};
    std::optional<PartGrammar> grammar;
    if (part.text.size() <= options_.max_part_size) {
        grammar = builder.build(part.text, part.file_ends);
    }
    if (grammar && has_short_tokens(*grammar)) {
        shared_.add(grammar->tokens, grammar->are_words);
        waiting.grammar = store(store_grammar(*grammar));
    } else {
        waiting.blocks = store(join_blocks(encode_blocks(part.text)));
    }
    return waiting;
}

// Whether a text may take less space in gompresso-bit than its grammar, which takes
// `grammar_size`: level 1 needs at most a third more than the level of the blocks. One of four
// blocks is tried.
bool PartsBuilder::may_be_smaller_as_blocks(std::string_view text,
                                            std::uint64_t grammar_size) const {
    std::uint64_t tried = 0, size = 0;
    for (std::size_t at = 0; at < text.size(); at += std::size_t{4} * options_.block_size) {
        const std::string_view content = text.substr(at, options_.block_size);
        tried += content.size();
        size += encode_block(as_bytes(content), bit_options(kTrialLevel)).size();
    }
    return static_cast<double>(size) / static_cast<double>(tried) <
           static_cast<double>(grammar_size) / static_cast<double>(text.size()) * 4 / 3;
}

// The blocks of a text in gompresso-bit.
PartsBuilder::Blocks PartsBuilder::encode_blocks(std::string_view text) const {
    return encode_each(text, options_.block_size, [this](Bytes content) {
        return encode_checked_block(content, bit_options(options_.level), num_wrong_);
    });
}

// The blocks of the text that a grammar stands for. Throws std::logic_error if it is another text
// than that of the part.
PartsBuilder::Blocks PartsBuilder::encode_text_of(const PartGrammar& part,
                                                  std::string_view text) const {
    Blocks blocks = encode_blocks(text);
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

void PartsBuilder::end_file() {
    collector_.end_file();
    for (const FilePiece& piece : collector_.take_pieces()) {
        text_size_ += piece.size;
    }
    file_ends_.push_back(text_size_);
}

std::vector<InodeExtent> PartsBuilder::extents(
    std::uint64_t first_inode, std::uint64_t num_inodes,
    const std::vector<std::uint64_t>& part_starts) const {
    std::vector<std::uint64_t> ends;  // of the parts, in the text of all files
    std::uint64_t size = 0;
    for (const Waiting& part : parts_) {
        ends.push_back(size += part.text_size);
    }
    std::vector<InodeExtent> extents;
    for (std::uint64_t index = first_inode; index < first_inode + num_inodes; ++index) {
        const InodeText inode = inodes_[index];
        std::uint64_t begin = inode.file == 0 ? 0 : file_ends_[inode.file - 1];
        const std::uint64_t file_start = begin, end = file_ends_[inode.file];
        auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends, begin) - ends.begin());
        for (; begin < end; ++part) {
            const std::uint64_t piece_end = std::min(end, ends[part]);
            const std::uint64_t part_begin = part == 0 ? 0 : ends[part - 1];
            extents.push_back({inode.ino, begin - file_start,
                               part_starts.at(part) + (begin - part_begin), piece_end - begin});
            begin = piece_end;
        }
    }
    return extents;
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
    EncodedPart in_blocks;
    if (waiting.grammar.size == 0) {
        in_blocks.blocks = split_blocks(load(waiting.blocks));
        return in_blocks;
    }
    const PartGrammar part = load_grammar(load(waiting.grammar));
    std::optional<EncodedPart> of_grammar =
        encode_part(part, shared_, options_.block_size, options_.level);
    if (of_grammar && !of_grammar->is_readable) {
        ++num_wrong_;
        of_grammar.reset();
    }
    // A text that is easy to compress is smaller as a grammar.
    if (of_grammar && size_of(*of_grammar) <= part.text_size / 5) {
        return std::move(*of_grammar);
    }
    const std::string text = text_of(part);
    if (of_grammar && !may_be_smaller_as_blocks(text, size_of(*of_grammar))) {
        return std::move(*of_grammar);
    }
    in_blocks.blocks = encode_text_of(part, text);
    // A grammar is worth 2% more: statistics need not decode its text.
    const bool is_smaller = of_grammar && size_of(*of_grammar) * 50 <= size_of(in_blocks) * 51;
    return is_smaller ? std::move(*of_grammar) : in_blocks;
}

}  // namespace gompfs
