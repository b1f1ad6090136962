// Serves a directory tree from memory through libfuse's low-level API, to compare libfuse with the
// request loop of gompfs (tools/experiments/fuse_low_level.py; docs/decisions). It is tuned as well
// as libfuse permits: several threads, a clone of the device for each thread, READDIRPLUS always,
// no OPEN and OPENDIR, long timeouts, replies straight from the memory of the files.
//
//   g++ -O3 -std=c++20 fuse_low_level.cpp -o fuse_low_level $(pkg-config --cflags --libs fuse3)
//   fuse_low_level TREE MOUNTPOINT [-o options of libfuse]
#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr double kTimeout = 3600;
constexpr unsigned kMaxThreads = 10, kMaxRead = 1 << 20;

struct Node {
    struct stat status{};
    std::string content;                                      // of a file; target of a symlink
    std::vector<std::pair<std::string, fuse_ino_t>> entries;  // sorted by name
};

std::vector<Node> nodes(FUSE_ROOT_ID);  // by node id; the first one is unused

fuse_ino_t load(const std::filesystem::path& path, fuse_ino_t number) {
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0) {
        std::perror(path.c_str());
        std::exit(1);
    }
    status.st_ino = number;
    status.st_blksize = 1 << 20;
    Node node;
    node.status = status;
    if (S_ISREG(status.st_mode)) {
        std::ifstream file(path, std::ios::binary);
        node.content.resize(static_cast<std::size_t>(status.st_size));
        file.read(node.content.data(), status.st_size);
    } else if (S_ISLNK(status.st_mode)) {
        node.content = std::filesystem::read_symlink(path).string();
    } else if (S_ISDIR(status.st_mode)) {
        for (const auto& entry : std::filesystem::directory_iterator(path)) {
            const fuse_ino_t child = nodes.size();
            nodes.emplace_back();
            node.entries.emplace_back(entry.path().filename().string(), load(entry.path(), child));
        }
        std::sort(node.entries.begin(), node.entries.end());
    }
    nodes[number] = std::move(node);
    return number;
}

fuse_entry_param entry_of(fuse_ino_t number) {
    fuse_entry_param entry{};
    entry.ino = number;
    entry.attr = nodes[number].status;
    entry.attr_timeout = entry.entry_timeout = kTimeout;
    return entry;
}

void init(void*, fuse_conn_info* connection) {
    connection->want &= ~static_cast<unsigned>(FUSE_CAP_READDIRPLUS_AUTO);
    connection->want |= FUSE_CAP_READDIRPLUS | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ASYNC_READ |
                        FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT;
    connection->want &= connection->capable;
    connection->max_read = kMaxRead;  // as the mount option says
    connection->max_background = 64;
    connection->congestion_threshold = 48;
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
    const auto& entries = nodes[parent].entries;
    const auto found = std::lower_bound(
        entries.begin(), entries.end(), name,
        [](const auto& entry, const char* wanted) { return entry.first < wanted; });
    fuse_entry_param entry{};
    entry.entry_timeout = kTimeout;
    if (found != entries.end() && found->first == name) {
        entry = entry_of(found->second);
    }
    fuse_reply_entry(request, &entry);
}

void forget(fuse_req_t request, fuse_ino_t, std::uint64_t) { fuse_reply_none(request); }
void forget_multi(fuse_req_t request, std::size_t, fuse_forget_data*) { fuse_reply_none(request); }

void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
    fuse_reply_attr(request, &nodes[number].status, kTimeout);
}

void readlink(fuse_req_t request, fuse_ino_t number) {
    fuse_reply_readlink(request, nodes[number].content.c_str());
}

void open(fuse_req_t request, fuse_ino_t, fuse_file_info*) { fuse_reply_err(request, ENOSYS); }

void read(fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset, fuse_file_info*) {
    const std::string& content = nodes[number].content;
    const std::size_t start = std::min(static_cast<std::size_t>(offset), content.size());
    fuse_reply_buf(request, content.data() + start, std::min(size, content.size() - start));
}

void readdirplus(fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset,
                 fuse_file_info*) {
    static thread_local std::vector<char> buffer;
    buffer.resize(size);
    const auto& entries = nodes[number].entries;
    std::size_t used = 0;
    for (std::size_t index = static_cast<std::size_t>(offset); index < entries.size() + 2;
         ++index) {
        fuse_entry_param entry{};
        const char* name = index == 0 ? "." : "..";
        if (index >= 2) {
            name = entries[index - 2].first.c_str();
            entry = entry_of(entries[index - 2].second);
        } else {
            entry.attr.st_mode = S_IFDIR;
            entry.attr.st_ino = number;
        }
        const std::size_t needed =
            fuse_add_direntry_plus(request, buffer.data() + used, size - used, name, &entry,
                                   static_cast<off_t>(index + 1));
        if (needed > size - used) {
            break;
        }
        used += needed;
    }
    fuse_reply_buf(request, buffer.data(), used);
}

void getxattr(fuse_req_t request, fuse_ino_t, const char*, std::size_t) {
    fuse_reply_err(request, ENOSYS);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s TREE MOUNTPOINT [-o OPTIONS]\n", argv[0]);
        return 2;
    }
    nodes.emplace_back();
    load(argv[1], FUSE_ROOT_ID);
    fuse_lowlevel_ops operations{};
    operations.init = init;
    operations.lookup = lookup;
    operations.forget = forget;
    operations.forget_multi = forget_multi;
    operations.getattr = getattr;
    operations.readlink = readlink;
    operations.open = open;
    operations.opendir = open;
    operations.read = read;
    operations.readdirplus = readdirplus;
    operations.getxattr = getxattr;

    std::vector<char*> arguments{argv[0]};
    arguments.insert(arguments.end(), argv + 3, argv + argc);
    fuse_args args = FUSE_ARGS_INIT(static_cast<int>(arguments.size()), arguments.data());
    fuse_session* const session = fuse_session_new(&args, &operations, sizeof operations, nullptr);
    if (session == nullptr || fuse_set_signal_handlers(session) != 0 ||
        fuse_session_mount(session, argv[2]) != 0) {
        return 1;
    }
    fuse_loop_config* const config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 1);
    fuse_loop_cfg_set_max_threads(config, kMaxThreads);
    const int status = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    return status == 0 ? 0 : 1;
}
