// What GCC's C++ library takes from glibc and glibc 2.28 lacks. tools/release links it into the
// module.
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

// 2.32: whether the process has one thread only. If so, reference counts need no atomic
// instructions.
char __libc_single_threaded = 0;

// 2.36
uint32_t arc4random(void) {
    uint32_t bits = 0;
    while (getentropy(&bits, sizeof bits) != 0) {
    }
    return bits;
}

// 2.30: waits until a time of any clock. Here, a change of the system's time makes the wait shorter
// or longer; the C++ library looks at the clock again after it.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
    const int64_t second = 1000000000;
    struct timespec now, end;
    clock_gettime(clock, &now);
    clock_gettime(CLOCK_REALTIME, &end);
    int64_t left = (until->tv_sec - now.tv_sec) * second + until->tv_nsec - now.tv_nsec;
    left = (left > 0 ? left : 0) + end.tv_nsec;
    end.tv_sec += left / second;
    end.tv_nsec = left % second;
    return pthread_cond_timedwait(condition, mutex, &end);
}
