// The loop that answers the kernel's requests; see request_loop.h.
//
// Each thread reads one request at a time, tries to answer it from the tables (class Answers), and
// otherwise calls the interpreter. A reply to a read is written with one writev from the cached
// blocks, so file content is never copied in the process. If anything about a request is unusual,
// it is forwarded: the interpreter is the complete implementation, this is the fast path.
#include "fuse/request_loop.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <vector>

#include "fuse/core_follower.h"
#include "fuse/protocol.h"
#include "fuse/replies.h"
#include "fuse/request.h"

namespace gompfs {

namespace {

constexpr std::size_t kMaxPieces = 1000;  // writev takes 1,024

// Answers the requests of one thread.
class Answers {
  public:
    Answers(int device, Sources sources) : device_(device), sources_(sources) {}

    // Returns false if the interpreter must answer.
    bool answer(const Request& request, const ReaderTable::Target& target) {
        switch (request.header.opcode) {
            case FUSE_READ:
                return answer_read(request, target);
            case FUSE_OPEN:
            case FUSE_RELEASE:
                return answer_open(request, target);
            case FUSE_READDIRPLUS:
                return answer_listing(request);
            case FUSE_LOOKUP:
                return answer_lookup(request);
            case FUSE_FORGET:
            case FUSE_BATCH_FORGET:
                return true;  // nodes are never freed; the kernel expects no reply
            default:
                return answer_from_cache(request);
        }
    }

  private:
    bool answer_read(const Request& request, const ReaderTable::Target& target) {
        const auto read = request.argument<fuse_read_in>();
        pieces_.blocks.clear();
        pieces_.pieces.assign(1, {});
        pieces_.size = 0;
        const bool is_there =
            read && target.archive &&
            target.archive->reader->read(target.ino, read->offset, read->size, pieces_) &&
            pieces_.pieces.size() <= kMaxPieces;
        if (is_there) {
            target.archive->num_read_bytes.fetch_add(pieces_.size, std::memory_order_relaxed);
            send_reply(device_, request.header.unique, 0, pieces_.pieces, pieces_.size);
        }
        pieces_.blocks.clear();
        return is_there;
    }

    // Opens and closes small files, which need no file handle. The mount counts the handles of
    // other files, so the interpreter opens and closes those.
    bool answer_open(const Request& request, const ReaderTable::Target& target) {
        if (request.header.opcode == FUSE_OPEN) {
            const bool is_small =
                request.argument<fuse_open_in>() && sources_.readers.opens(target);
            if (is_small) {
                send(request, 0, bytes_of(open_reply(false, std::nullopt)));
            }
            return is_small;
        }
        const auto release = request.argument<fuse_release_in>();
        const bool is_ours = release && release->fh == kNotCounted;
        if (is_ours) {
            send(request, 0, {});
        }
        return is_ours;
    }

    bool answer_listing(const Request& request) {
        const auto read = request.argument<fuse_read_in>();
        const auto listing = read ? sources_.listings.use(request.header.nodeid) : nullptr;
        if (!listing) {
            return false;
        }
        packed_.clear();
        listing->pack(read->offset, std::min<std::size_t>(read->size, kRequestCapacity), packed_);
        send(request, 0, packed_);
        return true;
    }

    // Names of the root are left to the interpreter: the root may have names that it does not list.
    bool answer_lookup(const Request& request) {
        const std::uint64_t node = request.header.nodeid;
        if (node == FUSE_ROOT_ID || request.body().empty()) {
            return false;
        }
        const auto listing = sources_.listings.use(node);
        if (!listing || !listing->is_sorted()) {
            sources_.listings.note_missed(node);
            return false;
        }
        const std::string_view name = request.body().substr(0, request.body().size() - 1);
        const InodeFields* inode = listing->find(name);
        if (inode == nullptr && name.size() > NAME_MAX) {
            return false;  // such a name is an error, not merely a missing entry
        }
        fuse_entry_out entry{};
        entry.entry_valid = listing->cache_seconds();
        if (inode != nullptr) {
            entry = make_entry(*inode, listing->stored_size(*inode), listing->cache_seconds());
        }
        send(request, 0, bytes_of(entry));
        return true;
    }

    bool answer_from_cache(const Request& request) {
        const std::optional<CachedReply> reply = sources_.replies.find(request);
        if (!reply) {
            return false;
        }
        send(request, reply->error,
             {reinterpret_cast<const std::uint8_t*>(reply->content.data()), reply->content.size()});
        return true;
    }

    void send(const Request& request, std::int32_t error, std::span<const std::uint8_t> content) {
        send_reply(device_, request.header.unique, error, content);
    }

    const int device_;
    const Sources sources_;
    ReadPieces pieces_;
    std::vector<std::uint8_t> packed_;
};

}  // namespace

int answer_requests(int device, Sources sources, const Forward& forward) {
    std::vector<std::uint8_t> buffer(kRequestCapacity);
    Answers answers(device, sources);
    CoreFollower core_follower;
    for (;;) {
        const ssize_t size = ::read(device, buffer.data(), buffer.size());
        if (size == 0) {
            return 0;  // the device was replaced by one that is at its end, to stop this thread
        }
        if (size < 0) {
            if (errno == ENOENT || errno == EAGAIN || errno == EINTR) {
                continue;  // the request was interrupted before it was read
            }
            // ECONNABORTED: the mount ended while the kernel copied a request to this thread
            return errno == ENODEV || errno == ECONNABORTED ? 0 : errno;
        }
        const std::span request(buffer.data(), static_cast<std::size_t>(size));
        const Request parsed(request);
        const auto begin = std::chrono::steady_clock::now();
        const auto target = sources.readers.find(parsed.header.nodeid);
        const bool is_read = parsed.header.opcode == FUSE_READ;
        if (is_read) {
            core_follower.leave();  // a read may start other threads, which inherit the core
        }
        const bool is_forwarded = !answers.answer(parsed, target);
        if (is_forwarded) {
            core_follower.leave();
            forward(request);
        }
        (target.archive ? target.archive : sources.readers.current())
            ->times.add(is_read, is_forwarded, std::chrono::steady_clock::now() - begin);
        if (!is_read && !is_forwarded) {
            core_follower.follow(parsed.header.pid);
        }
    }
}

}  // namespace gompfs
