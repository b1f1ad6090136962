// What the processor can do.
#pragma once

namespace gompfs {

inline bool has_avx2() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

}  // namespace gompfs
