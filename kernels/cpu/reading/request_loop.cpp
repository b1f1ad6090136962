#include "reading/request_loop.h"

#include <unistd.h>

#include <cerrno>
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

struct OpenReply {
    std::uint64_t handle;
    std::uint32_t flags;
    std::int32_t backing_id;
};

constexpr std::uint32_t kOpen = 14;
constexpr std::uint32_t kRead = 15;
constexpr std::uint32_t kRelease = 18;
constexpr std::uint32_t kKeepCache = 1 << 1;
constexpr std::uint32_t kNoFlush = 1 << 5;
constexpr std::size_t kMaxPieces = 1000;  // writev takes 1,024

// False where the request is for the interpreter.
bool answer_read(int device, BlockReader& reader, std::span<const std::uint8_t> request,
                 ReadPieces& pieces) {
    RequestHeader header;
    ReadRequest read;
    if (request.size() < sizeof header + sizeof read) {
        return false;
    }
    std::memcpy(&header, request.data(), sizeof header);
    std::memcpy(&read, request.data() + sizeof header, sizeof read);
    pieces.blocks.clear();
    pieces.pieces.assign(1, {});
    pieces.size = 0;
    if (header.opcode != kRead || !reader.read(header.node, read.file_offset, read.size, pieces) ||
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

// Opens and closes files that are read block by block, where the mount counts who has others open.
bool answer_open(int device, BlockReader& reader, std::span<const std::uint8_t> request) {
    RequestHeader header;
    std::uint64_t handle;
    if (request.size() < sizeof header + sizeof handle) {
        return false;
    }
    std::memcpy(&header, request.data(), sizeof header);
    std::memcpy(&handle, request.data() + sizeof header, sizeof handle);
    const bool opens = header.opcode == kOpen && reader.is_small(header.node);
    if (!opens && !(header.opcode == kRelease && handle == 0)) {
        return false;
    }
    OpenReply open{0, kKeepCache | kNoFlush, 0};
    const std::size_t size = opens ? sizeof open : 0;
    ReplyHeader reply{static_cast<std::uint32_t>(sizeof reply + size), 0, header.unique};
    const iovec pieces[] = {{&reply, sizeof reply}, {&open, size}};
    [[maybe_unused]] const ssize_t written = writev(device, pieces, 2);
    return true;
}

}  // namespace

int answer_requests(int device, BlockReader& reader, std::size_t buffer_size,
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
        if (!answer_read(device, reader, request, pieces) &&
            !answer_open(device, reader, request)) {
            forward(request);
        }
    }
}

}  // namespace gompfs
