// The few functions of the CUDA driver that start work on a device. The library is opened when it
// is first used, so that nothing of CUDA is needed to build or run without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace gompfs {

// A call of the driver failed; what() names the call and the error's number.
class DriverError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// CUDA's opaque handles, as numbers.
using CudaHandle = std::uintptr_t;

// Device addresses are numbers as well. Each function throws DriverError if the driver refuses.
class CudaDriver {
  public:
    // Opens a shared library that has the driver's functions. Throws DriverError if there is none.
    explicit CudaDriver(const std::string& library);

    void push_context(CudaHandle context) const;
    void pop_context() const;
    void copy_to_device(std::uint64_t to, const void* from, std::size_t size,
                        CudaHandle stream) const;
    void copy_to_host(void* to, std::uint64_t from, std::size_t size, CudaHandle stream) const;
    // `arguments` has the address of each argument.
    void launch(CudaHandle function, unsigned num_ctas, unsigned num_threads, unsigned shared_bytes,
                CudaHandle stream, void** arguments) const;
    void synchronize(CudaHandle stream) const;
    // Whether the device can write to this host memory while the host goes on.
    bool is_pinned(const void* address) const;

  private:
    template <typename Function>
    void find(Function& function, const char* name);
    static void check(int error, const char* call);

    void* library_;
    int (*push_context_)(void*);
    int (*pop_context_)(void**);
    int (*copy_to_device_)(std::uint64_t, const void*, std::size_t, void*);
    int (*copy_to_host_)(void*, std::uint64_t, std::size_t, void*);
    int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
    int (*synchronize_)(void*);
    int (*get_attribute_)(void*, int, std::uint64_t);
};

// Makes a context current in this thread for as long as the object lives.
class CurrentContext {
  public:
    CurrentContext(const CudaDriver& driver, CudaHandle context) : driver_(driver) {
        driver.push_context(context);
    }
    ~CurrentContext();
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;

  private:
    const CudaDriver& driver_;
};

}  // namespace gompfs
