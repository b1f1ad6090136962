// Builds parts; see parts_builder.h.
//
// From text to blocks
//
// 1. PartCollector cuts the text of the files into parts.
// 2. A worker thread builds the grammar of a part (part_grammar.h), counts its tokens in
//    SharedTokens, and stores the grammar in temporary storage: which tokens other parts use as well
//    is known only when all parts are there.
// 3. After the last file, the shared tokens are numbered, and every part is encoded (part_encoder.h).
//
// A part whose grammar would be larger than its text in gompresso-bit is stored in that codec. It is
// encoded at once, and its tokens are not counted. So is a part with a token that is longer than a
// part. A part that exceeds a limit of the format falls back to gompresso-bit at the end.
//
// Memory: each worker has a part, and as many wait. Temporary storage begins in memory and continues
// in an unnamed file; it takes about a third of the text. A failure in a worker is kept and thrown
// from the next call. The workers are threads of the builder's own, for the reason that
// grammar/builder.cpp gives.
#include "parts/parts_builder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "codec/block.h"
#include "common/failures.h"
#include "common/little_endian.h"
#include "parts/stored_grammar.h"

namespace gompfs {
namespace {

constexpr std::uint64_t kStoredInMemory = 64 << 20;
constexpr std::size_t kPartsAtOnce = 32;
constexpr int kFallbackLevel = 6;  // of gompresso-bit

// The blocks of a text in gompresso-bit, one after another.
std::vector<std::vector<std::uint8_t>> encode_blocks(std::string_view text,
                                                     std::uint32_t block_size) {
    std::vector<std::vector<std::uint8_t>> blocks;
    const Bytes bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    for (std::size_t at = 0; at < bytes.size(); at += block_size) {
        const Bytes content = bytes.subspan(at, std::min<std::size_t>(block_size, bytes.size() - at));
        blocks.push_back(encode_block(content, {Codec::gompresso_bit, kFallbackLevel, false}));
    }
    return blocks;
}

std::uint64_t total_size(const std::vector<std::vector<std::uint8_t>>& blocks) {
    std::uint64_t size = 0;
    for (const std::vector<std::uint8_t>& block : blocks) {
        size += block.size();
    }
    return size;
}

// About log2(value) * 16.
std::uint64_t log2_in_16ths(std::uint64_t value) {
    const int whole = std::bit_width(value) - 1;
    const std::uint64_t fraction = whole >= 4 ? value >> (whole - 4) & 15 : value << (4 - whole) & 15;
    return static_cast<std::uint64_t>(whole) * 16 + fraction;
}

// About how many bytes a part takes as a grammar: the entropy of its symbols, and half of the bytes
// of its tokens.
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
    return bits_in_16ths / 128 + token_bytes / 2;
}

}  // namespace

PartsBuilder::PartsBuilder(Tokenizer tokenizer, Options options)
    : options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      collector_(tokenizer_, options_.part_size,
                 [this](CollectedPart part) { dispatch(std::move(part)); }),
      spill_({options_.directory, kStoredInMemory, ~std::uint64_t{0}}) {
    for (unsigned number = 0; number < std::max(options_.num_threads, 1u); ++number) {
        threads_.emplace_back([this] { work(); });
    }
}

PartsBuilder::~PartsBuilder() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        waiting_.clear();
    }
    cancellation_.cancel();
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

// Hands a part to a worker. Waits while as many parts are waiting as there are workers.
void PartsBuilder::dispatch(CollectedPart part) {
    std::unique_lock lock(mutex_);
    wait_unless_cancelled(changed_, lock,
                          [&] { return waiting_.size() < threads_.size() || failure_; });
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    parts_.resize(part.number + std::size_t{1});
    waiting_.push_back(std::move(part));
    changed_.notify_all();
}

void PartsBuilder::work() {
    const CancellationScope scope(&cancellation_);
    PartGrammarBuilder builder(tokenizer_, options_.block_size);
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return !waiting_.empty() || stopping_; });
        if (waiting_.empty()) {
            return;
        }
        const CollectedPart part = std::move(waiting_.front());
        waiting_.pop_front();
        ++num_running_;
        lock.unlock();
        changed_.notify_all();
        Stored stored;
        std::exception_ptr failure;
        try {
            stored = store(part, builder);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        parts_[part.number] = stored;
        failure_ = failure_ ? failure_ : failure;
        --num_running_;
        changed_.notify_all();
    }
}

PartsBuilder::Stored PartsBuilder::store(const CollectedPart& part, PartGrammarBuilder& builder) {
    Stored stored{.text_size = part.text.size()};
    std::vector<std::uint8_t> bytes;
    stored.is_grammar = part.text.size() <= options_.part_size;
    if (stored.is_grammar) {
        const PartGrammar grammar = builder.build(part.text, part.file_ends);
        const std::uint64_t estimate = estimated_size(grammar);
        // Text that is not hard to compress is smaller as a grammar.
        if (estimate > part.text.size() / 3) {
            stored.is_grammar = total_size(encode_blocks(part.text, options_.block_size)) > estimate;
        }
        if (stored.is_grammar) {
            shared_.add(grammar.tokens, grammar.are_words);
            bytes = store_grammar(grammar);
        }
    }
    if (!stored.is_grammar) {
        for (const auto& block : encode_blocks(part.text, options_.block_size)) {
            append(bytes, static_cast<std::uint32_t>(block.size()));
            bytes.insert(bytes.end(), block.begin(), block.end());
        }
    }
    stored.offset = spill_.append(bytes);
    stored.size = bytes.size();
    return stored;
}

void PartsBuilder::finish() {
    collector_.flush();
    {
        std::unique_lock lock(mutex_);
        wait_unless_cancelled(changed_, lock,
                              [&] { return (waiting_.empty() && num_running_ == 0) || failure_; });
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
    shared_.number();
}

std::vector<std::uint64_t> PartsBuilder::part_sizes() const {
    std::vector<std::uint64_t> sizes;
    for (const Stored& part : parts_) {
        sizes.push_back(part.text_size);
    }
    return sizes;
}

std::vector<std::uint8_t> PartsBuilder::word_section() const {
    const WordSection& section = shared_.section();
    return section.words().size() + section.separators().size() == 0
               ? std::vector<std::uint8_t>()
               : write_word_section(section);
}

std::vector<EncodedPart> PartsBuilder::next_parts() {
    const std::size_t count = std::min(parts_.size() - next_part_, kPartsAtOnce);
    std::vector<EncodedPart> built(count);
    parallel_for_all(count, options_.num_threads,
                     [&](std::size_t index) { built[index] = load(parts_[next_part_ + index]); });
    next_part_ += count;
    return built;
}

EncodedPart PartsBuilder::load(const Stored& stored) {
    std::vector<std::uint8_t> bytes(stored.size);
    spill_.read(stored.offset, bytes);
    EncodedPart encoded;
    if (stored.is_grammar) {
        const PartGrammar part = load_grammar(bytes);
        if (auto of_grammar = encode_part(part, shared_, options_.block_size)) {
            return std::move(*of_grammar);
        }
        encoded.blocks = encode_blocks(text_of(part), options_.block_size);
        return encoded;
    }
    for (Bytes rest = bytes; !rest.empty();) {
        const auto size = gompfs::load<std::uint32_t>(rest.data());
        const Bytes block = rest.subspan(sizeof size, size);
        encoded.blocks.emplace_back(block.begin(), block.end());
        rest = rest.subspan(sizeof size + size);
    }
    return encoded;
}

}  // namespace gompfs
