// Memory of regions and reduction buffers: blocks of one arena, which worker processes can map.
#pragma once
#include <cstddef>

#include "executors/arena.hpp"

namespace burnish::runtime {

// Set once by the front end, before the first region.
inline executors::Arena *region_arena = nullptr;

inline std::byte *take_memory(size_t bytes) { return region_arena->at(region_arena->alloc(bytes)); }
inline void give_memory(const std::byte *data) { region_arena->free(region_arena->offset_of(data)); }

}  // namespace burnish::runtime
