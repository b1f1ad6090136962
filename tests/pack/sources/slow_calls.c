/* An LD_PRELOAD library in which opening and reading a file takes 5 ms if its path contains SLOW_PATH, as on a file
 * server. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name)*)dlsym(RTLD_NEXT, #name))

static void wait_for(int file) {
    const char* slow = getenv("SLOW_PATH");
    char link[64], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, PATH_MAX);
    path[size < 0 ? 0 : size] = 0;
    if (slow && strstr(path, slow)) usleep(5000);
}

static int wait_and_return(int file) {
    wait_for(file);
    return file;
}

/* Calls that only read, which pass no mode. Those with _2 are in programs that were compiled with _FORTIFY_SOURCE. */
int openat(int folder, const char* path, int flags, ...) { return wait_and_return(REAL(openat)(folder, path, flags)); }

int openat64(int folder, const char* path, int flags, ...) {
    return wait_and_return(REAL(openat64)(folder, path, flags));
}

int __openat_2(int folder, const char* path, int flags) { return openat(folder, path, flags); }

int __openat64_2(int folder, const char* path, int flags) { return openat64(folder, path, flags); }

ssize_t pread(int file, void* data, size_t size, off_t offset) {
    wait_for(file);
    return REAL(pread)(file, data, size, offset);
}

ssize_t pread64(int file, void* data, size_t size, off64_t offset) {
    wait_for(file);
    return REAL(pread64)(file, data, size, offset);
}
