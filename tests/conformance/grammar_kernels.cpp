// The kernels that build grammars, on the host, as a library that launches them by name.
#include "host/cuda_on_host.h"
// The kernels come before all that could declare what they miss.
#include <cstdint>
#include <cstring>
#include <utility>

#include "cuda/repair.cu"

namespace {

template <typename Value>
Value as(std::uint64_t argument) {
    if constexpr (std::is_pointer_v<Value>) {
        return reinterpret_cast<Value>(argument);
    } else {
        return static_cast<Value>(argument);
    }
}

template <typename... Arguments, std::size_t... kPlaces>
void launch_with(void (*kernel)(Arguments...), const std::uint64_t* arguments, unsigned num_blocks,
                 unsigned num_threads, std::size_t shared_bytes, std::index_sequence<kPlaces...>) {
    cuda_on_host::launch(num_blocks, num_threads, shared_bytes,
                         [&] { kernel(as<Arguments>(arguments[kPlaces])...); });
}

template <typename... Arguments>
bool launch_if(bool is_it, void (*kernel)(Arguments...), const std::uint64_t* arguments,
               unsigned num_arguments, unsigned num_blocks, unsigned num_threads,
               std::size_t shared_bytes) {
    if (!is_it || num_arguments != sizeof...(Arguments)) {
        return false;
    }
    launch_with(kernel, arguments, num_blocks, num_threads, shared_bytes,
                std::index_sequence_for<Arguments...>());
    return true;
}

}  // namespace

// False where there is no kernel of that name and number of arguments.
extern "C" bool launch_kernel(const char* name, unsigned num_blocks, unsigned num_threads,
                              std::size_t shared_bytes, const std::uint64_t* arguments,
                              unsigned num_arguments) {
    const auto launch = [&](const char* kernel_name, auto kernel) {
        return launch_if(std::strcmp(name, kernel_name) == 0, kernel, arguments, num_arguments,
                         num_blocks, num_threads, shared_bytes);
    };
    return launch("number_words", number_words) || launch("count_digrams", count_digrams) ||
           launch("find_frequencies", find_frequencies) ||
           launch("choose_occurrences", choose_occurrences) ||
           launch("count_results", count_results) || launch("make_rules", make_rules) ||
           launch("replace_digrams", replace_digrams) || launch("count_uses", count_uses) ||
           launch("measure_rules", measure_rules) || launch("dissolve_rules", dissolve_rules) ||
           launch("measure_symbols", measure_symbols) || launch("number_rules", number_rules) ||
           launch("write_rules", write_rules);
}
