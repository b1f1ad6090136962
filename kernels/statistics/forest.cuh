// The encoding of a forest of rules in device memory.
//
// A forest is defined in native/statistics/forest.h. Its nodes are the files, then the rules.
// `starts` (CSR, by node) gives each node's range of elements; an element is a word or, with the
// bit kNode, a node. Elements that expand to no words are left out.
#pragma once

#include "shared/grid.cuh"

namespace gompfs {

constexpr u32 kNode = 0x80000000u;

}  // namespace gompfs
