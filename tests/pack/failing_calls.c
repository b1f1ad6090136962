/* An LD_PRELOAD library in which the n-th call of one kind fails, on files whose path contains FAIL_PATH, as on a bad or
 * full disk.
 *
 * FAIL_CALL is write, fsync, fsync-folder, ftruncate, rename, link or read. FAIL_AT counts from 1. FAIL_ERRNO is a
 * number. For each failing call, a byte is appended to the file FAIL_LOG.
 *
 * With FAIL_CALL=sector, every read of bytes from FAIL_BEGIN to FAIL_END - 1 fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int num_calls;

static int fails_for(const char* call, const char* path) {
    const char* wanted = getenv("FAIL_CALL");
    const char* part = getenv("FAIL_PATH");
    if (!wanted || strcmp(wanted, call) != 0 || (part && !strstr(path, part))) return 0;
    if (atomic_fetch_add(&num_calls, 1) + 1 != atoi(getenv("FAIL_AT"))) return 0;
    const char* log = getenv("FAIL_LOG");
    if (log) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)!syscall(SYS_write, file, "x", 1);
        syscall(SYS_close, file);
    }
    errno = atoi(getenv("FAIL_ERRNO"));
    return 1;
}

static const char* path_of(int file, char path[PATH_MAX + 1]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, PATH_MAX);
    path[size < 0 ? 0 : size] = 0;
    return path;
}

static int fails(const char* call, int file) {
    char path[PATH_MAX + 1];
    return fails_for(call, path_of(file, path));
}

static int is_bad_sector(int file, size_t size, off_t offset) {
    char path[PATH_MAX + 1];
    const char* wanted = getenv("FAIL_CALL");
    if (!wanted || strcmp(wanted, "sector") != 0 || !strstr(path_of(file, path), getenv("FAIL_PATH"))) return 0;
    if (offset >= atoll(getenv("FAIL_END")) || offset + (off_t)size <= atoll(getenv("FAIL_BEGIN"))) return 0;
    errno = atoi(getenv("FAIL_ERRNO"));
    return 1;
}

#define REAL(name) ((__typeof__(name)*)dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void* data, size_t size) { return fails("write", file) ? -1 : REAL(write)(file, data, size); }

ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
    return fails("write", file) ? -1 : REAL(pwrite)(file, data, size, offset);
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t offset) {
    return fails("write", file) ? -1 : REAL(pwrite64)(file, data, size, offset);
}

ssize_t pread(int file, void* data, size_t size, off_t offset) {
    if (fails("read", file) || is_bad_sector(file, size, offset)) return -1;
    return REAL(pread)(file, data, size, offset);
}

ssize_t preadv(int file, const struct iovec* pieces, int count, off_t offset) {
    size_t size = 0;
    for (int piece = 0; piece < count; ++piece) size += pieces[piece].iov_len;
    return is_bad_sector(file, size, offset) ? -1 : REAL(preadv)(file, pieces, count, offset);
}

ssize_t pread64(int file, void* data, size_t size, off64_t offset) {
    if (fails("read", file) || is_bad_sector(file, size, offset)) return -1;
    return REAL(pread64)(file, data, size, offset);
}

ssize_t preadv64(int file, const struct iovec* pieces, int count, off64_t offset) {
    size_t size = 0;
    for (int piece = 0; piece < count; ++piece) size += pieces[piece].iov_len;
    return is_bad_sector(file, size, offset) ? -1 : REAL(preadv64)(file, pieces, count, offset);
}

int fsync(int file) {
    struct stat status;
    int is_folder = fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
    return fails(is_folder ? "fsync-folder" : "fsync", file) ? -1 : REAL(fsync)(file);
}

int ftruncate(int file, off_t size) { return fails("ftruncate", file) ? -1 : REAL(ftruncate)(file, size); }

int ftruncate64(int file, off64_t size) { return fails("ftruncate", file) ? -1 : REAL(ftruncate64)(file, size); }

int rename(const char* from, const char* to) { return fails_for("rename", to) ? -1 : REAL(rename)(from, to); }

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
    return fails_for("rename", to) ? -1 : REAL(renameat)(from_folder, from, to_folder, to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
    return fails_for("link", to) ? -1 : REAL(linkat)(from_folder, from, to_folder, to, flags);
}
