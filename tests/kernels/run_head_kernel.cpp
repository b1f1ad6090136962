// Opens heads of parts with the CUDA kernel on the host. Built with sanitizers.
//
// Usage: run_head_kernel < REQUEST
//
// REQUEST has the number of sections `words` (u32); for each its size (u32) and its bytes, as they
// are in device memory; then for each head the index of its section, its number of symbols, the
// size of its pool, of the opened head, of its workspace, and of its payload (u32 each), and the
// payload. All heads are opened in one launch. Writes for each head a byte (0 for a valid one), and
// the opened head. Memory around all of them is poisoned.
#include "host/cuda_on_host.h"
// Include the kernel first, so that no other header can hide a missing include of its own.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "codec/open_heads.cu"
#include "kernel_request.h"

namespace {

using namespace gompfs_test;

constexpr unsigned kNumCtas = 2;
constexpr std::size_t kReadablePadding = 256;  // the kernel may read this far past a payload

struct Head {
    std::uint32_t section, num_symbols, pool_size, opened_size, workspace_size, payload_size;
    Buffer payload;
};

std::vector<Head> read_heads() {
    std::vector<Head> heads;
    std::uint32_t fields[6];
    while (std::fread(fields, sizeof fields, 1, stdin) == 1) {
        heads.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], fields[5],
                         read_bytes(fields[5])});
    }
    return heads;
}

}  // namespace

int main() {
    std::vector<Buffer> sections;
    for (std::uint32_t left = read_number(); left != 0; --left) {
        sections.push_back(read_bytes(read_number()));
    }
    const std::vector<Head> heads = read_heads();
    Arena words, payloads, opened, workspaces;
    std::vector<std::uint64_t> word_offsets, payload_offsets, opened_offsets, workspace_offsets;
    for (const Buffer& section : sections) {
        word_offsets.push_back(words.add(section.size()));
    }
    for (const Head& head : heads) {
        payload_offsets.push_back(payloads.add(head.payload_size + kReadablePadding));
        opened_offsets.push_back(opened.add(head.opened_size));
        workspace_offsets.push_back(workspaces.add(head.workspace_size));
    }
    unsigned char* const of_words = words.allocate(0xee);
    unsigned char* const of_payloads = payloads.allocate(0xee);
    unsigned char* const of_opened = opened.allocate(0xee);
    unsigned char* const of_workspaces = workspaces.allocate(0xee);
    for (std::size_t index = 0; index < sections.size(); ++index) {
        std::copy(sections[index].begin(), sections[index].end(), of_words + word_offsets[index]);
    }
    std::vector<gompfs::HeadTask> tasks;
    for (std::size_t index = 0; index < heads.size(); ++index) {
        const Head& head = heads[index];
        unsigned char* const payload = of_payloads + payload_offsets[index];
        std::copy(head.payload.begin(), head.payload.end(), payload);
        tasks.push_back({payload,
                         reinterpret_cast<gompfs::TadocHead*>(of_opened + opened_offsets[index]),
                         of_workspaces + workspace_offsets[index],
                         reinterpret_cast<const gompfs::StoredTokens*>(
                             of_words + word_offsets.at(head.section)),
                         head.payload_size, head.pool_size, head.num_symbols, head.workspace_size});
    }
    Buffer statuses(heads.size(), 255);
    unsigned next_head = 0;
    cuda_on_host::launch(kNumCtas, gompfs::kHeadThreads, gompfs::kHeadBytesPerCta, [&] {
        open_heads(tasks.data(), statuses.data(), &next_head, static_cast<unsigned>(tasks.size()));
    });
    for (std::size_t index = 0; index < heads.size(); ++index) {
        std::putchar(statuses[index] == gompfs::kStatusOk ? 0 : 1);
        std::fwrite(of_opened + opened_offsets[index], 1, heads[index].opened_size, stdout);
    }
    return 0;
}
