#include "bind.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "tracing/recognizer.hpp"
#include "tracing/repeats.hpp"
#include "tracing/simulate.hpp"
#include "tracing/suffix.hpp"

namespace burnish::tracing {

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const Array<T> &a) {
    return {a.data(), a.size()};
}

template <class T>
auto to_numpy(std::vector<T> values) {
    auto *owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner);
}

nb::tuple repeats(Array<uint64_t> tokens, int32_t min_length) {
    std::vector<Repeat> found;
    {
        nb::gil_scoped_release release;
        found = find_repeats(view(tokens), min_length);
    }
    nb::list out;
    for (Repeat &r : found) out.append(nb::make_tuple(r.start, r.end, nb::cast(std::move(r.starts))));
    return nb::tuple(out);
}

nb::tuple suffixes(Array<uint64_t> tokens) {
    std::vector<int32_t> array, lcp;
    {
        nb::gil_scoped_release release;
        std::vector<int32_t> text;
        const int32_t alphabet = rank_tokens(view(tokens), text);
        array = suffix_array(text, alphabet);
        lcp = common_prefixes(text, array);
    }
    return nb::make_tuple(to_numpy(std::move(array)), to_numpy(std::move(lcp)));
}

nb::dict run_simulation(Array<uint64_t> signatures, Array<uint64_t> flats, Array<uint8_t> separators,
                        Array<uint64_t> offsets, Array<uint32_t> roots, const Config &config) {
    Simulation s;
    {
        nb::gil_scoped_release release;
        s = simulate({view(signatures), view(flats), view(separators), view(offsets), view(roots)}, config);
    }
    nb::dict out;
    out["trace"] = to_numpy(std::move(s.trace));
    out["replayed"] = to_numpy(std::move(s.replayed));
    out["replays"] = s.replays;
    out["captures"] = s.captures;
    out["distinct"] = s.distinct;
    out["max_deferral"] = s.max_deferral;
    out["collisions"] = s.collisions;
    out["analysed_tokens"] = s.finder.tokens;
    out["jobs"] = s.finder.jobs;
    out["skipped"] = s.finder.skipped;
    out["finder_seconds"] = s.finder.seconds;
    return out;
}

}  // namespace

BURNISH_BIND(tracing) {
    m.attr("NONE") = kNone;
    nb::enum_<Algorithm>(m, "Algorithm")
        .value("burnish", Algorithm::burnish)
        .value("apophenia", Algorithm::apophenia)
        .value("off", Algorithm::off);
    nb::enum_<Mode>(m, "Mode").value("eager", Mode::eager).value("deferred", Mode::deferred);
    nb::class_<Config>(m, "Config")
        .def(nb::init<>())
        .def_rw("algorithm", &Config::algorithm)
        .def_rw("mode", &Config::mode)
        .def_rw("history", &Config::history)
        .def_rw("ruler", &Config::ruler)
        .def_rw("min_length", &Config::min_length)
        .def_rw("max_length", &Config::max_length)
        .def_rw("deterministic", &Config::deterministic)
        .def_rw("budget", &Config::budget)
        .def_rw("parametric", &Config::parametric)
        .def_rw("visits", &Config::visits)
        .def_rw("token_bits", &Config::token_bits);
    m.def("repeats", &repeats, nb::arg("tokens"), nb::arg("min_length"));
    m.def("suffixes", &suffixes, nb::arg("tokens"));
    m.def("simulate", &run_simulation, nb::arg("signatures"), nb::arg("flats"), nb::arg("separators"),
          nb::arg("offsets"), nb::arg("roots"), nb::arg("config"));
}

}  // namespace burnish::tracing
