/* An LD_PRELOAD library in which opening and reading a file takes 20 ms if its path contains SLOW_PATH, as on a file
 * server. At its end, the process writes to stderr how many such calls waited at the same time at most. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name)*)dlsym(RTLD_NEXT, #name))

static atomic_int num_waiting, most_waiting;

__attribute__((destructor)) static void tell_most(void) { fprintf(stderr, "%d\n", most_waiting); }

static void wait_slowly(void) {
    int num = ++num_waiting;
    for (int most = most_waiting; num > most && !atomic_compare_exchange_weak(&most_waiting, &most, num);) {
    }
    usleep(20000);
    --num_waiting;
}

static void wait_for(int file) {
    const char* slow = getenv("SLOW_PATH");
    char link[64], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, PATH_MAX);
    path[size < 0 ? 0 : size] = 0;
    if (slow && strstr(path, slow)) wait_slowly();
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
