// Functions that CUDA and C++ share.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GOMPFS_FUNCTION __device__ inline
#else
#define GOMPFS_FUNCTION constexpr
#endif
