// The grammar's kernels as a library of the host: launched by name, with pointers to the arguments.
#include "host/cuda_on_host.h"
// The kernels come before all that could declare what they miss.
#include <cstring>
#include <utility>

#include "cuda/grammar/levels.cu"
#include "cuda/grammar/ngrams.cu"

namespace {

template <typename... Arguments, std::size_t... Places>
void call(void (*kernel)(Arguments...), void** arguments, std::index_sequence<Places...>) {
    kernel(*static_cast<Arguments*>(arguments[Places])...);
}

template <auto kKernel, typename... Arguments>
void run_as(void (*)(Arguments...), unsigned num_ctas, unsigned num_threads, void** arguments) {
    cuda_on_host::launch(num_ctas, num_threads, 0, [arguments] {
        call(kKernel, arguments, std::index_sequence_for<Arguments...>());
    });
}

template <auto kKernel>
void run(unsigned num_ctas, unsigned num_threads, void** arguments) {
    run_as<kKernel>(kKernel, num_ctas, num_threads, arguments);
}

struct Entry {
    const char* name;
    void (*run)(unsigned, unsigned, void**);
};

#define KERNEL(name) {#name, &run<&name>}
constexpr Entry kKernels[] = {
    KERNEL(name_nodes),    KERNEL(add_along_edges),     KERNEL(add_along_levels), KERNEL(copy_lists),
    KERNEL(find_ends),     KERNEL(find_ends_of_levels), KERNEL(count_ngrams),
    KERNEL(write_ngrams),
};

}  // namespace

// Whether there is a kernel of that name; if so, it has run.
extern "C" bool launch_kernel(const char* name, unsigned num_ctas, unsigned num_threads,
                              void** arguments) {
    for (const Entry& entry : kKernels) {
        if (std::strcmp(entry.name, name) == 0) {
            entry.run(num_ctas, num_threads, arguments);
            return true;
        }
    }
    return false;
}
