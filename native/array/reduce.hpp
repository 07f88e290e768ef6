// Reductions by a tree that depends on the shape only: the same bits for every chunking, stride order and thread count.
//
// The reduced axes, in C order, are one sequence x[0..L). It is cut into leaves of a fixed length B; a leaf is reduced
// by NumPy's own loop; the leaf results are a sequence again: R(x) = L <= B ? loop(x) : R(R(leaf 0), R(leaf 1), ...).
// If kept axes follow the reduced ones, the elements of the sequence are rows and B counts rows.
#pragma once
#include "elementwise.hpp"

namespace burnish::array {

struct Reduction {
    static constexpr int64_t kLeafElements = 2048, kLeafRows = 64;

    Loop loop;                      // binary, one type throughout
    int64_t item = 0;               // bytes of that type
    CastFunction cast = nullptr;    // from the stored type to the loop's, if they differ
    Iteration outer;                // kept axes before the reduced ones: input, output
    Iteration sequence;             // reduced axes: input
    Iteration inner;                // kept axes after them: input, output
    int64_t length = 1, rows = 1;   // elements of the sequence, and of one row

    int64_t leaf() const { return inner.axes ? kLeafRows : kLeafElements; }
    int64_t leaves() const { return (length + leaf() - 1) / leaf(); }

    // Joins axes where that changes neither the order nor the kind of leaf, and derives length and rows.
    void prepare();

    // Reduces everything. length must not be 0.
    void run(const char *in, char *out) const;

    // Leaves [first, last) only, of a reduction without outer axes: results go to `partials`, rows of `rows` packed
    // items. Reducing those over their first axis gives what run() gives.
    void run_leaves(const char *in, char *partials, int64_t first, int64_t last) const;

   private:
    void whole(const char *in, char *out) const;
    void leaf_to(const char *in, int64_t start, int64_t n, char *packed_out) const;
    void leaf_of_elements(const char *in, int64_t start, int64_t n, char *out) const;
    void leaf_of_rows(const char *in, int64_t start, int64_t n, char *packed_out) const;
    const char *at(const char *in, int64_t position) const;
    void pack(const char *in, int64_t start, int64_t n, char *to) const;
    void unpack(const char *packed, char *out) const;
};

}  // namespace burnish::array
