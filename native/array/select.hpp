// Our own elementwise loops: copies with conversion, where, and assignment through masks.
#pragma once
#include <span>
#include <string>

#include "loops.hpp"

namespace burnish::array {

// `stored`: types of the inputs, -1 for scalars that adapt. Fills `types` (inputs, output) of the loop: "copy" converts
// to the output's type, "where" promotes its two values, "masked_copy" writes value where mask.
Loop own_loop(const std::string &name, std::span<const int> stored, int out_type, int *types);

}  // namespace burnish::array
