// One ufunc over strided operands, with conversion of operands whose type is not the loop's.
#pragma once
#include "convert.hpp"
#include "loops.hpp"
#include "strided.hpp"

namespace burnish::array {

struct Elementwise {
    Loop loop;
    Iteration over;                                     // inputs, then outputs
    std::array<CastFunction, kMaxOperands> cast{};      // null: the operand already has the loop's type
    std::array<int64_t, kMaxOperands> loop_size{};      // bytes per element in the loop
    bool casts = false;

    // `base[k]` is the first element of operand k. No Python; any thread.
    void run(char *const *base) const;

   private:
    void run_cast(char **args, int64_t n, const int64_t *strides) const;
};

// Assignment between strided operands, with conversion if the types differ.
struct Copy {
    Iteration over;  // source, destination
    CastFunction cast = nullptr;
    int64_t size = 0;  // bytes per element where nothing is converted

    void run(const char *from, char *to) const;
};

// Sets the conversions for operands stored as `stored` where the loop wants `types`.
void set_types(Elementwise &op, std::span<const int> stored, std::span<const int> types);

}  // namespace burnish::array
