// Registration of native parts: each folder's bind.cpp says
//   BURNISH_BIND(tracing) { m.def("find_repeats", ...); }
// and its functions appear in burnish._native.tracing.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

namespace burnish {

namespace nb = nanobind;

struct Part {
    const char *name;
    void (*bind)(nb::module_ &);
};

inline std::vector<Part> &parts() {
    static std::vector<Part> all;
    return all;
}

struct PartRegistration {
    PartRegistration(const char *name, void (*bind)(nb::module_ &)) { parts().push_back({name, bind}); }
};

}  // namespace burnish

#define BURNISH_BIND(NAME)                                                                   \
    static void burnish_bind_##NAME(nanobind::module_ &);                                    \
    static const burnish::PartRegistration burnish_part_##NAME(#NAME, burnish_bind_##NAME);  \
    static void burnish_bind_##NAME([[maybe_unused]] nanobind::module_ &m)
