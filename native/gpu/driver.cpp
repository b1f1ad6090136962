// Calls the CUDA driver; see driver.h.
#include "gpu/driver.h"

#include <dlfcn.h>

namespace gompfs {
namespace {

constexpr int kMemoryTypeAttribute = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned kMemoryTypeHost = 1;  // CU_MEMORYTYPE_HOST

void* as_pointer(CudaHandle handle) { return reinterpret_cast<void*>(handle); }

}  // namespace

// The library stays open: CUDA does not expect to be unloaded.
CudaDriver::CudaDriver(const std::string& library)
    : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
        throw DriverError(dlerror());
    }
    find(push_context_, "cuCtxPushCurrent_v2");
    find(pop_context_, "cuCtxPopCurrent_v2");
    find(copy_to_device_, "cuMemcpyHtoDAsync_v2");
    find(copy_to_host_, "cuMemcpyDtoHAsync_v2");
    find(launch_, "cuLaunchKernel");
    find(synchronize_, "cuStreamSynchronize");
    find(get_attribute_, "cuPointerGetAttribute");
}

template <typename Function>
void CudaDriver::find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) {
        throw DriverError(std::string("the CUDA driver has no ") + name);
    }
}

void CudaDriver::check(int error, const char* call) {
    if (error != 0) {
        throw DriverError(std::string(call) + ": CUDA error " + std::to_string(error));
    }
}

void CudaDriver::push_context(CudaHandle context) const {
    check(push_context_(as_pointer(context)), "cuCtxPushCurrent");
}

void CudaDriver::pop_context() const {
    void* popped;
    check(pop_context_(&popped), "cuCtxPopCurrent");
}

void CudaDriver::copy_to_device(std::uint64_t to, const void* from, std::size_t size,
                                CudaHandle stream) const {
    check(copy_to_device_(to, from, size, as_pointer(stream)), "cuMemcpyHtoDAsync");
}

void CudaDriver::copy_to_host(void* to, std::uint64_t from, std::size_t size,
                              CudaHandle stream) const {
    check(copy_to_host_(to, from, size, as_pointer(stream)), "cuMemcpyDtoHAsync");
}

void CudaDriver::launch(CudaHandle function, unsigned num_ctas, unsigned num_threads,
                        unsigned shared_bytes, CudaHandle stream, void** arguments) const {
    check(launch_(as_pointer(function), num_ctas, 1, 1, num_threads, 1, 1, shared_bytes,
                  as_pointer(stream), arguments, nullptr),
          "cuLaunchKernel");
}

void CudaDriver::synchronize(CudaHandle stream) const {
    check(synchronize_(as_pointer(stream)), "cuStreamSynchronize");
}

bool CudaDriver::is_pinned(const void* address) const {
    unsigned type = 0;
    // The driver does not know memory that is not pinned: that is an error for it, but not for us.
    return get_attribute_(&type, kMemoryTypeAttribute, reinterpret_cast<std::uint64_t>(address)) ==
               0 &&
           type == kMemoryTypeHost;
}

CurrentContext::~CurrentContext() {
    try {
        driver_.pop_context();
    } catch (const DriverError&) {
        // The context was lost in a failure that its user has reported.
    }
}

}  // namespace gompfs
