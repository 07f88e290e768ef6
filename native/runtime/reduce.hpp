// Folding of reduction buffers and their identity values.
#pragma once
#include <cstdint>

namespace burnish::runtime {

// dst[i] = dst[i] op src[i] for n scalars of a NumPy type; op is one of + * < (min) > (max) & |.
void fold(char op, int type_num, void *dst, const void *src, int64_t n);
void fill_identity(char op, int type_num, void *dst, int64_t n);

}  // namespace burnish::runtime
