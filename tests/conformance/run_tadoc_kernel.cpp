// Decodes blocks of gompresso-tadoc with the CUDA kernel on the host. Built with sanitizers.
//
// Usage: run_tadoc_kernel < REQUEST
//
// REQUEST has the number of heads (u32); for each its size (u32) and its bytes, as they are in
// device memory; then for each payload the index of its head, its size and the size of its content
// (u32 each), and its bytes. All payloads are decoded in one launch. Writes for each payload a byte
// (0 for a valid payload) and the content. Memory around payloads, heads and outputs is poisoned.
#include "host/cuda_on_host.h"
// Include the kernel first, so that no other header can hide a missing include of its own.
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "codec/decode_tadoc.cu"

namespace {

constexpr unsigned kNumWarps = 2, kNumCtas = 2;
constexpr std::size_t kReadablePadding = 64;  // the kernel may read this far past a payload
constexpr std::size_t kGap = 64;

// Memory in which byte strings can be accessed that lie at multiples of 64, and nothing between.
class Arena {
  public:
    // Returns the offset of a string of `size` bytes.
    std::uint64_t add(std::size_t size) {
        sizes_.push_back(size);
        offsets_.push_back(end_);
        end_ += (size + kGap + kAlignment - 1) / kAlignment * kAlignment;
        return offsets_.back();
    }

    // Call after the last add().
    unsigned char* allocate(unsigned char fill) {
        memory_.resize(end_ + kAlignment, fill);
        unsigned char* const start = memory_.data();
        first_ = start +
                 (kAlignment - reinterpret_cast<std::uintptr_t>(start) % kAlignment) % kAlignment;
        for (std::size_t index = 0; index < sizes_.size(); ++index) {
            const std::size_t next = index + 1 < sizes_.size() ? offsets_[index + 1] : end_;
            const std::size_t end = offsets_[index] + sizes_[index];
            ASAN_POISON_MEMORY_REGION(first_ + end, next - end);
        }
        return first_;
    }

    ~Arena() { ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size()); }
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

  private:
    static constexpr std::size_t kAlignment = 64;
    std::vector<std::size_t> sizes_, offsets_;
    std::vector<unsigned char> memory_;
    unsigned char* first_ = nullptr;
    std::size_t end_ = 0;
};

using Buffer = std::vector<unsigned char>;

Buffer read_bytes(std::size_t size) {
    Buffer bytes(size);
    if (std::fread(bytes.data(), 1, size, stdin) != size) {
        std::abort();
    }
    return bytes;
}

std::uint32_t read_number() {
    std::uint32_t number;
    std::memcpy(&number, read_bytes(sizeof number).data(), sizeof number);
    return number;
}

struct Request {
    std::vector<Buffer> heads, payloads;
    std::vector<unsigned> head_of, payload_sizes, content_sizes;
};

Request read_request() {
    Request request;
    const std::uint32_t num_heads = read_number();
    for (std::uint32_t head = 0; head < num_heads; ++head) {
        request.heads.push_back(read_bytes(read_number()));
    }
    std::uint32_t fields[3];
    while (std::fread(fields, sizeof fields, 1, stdin) == 1) {
        request.head_of.push_back(fields[0]);
        request.payload_sizes.push_back(fields[1]);
        request.content_sizes.push_back(fields[2]);
        request.payloads.push_back(read_bytes(fields[1]));
    }
    return request;
}

}  // namespace

int main() {
    const Request request = read_request();
    const std::size_t count = request.payloads.size();
    Arena heads, payloads, outputs;
    std::vector<std::uint64_t> head_offsets;
    std::vector<unsigned long long> head_addresses, payload_offsets, output_offsets;
    for (const Buffer& head : request.heads) {
        head_offsets.push_back(heads.add(head.size()));
    }
    for (std::size_t index = 0; index < count; ++index) {
        payload_offsets.push_back(payloads.add(request.payload_sizes[index] + kReadablePadding));
        output_offsets.push_back(outputs.add(request.content_sizes[index]));
    }
    unsigned char* const of_heads = heads.allocate(0);
    unsigned char* const of_payloads = payloads.allocate(0);
    unsigned char* const of_outputs = outputs.allocate(0xee);
    for (std::size_t index = 0; index < request.heads.size(); ++index) {
        std::copy(request.heads[index].begin(), request.heads[index].end(),
                  of_heads + head_offsets[index]);
    }
    for (std::size_t index = 0; index < count; ++index) {
        std::copy(request.payloads[index].begin(), request.payloads[index].end(),
                  of_payloads + payload_offsets[index]);
        head_addresses.push_back(
            reinterpret_cast<std::uintptr_t>(of_heads + head_offsets[request.head_of[index]]));
    }
    Buffer statuses(count, 255);
    unsigned next_block = 0;
    cuda_on_host::launch(kNumCtas, kNumWarps * 32, kNumWarps * gompfs::kTadocBytesPerWarp, [&] {
        decode_tadoc(of_payloads, payload_offsets.data(), request.payload_sizes.data(), of_outputs,
                     output_offsets.data(), request.content_sizes.data(), statuses.data(),
                     &next_block, head_addresses.data(), static_cast<unsigned>(count));
    });
    for (std::size_t index = 0; index < count; ++index) {
        std::putchar(statuses[index] == gompfs::kStatusOk ? 0 : 1);
        std::fwrite(of_outputs + output_offsets[index], 1, request.content_sizes[index], stdout);
    }
    return 0;
}
