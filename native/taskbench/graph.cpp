#include "graph.hpp"

#include <algorithm>
#include <bit>

#include "random.hpp"

namespace burnish::taskbench {

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t mod(int64_t a, int64_t b) { return a - b * floor_div(a, b); }
int64_t ceil_log2(int64_t n) { return n <= 1 ? 0 : std::bit_width(static_cast<uint64_t>(n - 1)); }

void clip(Intervals &list, int64_t first, int64_t last) {
    for (auto &i : list) i = {std::max(i.first, first), std::min(i.last, last)};
    std::erase_if(list, [](const Interval &i) { return i.size() <= 0; });
}

// Ascending, with overlapping and adjacent intervals joined.
Intervals normalized(Intervals list) {
    std::sort(list.begin(), list.end(), [](const Interval &a, const Interval &b) { return a.first < b.first; });
    Intervals out;
    for (const auto &i : list) {
        if (!out.empty() && i.first <= out.back().last + 1) {
            out.back().last = std::max(out.back().last, i.last);
        } else {
            out.push_back(i);
        }
    }
    return out;
}

bool drawn(const Graph &g, int64_t set, int64_t dependence, int64_t dependent) {
    const int64_t key[5] = {g.index, g.radix, set, dependence, dependent};
    return dependence == dependent || uniform(key, 5) < g.fraction;
}

Intervals wrapped(const Graph &g, int64_t p) {
    return {{p - 1, p + 1}, {mod(p - 1, g.width), mod(p - 1, g.width)}, {mod(p + 1, g.width), mod(p + 1, g.width)}};
}

// The j-th candidate of a spread pattern: sign +1 from dependent to dependence, -1 back.
int64_t spread_point(const Graph &g, int64_t set, int64_t p, int64_t j, int sign) {
    return mod(p + sign * (j * g.width / g.radix + (j > 0 ? set : 0)), g.width);
}

Intervals star(const Graph &g, int64_t p) {
    Intervals out{{p, p}};
    int64_t stride = 1;
    for (int side = 2; side >= 0; --side) {
        const int64_t n = g.shape[side], at = p / stride % n;
        if (at > 0) out.push_back({p - stride, p - stride});
        if (at + 1 < n) out.push_back({p + stride, p + stride});
        stride *= n;
    }
    return out;
}

// Multigrid: level l has ceil(width / 2^l) points; a cycle walks 0 .. levels-1 and back, one step a level.
int64_t cycle_level(const Graph &g, int64_t set) {
    const int64_t levels = g.sets() / 2;
    return set < levels ? set : 2 * levels - 1 - set;
}

int64_t level_points(const Graph &g, int64_t level) { return ((g.width - 1) >> level) + 1; }

// -1 restriction (a coarser level than the step before), 0 the same level, +1 prolongation.
int cycle_direction(const Graph &g, int64_t set) {
    const int64_t levels = g.sets() / 2;
    return set == 0 || set == levels ? 0 : set < levels ? -1 : 1;
}

int64_t sweep_length(const Graph &g) { return g.shape[0] + g.shape[1] - 1; }

// Diagonal of the grid that a step of sweep_2d works on: forward 0, 1, .. then backward from the same corner.
int64_t sweep_diagonal(const Graph &g, int64_t t) {
    const int64_t length = sweep_length(g), at = t % length;
    return (t / length) % 2 == 0 ? at : length - 1 - at;
}

}  // namespace

int64_t Graph::offset(int64_t t) const {
    if (t < 0 || t >= steps) return 0;
    if (type == Type::dom) return std::max<int64_t>(0, t + width - steps);
    if (type == Type::sweep_2d) return std::max<int64_t>(0, sweep_diagonal(*this, t) - std::max(shape[0], shape[1]) + 1);
    return 0;
}

int64_t Graph::width_at(int64_t t) const {
    if (t < 0 || t >= steps) return 0;
    switch (type) {
        case Type::dom: return std::min({width, t + 1, steps - t});
        case Type::tree: return std::min(width, int64_t{1} << std::min<int64_t>(t, 62));
        case Type::sweep_2d: return std::min(sweep_diagonal(*this, t), width - 1) - offset(t) + 1;
        case Type::vcycle: return level_points(*this, cycle_level(*this, set_at(t)));
        default: return width;
    }
}

int64_t Graph::sets() const {
    switch (type) {
        case Type::fft: return std::max<int64_t>(1, ceil_log2(width));
        case Type::spread:
        case Type::random_nearest:
        case Type::random_spread: return period;
        case Type::sweep_2d: return 2;
        case Type::vcycle: return 2 * (ceil_log2(width) + 1);
        default: return 1;
    }
}

int64_t Graph::set_at(int64_t t) const {
    switch (type) {
        case Type::fft: return (t + sets() - 1) % sets();
        case Type::sweep_2d: return (t / sweep_length(*this)) % 2;
        default: return t % sets();
    }
}

Intervals Graph::pattern(int64_t set, int64_t p) const {
    Intervals out;
    switch (type) {
        case Type::trivial: break;
        case Type::no_comm: out = {{p, p}}; break;
        case Type::stencil_1d: out = {{p - 1, p + 1}}; break;
        case Type::stencil_1d_periodic: out = wrapped(*this, p); break;
        case Type::dom: out = {{p - 1, p}}; break;
        case Type::tree: out = {{p / 2, p / 2}}; break;
        case Type::fft: {
            const int64_t d = int64_t{1} << set;
            out = {{p - d, p - d}, {p, p}, {p + d, p + d}};
            break;
        }
        case Type::all_to_all: out = {{0, width - 1}}; break;
        case Type::nearest:
            if (radix > 0) out = {{p - radix / 2, p + (radix - 1) / 2}};
            break;
        case Type::random_nearest:
            for (int64_t i = std::max<int64_t>(0, p - radix / 2); radix > 0 && i <= std::min(p + (radix - 1) / 2, width - 1); ++i)
                if (drawn(*this, set, i, p)) out.push_back({i, i});
            break;
        case Type::spread:
        case Type::random_spread:
            for (int64_t j = 0; j < radix; ++j) {
                const int64_t i = spread_point(*this, set, p, j, +1);
                if (type == Type::spread || drawn(*this, set, i, p)) out.push_back({i, i});
            }
            break;
        case Type::stencil_2d:
        case Type::stencil_3d: out = star(*this, p); break;
        case Type::sweep_2d: out = set == 0 ? Intervals{{p - 1, p}} : Intervals{{p, p + 1}}; break;
        case Type::vcycle:
            switch (cycle_direction(*this, set)) {
                case -1: out = {{2 * p - 1, 2 * p + 2}}; break;
                case 0: out = {{p - 1, p + 1}}; break;
                default: out = {{p / 2 - 1, p / 2 + 1}};
            }
    }
    clip(out, 0, width - 1);
    return normalized(std::move(out));
}

Intervals Graph::reverse_pattern(int64_t set, int64_t p) const {
    Intervals out;
    switch (type) {
        case Type::dom: out = {{p, p + 1}}; break;
        case Type::tree: out = {{2 * p, 2 * p + 1}}; break;
        case Type::nearest:
            if (radix > 0) out = {{p - (radix - 1) / 2, p + radix / 2}};
            break;
        case Type::random_nearest:
            for (int64_t i = std::max<int64_t>(0, p - (radix - 1) / 2); radix > 0 && i <= std::min(p + radix / 2, width - 1); ++i)
                if (drawn(*this, set, p, i)) out.push_back({i, i});
            break;
        case Type::spread:
        case Type::random_spread:
            for (int64_t j = 0; j < radix; ++j) {
                const int64_t i = spread_point(*this, set, p, j, -1);
                if (type == Type::spread || drawn(*this, set, p, i)) out.push_back({i, i});
            }
            break;
        case Type::sweep_2d: out = set == 0 ? Intervals{{p, p + 1}} : Intervals{{p - 1, p}}; break;
        case Type::vcycle:
            switch (cycle_direction(*this, set)) {
                case -1: out = {{floor_div(p - 1, 2), floor_div(p + 1, 2)}}; break;
                case 0: out = {{p - 1, p + 1}}; break;
                default: out = {{2 * (p - 1), 2 * (p + 1) + 1}};
            }
            break;
        default: return pattern(set, p);  // the others are symmetric
    }
    clip(out, 0, width - 1);
    return normalized(std::move(out));
}

Intervals Graph::dependencies(int64_t t, int64_t p) const {
    if (t == 0) return {};
    auto out = pattern(set_at(t), p);
    clip(out, offset(t - 1), offset(t - 1) + width_at(t - 1) - 1);
    return out;
}

Intervals Graph::reverse_dependencies(int64_t t, int64_t p) const {
    if (t + 1 >= steps) return {};
    auto out = reverse_pattern(set_at(t + 1), p);
    clip(out, offset(t + 1), offset(t + 1) + width_at(t + 1) - 1);
    return out;
}

std::vector<int64_t> Graph::first_ids() const {
    std::vector<int64_t> out(steps + 1, 0);
    for (int64_t t = 0; t < steps; ++t) out[t + 1] = out[t] + width_at(t);
    return out;
}

Counts count(const Graph &g, int64_t nodes) {
    Counts out;
    for (int64_t t = 0; t < g.steps; ++t) {
        const int64_t first = g.offset(t), last = first + g.width_at(t) - 1;
        out.tasks += last - first + 1;
        for (int64_t p = first; p <= last; ++p) {
            for (const auto &i : g.dependencies(t, p)) {
                out.dependencies += i.size();
                if (nodes <= 0) continue;
                const int64_t node = p * nodes / g.width;
                for (int64_t q = i.first; q <= i.last; ++q) (q * nodes / g.width == node ? out.local : out.nonlocal)++;
            }
        }
    }
    return out;
}

}  // namespace burnish::taskbench
