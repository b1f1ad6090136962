#include "reading/request_loop.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace gompfs {

namespace {

// linux/fuse.h, version 7: the start of every request, of a read, and of every reply.
struct RequestHeader {
    std::uint32_t length;
    std::uint32_t opcode;
    std::uint64_t unique;
    std::uint64_t node;
    std::uint32_t uid, gid, pid;
    std::uint32_t extension;
};

struct ReadRequest {
    std::uint64_t handle;
    std::uint64_t file_offset;
    std::uint32_t size;
    std::uint32_t flags;
};

struct ReplyHeader {
    std::uint32_t length;
    std::int32_t error;
    std::uint64_t unique;
};

constexpr std::uint32_t kRead = 15;
constexpr std::size_t kMaxPieces = 1000;  // writev takes 1,024

// False where the request is for the interpreter.
bool answer_read(int device, BlockReader& reader, std::uint64_t ino, const RequestHeader& header,
                 std::span<const std::uint8_t> request, ReadPieces& pieces) {
    ReadRequest read;
    if (header.opcode != kRead || request.size() < sizeof header + sizeof read) {
        return false;
    }
    std::memcpy(&read, request.data() + sizeof header, sizeof read);
    pieces.blocks.clear();
    pieces.pieces.assign(1, {});
    pieces.size = 0;
    if (!reader.read(ino, read.file_offset, read.size, pieces) ||
        pieces.pieces.size() > kMaxPieces) {
        pieces.blocks.clear();
        return false;
    }
    ReplyHeader reply{static_cast<std::uint32_t>(sizeof reply + pieces.size), 0, header.unique};
    pieces.pieces[0] = {&reply, sizeof reply};
    // It fails where nobody waits for the answer any more.
    [[maybe_unused]] const ssize_t written =
        writev(device, pieces.pieces.data(), static_cast<int>(pieces.pieces.size()));
    pieces.blocks.clear();
    return true;
}

}  // namespace

int answer_requests(int device, const ReaderTable& readers, std::size_t buffer_size,
                    const Forward& forward) {
    std::vector<std::uint8_t> buffer(buffer_size);
    ReadPieces pieces;
    for (;;) {
        const ssize_t size = ::read(device, buffer.data(), buffer.size());
        if (size == 0) {
            return 0;  // the device was exchanged for one that ends, to stop this thread
        }
        if (size < 0) {
            if (errno == ENOENT || errno == EAGAIN || errno == EINTR) {
                continue;  // the request was interrupted before anybody took it
            }
            return errno == ENODEV ? 0 : errno;
        }
        const std::span request(buffer.data(), static_cast<std::size_t>(size));
        const auto begin = std::chrono::steady_clock::now();
        RequestHeader header{};
        if (request.size() >= sizeof header) {
            std::memcpy(&header, request.data(), sizeof header);
        }
        const auto [reader, ino] = readers.find(header.node);
        const bool is_forwarded =
            !reader || !answer_read(device, *reader, ino, header, request, pieces);
        if (is_forwarded) {
            forward(request);
        }
        (reader ? reader : readers.current())
            ->times.add(header.opcode == kRead, is_forwarded,
                        std::chrono::steady_clock::now() - begin);
    }
}

}  // namespace gompfs
