#include "bind.hpp"

NB_MODULE(_native, m) {
    m.doc() = "Native core of burnish: one submodule per system.";
    for (const auto &part : burnish::parts()) {
        auto sub = m.def_submodule(part.name);
        part.bind(sub);
    }
}
