// The Python class gompfs._native.fuse.FuseServer: the threads that answer the requests of a mount.
//
// A request that the fast path (fuse/request_loop.h) cannot answer is answered by a method of a
// Python object, the handlers. Python sees no message of the FUSE protocol: the arguments of the
// request become the arguments of the method, and the value that it returns becomes the reply. If
// the method raises, `handlers.failed` chooses an errno, or parks the request until it can be
// answered.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/inode.h"
#include "fuse/attributes.h"
#include "fuse/handshake.h"
#include "fuse/listing.h"
#include "fuse/listing_table.h"
#include "fuse/parked_requests.h"
#include "fuse/reader_table.h"
#include "fuse/replies.h"
#include "fuse/reply_cache.h"
#include "fuse/request_loop.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// The content of a reply.
struct Reply {
    std::string content;
    std::vector<BufferView> pieces;  // more content, in memory of Python
    bool is_same_for_all_users = true;
};

template <typename Value>
Reply reply_of(const Value& value) {
    return {std::string(reinterpret_cast<const char*>(&value), sizeof value), {}};
}

template <typename Argument>
Argument argument_of(const Request& request) {
    const auto argument = request.argument<Argument>();
    if (!argument) {
        throw std::invalid_argument("the request is too short");
    }
    return *argument;
}

// Returns a name that ends with a null byte in the request.
nb::bytes name_in(std::string_view body) {
    return to_bytes(body.substr(0, body.empty() ? 0 : body.size() - 1));
}

// How Python describes a node: its inode, for how many seconds the kernel may cache that, and how
// many bytes of the node are stored, or None if it has no holes.
struct Node {
    explicit Node(nb::handle values)
        : cache_seconds(nb::cast<std::uint32_t>(values[1])), exists(!values[0].is_none()) {
        if (exists) {
            inode = inode_of(nb::object(values[0]));
            const auto stored = nb::cast<std::optional<std::uint64_t>>(values[2]);
            stored_size = stored.value_or(inode.size);
        }
    }

    std::uint32_t cache_seconds;
    bool exists;
    InodeFields inode{};
    std::uint64_t stored_size = 0;
};

Reply lookup(nb::handle handlers, const Request& request) {
    const fuse_in_header& header = request.header;
    const Node node(handlers.attr("lookup")(header.nodeid, name_in(request.body()), header.uid));
    fuse_entry_out absent{};
    absent.entry_valid = node.cache_seconds;
    return reply_of(node.exists ? make_entry(node.inode, node.stored_size, node.cache_seconds)
                                : absent);
}

Reply getattr(nb::handle handlers, const Request& request) {
    const Node node(handlers.attr("getattr")(request.header.nodeid));
    fuse_attr_out reply{};
    reply.attr = make_attributes(node.inode, node.stored_size);
    reply.attr_valid = node.cache_seconds;
    return reply_of(reply);
}

Reply readlink(nb::handle handlers, const Request& request) {
    const auto target = nb::cast<nb::bytes>(handlers.attr("readlink")(request.header.nodeid));
    return {std::string(target.c_str(), target.size()), {}};
}

Reply readdir(nb::handle handlers, const Request& request) {
    const auto read = argument_of<fuse_read_in>(request);
    const nb::object listing = handlers.attr("readdir")(request.header.nodeid);
    std::vector<std::uint8_t> packed;
    nb::cast<const Listing&>(listing).pack(
        read.offset, std::min<std::size_t>(read.size, kRequestCapacity), packed);
    return {std::string(packed.begin(), packed.end()), {}};
}

Reply statfs(nb::handle handlers, const Request& request) {
    const nb::object size = handlers.attr("statfs")(request.header.nodeid);
    const auto figure = [&](int index) { return nb::cast<std::uint64_t>(size[index]); };
    const auto small = [&](int index) { return static_cast<std::uint32_t>(figure(index)); };
    return reply_of(statfs_reply({figure(0), figure(1), small(2), small(3), small(4)}));
}

Reply reply_of_xattr(std::string_view value, std::uint32_t capacity) {
    auto reply = xattr_reply(value, capacity);
    if (!reply) {
        throw std::system_error(ERANGE, std::generic_category());
    }
    return {std::move(*reply), {}};
}

Reply getxattr(nb::handle handlers, const Request& request) {
    const auto asked = argument_of<fuse_getxattr_in>(request);
    const auto name = name_in(request.body().substr(sizeof asked));
    const auto value = nb::cast<nb::bytes>(handlers.attr("getxattr")(request.header.nodeid, name));
    return reply_of_xattr({value.c_str(), value.size()}, asked.size);
}

Reply listxattr(nb::handle handlers, const Request& request) {
    const auto asked = argument_of<fuse_getxattr_in>(request);
    const nb::object found = handlers.attr("listxattr")(request.header.nodeid, request.header.uid);
    std::string names;
    for (const nb::handle name : nb::object(found[0])) {
        const auto bytes = nb::cast<nb::bytes>(name);
        names.append(bytes.c_str(), bytes.size()).push_back('\0');
    }
    Reply reply = reply_of_xattr(names, asked.size);
    reply.is_same_for_all_users = nb::cast<bool>(found[1]);
    return reply;
}

Reply open(nb::handle handlers, const Request& request) {
    const nb::object opened = handlers.attr("open")(request.header.nodeid);
    const auto backing_id = nb::cast<std::optional<std::int32_t>>(opened[1]);
    return reply_of(open_reply(nb::cast<bool>(opened[0]), backing_id));
}

// The fast path answers RELEASE of files that are not counted.
Reply release(nb::handle handlers, const Request& request) {
    argument_of<fuse_release_in>(request);
    handlers.attr("release")(request.header.nodeid);
    return {};
}

Reply read(nb::handle handlers, const Request& request) {
    const auto range = argument_of<fuse_read_in>(request);
    const nb::object pieces =
        handlers.attr("read")(request.header.nodeid, range.offset, range.size);
    Reply reply;
    for (const nb::handle piece : pieces) {
        reply.pieces.emplace_back(piece, PyBUF_SIMPLE);
    }
    return reply;
}

Reply lseek(nb::handle handlers, const Request& request) {
    const auto asked = argument_of<fuse_lseek_in>(request);
    const nb::object offset =
        handlers.attr("seek")(request.header.nodeid, asked.offset, asked.whence);
    return reply_of(fuse_lseek_out{nb::cast<std::uint64_t>(offset)});
}

Reply destroy(nb::handle, const Request&) { return {}; }

struct Operation {
    std::uint32_t opcode;
    const char* name;
    Reply (*answer)(nb::handle handlers, const Request& request);
};

constexpr Operation kOperations[] = {
    {FUSE_LOOKUP, "lookup", lookup},
    {FUSE_GETATTR, "getattr", getattr},
    {FUSE_READLINK, "readlink", readlink},
    {FUSE_READDIRPLUS, "readdirplus", readdir},
    {FUSE_STATFS, "statfs", statfs},
    {FUSE_GETXATTR, "getxattr", getxattr},
    {FUSE_LISTXATTR, "listxattr", listxattr},
    {FUSE_OPEN, "open", open},
    {FUSE_RELEASE, "release", release},
    {FUSE_READ, "read", read},
    {FUSE_LSEEK, "lseek", lseek},
    {FUSE_DESTROY, "destroy", destroy},
};

const Operation* operation_of(const Request& request) {
    const auto* const found =
        std::find_if(std::begin(kOperations), std::end(kOperations),
                     [&](const Operation& each) { return each.opcode == request.header.opcode; });
    return found == std::end(kOperations) ? nullptr : found;
}

Request request_of(const std::string& message) {
    return Request({reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
}

class FuseServer {
  public:
    FuseServer(int device, std::shared_ptr<ReaderTable> readers,
               std::shared_ptr<ListingTable> listings, std::shared_ptr<ReplyCache> replies,
               nb::object handlers)
        : device_(device),
          readers_(std::move(readers)),
          listings_(std::move(listings)),
          replies_(std::move(replies)),
          handlers_(std::move(handlers)) {}

    int run() {
        const nb::gil_scoped_release release;
        return answer_requests(device_, {*readers_, *listings_, *replies_},
                               [&](std::span<const std::uint8_t> message) {
                                   const nb::gil_scoped_acquire acquire;
                                   answer(std::string(message.begin(), message.end()));
                               });
    }

    void close() { parked_.clear(); }

  private:
    // Answers a request that the fast path could not answer.
    void answer(const std::string& message) {
        const Request request = request_of(message);
        if (request.header.opcode == FUSE_INTERRUPT) {
            interrupt(request);
            return;
        }
        const Operation* const operation = operation_of(request);
        if (operation == nullptr) {
            send(request, -ENOSYS, {});
            return;
        }
        try {
            const Reply reply = operation->answer(handlers_, request);
            if (reply.is_same_for_all_users && lasts(request)) {
                replies_->insert(request, {0, reply.content});
            }
            send(request, 0, reply);
        } catch (nb::python_error& error) {
            fail(message, *operation, error.value());
        } catch (const std::system_error& error) {
            const std::error_code code = error.code();
            fail(message, *operation, nb::borrow(PyExc_OSError)(code.value(), code.message()));
        } catch (const std::bad_alloc& error) {
            fail(message, *operation, make_error(PyExc_MemoryError, error));
        } catch (const std::exception& error) {
            fail(message, *operation, make_error(PyExc_RuntimeError, error));
        }
    }

    static nb::object make_error(PyObject* type, const std::exception& error) {
        return nb::borrow(type)(error.what());
    }

    bool lasts(const Request& request) {
        return ReplyCache::takes(request.header.opcode) &&
               nb::cast<bool>(handlers_.attr("lasts")(request.header.nodeid));
    }

    void fail(const std::string& message, const Operation& operation, nb::handle error) {
        const Request request = request_of(message);
        const std::uint64_t unique = request.header.unique;
        parked_.insert(unique);  // first, since `failed` may answer it again before it returns
        const nb::object answer_again = nb::cpp_function([self = nb::find(this), this, message] {
            if (parked_.remove(request_of(message).header.unique)) {
                answer(message);
            }
        });
        const nb::object number = handlers_.attr("failed")(operation.name, error, answer_again);
        if (number.is_none() || !parked_.remove(unique)) {
            return;
        }
        const std::int32_t status = -nb::cast<std::int32_t>(number);
        if (status == -ENODATA && lasts(request)) {
            replies_->insert(request, {status, {}});
        }
        send(request, status, {});
    }

    // Answers a parked request with EINTR. Other requests are answered soon anyway.
    void interrupt(const Request& request) {
        const auto interrupted = request.argument<fuse_interrupt_in>();
        if (interrupted && parked_.remove(interrupted->unique)) {
            Request parked({});
            parked.header.unique = interrupted->unique;
            send(parked, -EINTR, {});
        }
    }

    void send(const Request& request, std::int32_t status, const Reply& reply) {
        std::string joined;
        std::vector<iovec> pieces{{}, iovec_of(reply.content)};
        if (reply.pieces.size() + pieces.size() > IOV_MAX) {
            for (const BufferView& piece : reply.pieces) {
                joined.append(reinterpret_cast<const char*>(piece.bytes().data()),
                              piece.bytes().size());
            }
            pieces.push_back(iovec_of(joined));
        } else {
            for (const BufferView& piece : reply.pieces) {
                pieces.push_back(
                    {const_cast<std::uint8_t*>(piece.bytes().data()), piece.bytes().size()});
            }
        }
        std::size_t size = 0;
        for (const iovec& piece : pieces) {
            size += piece.iov_len;
        }
        const int error = [&] {
            const nb::gil_scoped_release release;
            return send_reply(device_, request.header.unique, status, pieces, size);
        }();
        if (error != 0) {
            handlers_.attr("refused")(error);
        }
    }

    static iovec iovec_of(const std::string& content) {
        return {const_cast<char*>(content.data()), content.size()};
    }

    const int device_;
    const std::shared_ptr<ReaderTable> readers_;
    const std::shared_ptr<ListingTable> listings_;
    const std::shared_ptr<ReplyCache> replies_;
    const nb::object handlers_;
    ParkedRequests parked_;
};

}  // namespace

void bind_fuse_server(nb::module_& module) {
    nb::class_<FuseServer>(module, "FuseServer",
                           "Answers the requests from a FUSE device, without the interpreter where "
                           "the tables suffice.")
        .def(nb::init<int, std::shared_ptr<ReaderTable>, std::shared_ptr<ListingTable>,
                      std::shared_ptr<ReplyCache>, nb::object>(),
             "device"_a, "readers"_a, "listings"_a, "replies"_a, "handlers"_a,
             "`readers` must have a current reader. `handlers` are those of "
             "gompfs.mount.fuse.requests: they answer what the tables cannot answer.")
        .def("run", &FuseServer::run,
             "Answers requests until the mount is gone. Any number of threads may run this at "
             "once.\n\n"
             "Returns 0 at the end of the mount, or the errno if the device cannot be read.")
        .def("close", &FuseServer::close, "Leaves waiting requests unanswered.");
    module.def(
        "answer_init",
        [](int device, bool wants_passthrough, bool wants_acls) {
            const nb::gil_scoped_release release;
            const Features features = answer_init(device, {wants_passthrough, wants_acls});
            return std::pair(features.passthrough, features.acls);
        },
        "device"_a, "wants_passthrough"_a, "wants_acls"_a,
        "Answers the first request of the kernel, in which both sides agree on features.\n\n"
        "Returns whether the kernel supports passthrough, and whether it applies the POSIX ACLs of "
        "files; False if it is not wanted. Raises OSError if the device cannot be used, and "
        "RuntimeError if the kernel's version of the protocol is not supported.");
}

}  // namespace gompfs
