// Memory of arrays. A root whose last array object is gone waits for its users and is used again with all its
// subregions, under a new name for the tracer.
#pragma once
#include "geometry.hpp"
#include "runtime/context.hpp"

namespace burnish::array {

using runtime::Context;
using runtime::RegionNode;
using runtime::Root;

struct ArrayRoot final : runtime::RootPool {
    Root *root = nullptr;
    RootClass *of = nullptr;
    uint32_t site = 0;                 // where the program made it: decides how it will be cut
    uint64_t epoch = 0, position = 0;  // context, and its op position, of its death
    std::vector<RegionNode *> nodes;   // by rectangle of the class

    RegionNode *node(int rect) {
        if (static_cast<size_t>(rect) < nodes.size() && nodes[rect]) return nodes[rect];
        return make_node(rect);
    }
    void give(Root *root) override;

   private:
    RegionNode *make_node(int rect);
};

// A root with undefined contents and one reference; null with an exception set.
ArrayRoot *take_root(Context &c, RootClass *of, uint32_t site);

struct PoolStats {
    int64_t live_bytes, pooled_bytes;
    uint64_t made, reused;
};
PoolStats pool_stats();
void empty_pool();  // frees what no array names and no task uses

}  // namespace burnish::array
