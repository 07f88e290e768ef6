// Which recent positions a trace covers.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace burnish::tracing {

class Coverage {
public:
    enum Flag : uint8_t {
        issued = 1,    // through a template
        complete = 2,  // part of a complete instance or capture; separators
        begins = 4,    // first op of an instance that was issued through its template
    };

    explicit Coverage(uint64_t capacity) : flags_(std::bit_ceil(capacity + 1)) {}

    void reset(uint64_t position) { at(position) = 0; }
    void mark(uint64_t first, uint64_t last, Flag flag) {
        for (uint64_t p = first; p < last; ++p) at(p) |= flag;
    }
    uint64_t count(uint64_t first, uint64_t last, uint8_t any_of) const {
        uint64_t n = 0;
        for (uint64_t p = first; p < last; ++p) n += (flags_[p & (flags_.size() - 1)] & any_of) != 0;
        return n;
    }

private:
    uint8_t &at(uint64_t position) { return flags_[position & (flags_.size() - 1)]; }

    std::vector<uint8_t> flags_;
};

}  // namespace burnish::tracing
