// Payloads that the launch path writes itself, without Python. The other kinds are written by runtime/lineage/records.py,
// which also reads all of them; both must agree byte for byte (tested).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lineage/msgpack.hpp"

namespace burnish::lineage {

// One region argument of a launch: a region, or a partition with a projection.
struct Argument {
    uint64_t target = 0;              // id of the region or partition
    bool projected = false;           // target is a partition
    std::span<const int64_t> offset;  // of each dimension of the color: [] for `each`
    std::string_view function;        // name of the function of `each.map(f)`; offset is unused then
    uint8_t privilege = 0;            // 0 Read, 1 Write, 2 ReadWrite, 3 + operator id for Reduce
    uint64_t mask = 0;                // fields
};

// scalars: msgpack items made by the caller, `scalar_count` of them.
inline void encode_launch(std::vector<std::byte> &out, uint64_t task, std::span<const int64_t> domain,
                          std::span<const Argument> arguments, uint32_t scalar_count,
                          std::span<const std::byte> scalars, std::span<const uint64_t> futures) {
    Packer p(out);
    p.array(5);
    p.unsigned_integer(task);
    p.array(domain.size());
    for (int64_t n : domain) p.integer(n);
    p.array(arguments.size());
    for (const Argument &a : arguments) {
        p.array(4);
        p.unsigned_integer(a.target);
        if (!a.projected) {
            p.nil();
        } else if (!a.function.empty()) {
            p.text(a.function);
        } else {
            p.array(a.offset.size());
            for (int64_t n : a.offset) p.integer(n);
        }
        p.unsigned_integer(a.privilege);
        p.unsigned_integer(a.mask);
    }
    p.array(scalar_count);
    p.packed(scalars);
    p.array(futures.size());
    for (uint64_t f : futures) p.unsigned_integer(f);
}

// bindings: the key of the interned binding vector (LineageLog.put_blob), so that the size does not depend on it.
inline void encode_replay(std::vector<std::byte> &out, uint64_t templ, std::span<const std::byte, 16> bindings,
                          uint32_t scalar_count, std::span<const std::byte> scalars) {
    Packer p(out);
    p.array(3);
    p.unsigned_integer(templ);
    p.binary(bindings);
    p.array(scalar_count);
    p.packed(scalars);
}

inline void encode_commit(std::vector<std::byte> &out, uint64_t domain, uint64_t first_lsn, uint64_t last_lsn) {
    Packer p(out);
    p.array(3);
    p.unsigned_integer(domain), p.unsigned_integer(first_lsn), p.unsigned_integer(last_lsn);
}

}  // namespace burnish::lineage
