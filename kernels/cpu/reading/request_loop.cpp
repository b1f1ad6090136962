#include "reading/request_loop.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace gompfs {

namespace {

constexpr std::size_t kMaxPieces = 1000;  // writev takes 1,024

// A request of the kernel: its header, then what its opcode needs.
class Request {
  public:
    explicit Request(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
        if (bytes.size() >= sizeof header) {
            std::memcpy(&header, bytes.data(), sizeof header);
        }
    }

    template <typename Argument>
    std::optional<Argument> argument() const {
        Argument value;
        if (bytes_.size() < sizeof header + sizeof value) {
            return std::nullopt;
        }
        std::memcpy(&value, bytes_.data() + sizeof header, sizeof value);
        return value;
    }
    // A name, without the zero behind it.
    std::string_view name() const {
        const std::span rest = bytes_.subspan(sizeof header);
        return {reinterpret_cast<const char*>(rest.data()), rest.size() - 1};
    }
    bool has_name() const { return bytes_.size() > sizeof header; }

    fuse_in_header header{};

  private:
    const std::span<const std::uint8_t> bytes_;
};

// Answers requests of one thread.
class Answers {
  public:
    Answers(int device, BlockReader& reader, const ListingTable& listings)
        : device_(device), reader_(reader), listings_(listings) {}

    // False where the request is for the interpreter.
    bool answer(const Request& request) {
        switch (request.header.opcode) {
            case FUSE_READ:
                return answer_read(request);
            case FUSE_READDIRPLUS:
                return answer_listing(request);
            case FUSE_LOOKUP:
                return request.has_name() && answer_lookup(request);
            default:
                return false;
        }
    }

  private:
    bool answer_read(const Request& request) {
        const auto read = request.argument<fuse_read_in>();
        pieces_.blocks.clear();
        pieces_.pieces.assign(1, {});
        pieces_.size = 0;
        const bool is_there =
            read && reader_.read(request.header.nodeid, read->offset, read->size, pieces_) &&
            pieces_.pieces.size() <= kMaxPieces;
        if (is_there) {
            reply(request, pieces_.pieces, pieces_.size);
        }
        pieces_.blocks.clear();
        return is_there;
    }

    bool answer_listing(const Request& request) {
        const auto read = request.argument<fuse_read_in>();
        const auto listing = listings_.find(request.header.nodeid);
        if (!read || !listing) {
            return false;
        }
        reply(request, listing->entries(read->offset, read->size));
        return true;
    }

    // The root may have names beside those that it lists, and so has what is listed in no order.
    bool answer_lookup(const Request& request) {
        const auto listing = listings_.find(request.header.nodeid);
        if (!listing) {
            return false;
        }
        if (const fuse_entry_out* entry = listing->find(request.name())) {
            reply(request, {reinterpret_cast<const std::uint8_t*>(entry), sizeof *entry});
            return true;
        }
        if (request.header.nodeid == FUSE_ROOT_ID || !listing->is_sorted()) {
            return false;
        }
        fuse_entry_out absent{};
        absent.entry_valid = listing->cache_seconds();
        reply(request, {reinterpret_cast<const std::uint8_t*>(&absent), sizeof absent});
        return true;
    }

    void reply(const Request& request, std::span<const std::uint8_t> content) {
        std::vector<iovec>& pieces = pieces_.pieces;
        pieces.assign(1, {});
        pieces.push_back({const_cast<std::uint8_t*>(content.data()), content.size()});
        reply(request, pieces, content.size());
    }

    // The first piece is for the header.
    void reply(const Request& request, std::vector<iovec>& pieces, std::size_t size) {
        fuse_out_header header{static_cast<std::uint32_t>(sizeof header + size), 0,
                               request.header.unique};
        pieces[0] = {&header, sizeof header};
        // It fails where nobody waits for the answer any more.
        [[maybe_unused]] const ssize_t written =
            writev(device_, pieces.data(), static_cast<int>(pieces.size()));
    }

    const int device_;
    BlockReader& reader_;
    const ListingTable& listings_;
    ReadPieces pieces_;
};

}  // namespace

int answer_requests(int device, BlockReader& reader, const ListingTable& listings,
                    std::size_t buffer_size, const Forward& forward) {
    std::vector<std::uint8_t> buffer(buffer_size);
    Answers answers(device, reader, listings);
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
        if (!answers.answer(Request(request))) {
            forward(request);
        }
    }
}

}  // namespace gompfs
