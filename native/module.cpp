#include "bind.hpp"

namespace nb = nanobind;

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // regions may outlive the interpreter: their memory goes with the process
    m.doc() = "Native core of burnish: one submodule per system.";
    for (const auto &part : burnish::parts()) {
        auto sub = m.def_submodule(part.name);
        part.bind(sub);
    }
}
