// Ops: launches as analysis, tracing and replay see them.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "launch.hpp"
#include "tracing/token.hpp"

namespace burnish::runtime {

// What launches of one shape share: requirements by region argument, and the token without root identities.
struct OpPlan {
    std::vector<Requirement> requirements;
    uint16_t n_args = 0;
    uint16_t n_buffers = 0;  // requirements that reduce
};

struct IndexPlan : OpPlan {
    std::vector<uint64_t> key;
    int64_t points = 0, domain_volume = 0;
    std::vector<int64_t> domain_shape;
    std::vector<RegionNode *> nodes;  // points x n_args
    std::vector<int32_t> colors;      // row-major color of each point (edges may skip some)
    std::vector<Root *> roots;
    std::vector<uint32_t> operands;   // root ids by region argument
    tracing::Token signature, flat;
    uint8_t kernels_ready = 0;        // bit 0: bodies compiled for all points, bit 1: the same in check mode
};

struct Op {
    Launch *launch;
    const OpPlan *plan;
    std::shared_ptr<const IndexPlan> index;  // null for a single launch
    RegionNode *const *nodes;                // points x n_args
    int64_t points;
    bool predicated;
    tracing::Token signature, flat;
    std::span<const uint32_t> operands;
};

uint64_t shape_signature(RegionNode *node);  // root class and geometry; equal for isomorphic nodes

}  // namespace burnish::runtime
