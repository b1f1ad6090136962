// The kernels that parse, encode and decode blocks, those for statistics and reading of files, and
// those of the experiments, as a library for the host.
// Kernels are launched by name, with pointers to their arguments.
#include "host/cuda_on_host.h"
// Include the kernels first, so that no other header can hide a missing include of theirs.
#include <cstring>
#include <utility>

#include "bit_strategies.cu"
#include "byte_strategies.cu"
#include "codec/decode_bit.cu"
#include "codec/decode_bit_dictionary.cu"
#include "codec/decode_byte.cu"
#include "codec/decode_tadoc.cu"
#include "codec/open_heads.cu"
#include "encode/check.cu"
#include "encode/encode_bit.cu"
#include "encode/encode_byte.cu"
#include "encode/estimate_way_costs.cu"
#include "encode/find_candidates.cu"
#include "encode/find_matches.cu"
#include "encode/find_ways.cu"
#include "encode/follow_ways.cu"
#include "encode/link_positions.cu"
#include "encode/sum_literal_costs.cu"
#include "encode/walk_segments.cu"
#include "mask_rounds.cu"
#include "match_rounds.cu"
#include "reading/check_contents.cu"
#include "reading/gather_pieces.cu"
#include "search/find_literals.cu"
#include "search/measure_blocks.cu"
#include "search/run_automaton.cu"
#include "statistics/levels.cu"
#include "statistics/ngrams.cu"
#include "statistics/pairs.cu"
#include "statistics/phrases.cu"
#include "statistics/tables.cu"
#include "triples_decode.cu"
#include "triples_encode.cu"
#include "triples_tiles.cu"

namespace {

template <typename... Arguments, std::size_t... Places>
void call(void (*kernel)(Arguments...), void** arguments, std::index_sequence<Places...>) {
    kernel(*static_cast<Arguments*>(arguments[Places])...);
}

struct Launch {
    unsigned num_ctas, num_threads;
    std::size_t shared_bytes;
    void** arguments;
    unsigned num_arguments;
};

template <auto kKernel, typename... Arguments>
bool run_as(void (*)(Arguments...), const Launch& launch) {
    if (launch.num_arguments != sizeof...(Arguments)) {
        return false;
    }
    cuda_on_host::launch(launch.num_ctas, launch.num_threads, launch.shared_bytes, [&] {
        call(kKernel, launch.arguments, std::index_sequence_for<Arguments...>());
    });
    return true;
}

template <auto kKernel>
bool run(const Launch& launch) {
    return run_as<kKernel>(kKernel, launch);
}

struct Entry {
    const char* name;
    bool (*run)(const Launch&);
};

#define KERNEL(name) {#name, &run<&name>}
// clang-format off
constexpr Entry kKernels[] = {
    KERNEL(sum_literal_costs),
    KERNEL(link_narrow),
    KERNEL(link_wide),
    KERNEL(find_matches_narrow),
    KERNEL(find_matches_wide),
    KERNEL(find_candidates_narrow),
    KERNEL(find_candidates_wide),
    KERNEL(estimate_way_costs),
    KERNEL(find_ways),
    KERNEL(follow_ways),
    KERNEL(walk_segments_narrow),
    KERNEL(walk_segments_wide),
    KERNEL(decode_bit),
    KERNEL(decode_byte),
    KERNEL(decode_bit_dictionary),
    KERNEL(decode_tadoc),
    KERNEL(open_heads),
    KERNEL(decode_bit_sc),
    KERNEL(decode_bit_mrr),
    KERNEL(decode_bit_de),
    KERNEL(decode_bit_sc_bytes),
    KERNEL(decode_bit_mrr_bytes),
    KERNEL(decode_bit_de_bytes),
    KERNEL(decode_bit_list),
    KERNEL(decode_bit_jump),
    KERNEL(decode_byte_sc),
    KERNEL(decode_byte_mrr),
    KERNEL(decode_byte_de),
    KERNEL(decode_byte_sc_bytes),
    KERNEL(decode_byte_mrr_bytes),
    KERNEL(decode_byte_de_bytes),
    KERNEL(decode_byte_list),
    KERNEL(decode_byte_jump),
    KERNEL(resolve_round),
    KERNEL(encode_bit),
    KERNEL(encode_byte),
    KERNEL(check_blocks),
    KERNEL(gather_payloads),
    KERNEL(name_nodes),
    KERNEL(add_along_edges),
    KERNEL(add_along_levels),
    KERNEL(find_ends),
    KERNEL(find_ends_of_levels),
    KERNEL(count_ngrams),
    KERNEL(write_ngrams),
    KERNEL(measure_blocks),
    KERNEL(find_literals),
    KERNEL(run_automaton),
    KERNEL(pass_values),
    KERNEL(pass_tables),
    KERNEL(collect_tables),
    KERNEL(add_items),
    KERNEL(add_tables),
    KERNEL(add_tables_of_levels),
    KERNEL(sum_tables),
    KERNEL(count_phrase),
    KERNEL(copy_tables),
    KERNEL(write_pairs),
    KERNEL(find_new_pairs),
    KERNEL(add_equal_pairs),
    KERNEL(find_matches),
    KERNEL(count_predecessors),
    KERNEL(link_chains),
    KERNEL(find_heads),
    KERNEL(remove_dangling),
    KERNEL(map_tiles),
    KERNEL(compose_maps),
    KERNEL(mark_tiles),
    KERNEL(write_triples),
    KERNEL(measure_triples),
    KERNEL(write_parents),
    KERNEL(find_roots),
    KERNEL(resolve_tiles),
    KERNEL(compose_windows),
    KERNEL(write_tiles),
    KERNEL(gather_pieces),
    KERNEL(check_contents),
};
// clang-format on

}  // namespace

// Runs the kernel of that name. Returns false if there is none with that number of arguments.
extern "C" bool launch_kernel(const char* name, unsigned num_ctas, unsigned num_threads,
                              std::size_t shared_bytes, void** arguments, unsigned num_arguments) {
    for (const Entry& entry : kKernels) {
        if (std::strcmp(entry.name, name) == 0) {
            return entry.run({num_ctas, num_threads, shared_bytes, arguments, num_arguments});
        }
    }
    return false;
}
