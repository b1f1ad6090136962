// Encoded blocks as Python takes them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/types.h"
#include "codec/block_batch.h"
#include "common/bytes.h"

namespace gompfs {

// (block, codec, uncompressed size)
using EncodedBlock = py::Tuple<nanobind::bytes, std::uint32_t, std::uint32_t>;

// Describes a block with a valid header.
inline EncodedBlock with_facts(nanobind::bytes block) {
    const BlockFacts facts =
        read_facts(Bytes(static_cast<const std::uint8_t*>(block.data()), block.size()));
    return nanobind::make_tuple(block, facts.codec, facts.uncompressed_size);
}

}  // namespace gompfs
