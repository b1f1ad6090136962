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
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "codec/decode_tadoc.cu"
#include "kernel_request.h"

namespace {

using namespace gompfs_test;

constexpr unsigned kNumWarps = 2, kNumCtas = 2;
constexpr std::size_t kReadablePadding = 64;  // the kernel may read this far past a payload

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
