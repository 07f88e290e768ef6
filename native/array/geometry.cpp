#include "geometry.hpp"

#include <memory>

#include "convert.hpp"
#include "numpy_api.hpp"
#include "tracing/token.hpp"

namespace burnish::array {

namespace {

uint64_t hash_of(std::span<const int64_t> values, uint64_t h) {
    for (int64_t v : values) h = tracing::combine(h, static_cast<uint64_t>(v));
    return h;
}

struct Walk {
    Rect rect;
    bool aligned = true;  // every axis walks along one dimension of the root
};

// The points of a strided part. Where an axis runs across several dimensions (reshaped views), whole rows.
Walk walk(const RootClass &of, std::span<const int64_t> shape, const int64_t *strides, int64_t offset) {
    const int dims = of.bounds.dim;
    Walk w;
    w.rect = of.bounds;
    int64_t rest = offset;
    int64_t first[runtime::kMaxDim];
    for (int d = 0; d < dims; ++d) {
        first[d] = of.step[d] ? rest / of.step[d] : 0;
        rest -= first[d] * of.step[d];
        w.rect.lo[d] = first[d];
        w.rect.hi[d] = first[d] + 1;
    }
    bool used[runtime::kMaxDim] = {};
    int64_t low = offset, high = offset;
    for (size_t a = 0; a < shape.size(); ++a) {
        if (shape[a] < 2 || strides[a] == 0) continue;
        const int64_t reach = strides[a] * (shape[a] - 1);
        (reach < 0 ? low : high) += reach;
        bool found = false;
        for (int d = 0; d < dims && !found; ++d) {
            if (used[d] || of.step[d] == 0 || strides[a] % of.step[d]) continue;
            const int64_t end = first[d] + reach / of.step[d];
            if (end < 0 || end >= of.bounds.hi[d]) continue;
            found = used[d] = true;
            w.rect.lo[d] = std::min(first[d], end);
            w.rect.hi[d] = std::max(first[d], end) + 1;
        }
        w.aligned &= found;
    }
    if (!w.aligned) {
        w.rect = of.bounds;
        const int64_t row = of.step[0];
        w.rect.lo[0] = low / row;
        w.rect.hi[0] = high / row + 1;
    }
    return w;
}

Rect empty_rect(const RootClass &of) {
    Rect r = of.bounds;
    for (int d = 0; d < r.dim; ++d) r.hi[d] = r.lo[d];
    return r;
}

int64_t start_of(const RootClass &of, const Rect &r) {
    int64_t start = 0;
    for (int d = 0; d < r.dim; ++d) start += r.lo[d] * of.step[d];
    return start;
}

int64_t product(std::span<const int64_t> shape) {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return n;
}

template <class T>
struct Interned {
    std::unordered_multimap<uint64_t, std::unique_ptr<T>> table;
    uint32_t next = 1;
};

uint32_t layout_of_type(int dimensions, int type) {
    runtime::Field f;
    f.name = "value";
    f.type_num = type;
    f.item_bytes = f.point_bytes = item_size(type);
    return runtime::layout_of(dimensions, {f});
}

}  // namespace

int RootClass::rect_id(const Rect &r) {
    const uint64_t h = hash_of({r.hi.data(), static_cast<size_t>(r.dim)}, hash_of({r.lo.data(), static_cast<size_t>(r.dim)}, 7));
    auto &ids = rect_ids_[h];
    for (int id : ids)
        if (rects[id].lo == r.lo && rects[id].hi == r.hi) return id;
    rects.push_back(r);
    ids.push_back(static_cast<int>(rects.size()) - 1);
    return ids.back();
}

RootClass *root_class(int type, std::span<const int64_t> shape) {
    static Interned<RootClass> known;
    // More axes than a region has dimensions: one long row.
    const int64_t all = product(shape), one = 1;
    if (shape.empty()) shape = {&one, 1};
    else if (shape.size() > static_cast<size_t>(runtime::kMaxDim)) shape = {&all, 1};
    const uint64_t h = hash_of(shape, static_cast<uint64_t>(type));
    const auto range = known.table.equal_range(h);
    for (auto it = range.first; it != range.second; ++it) {
        const RootClass &c = *it->second;
        if (c.type == type && c.bounds.dim == static_cast<int>(shape.size()) && std::equal(shape.begin(), shape.end(), c.bounds.hi.begin()))
            return it->second.get();
    }
    auto c = std::make_unique<RootClass>();
    c->id = known.next++;
    c->type = type;
    c->item = item_size(type);
    c->descr = reinterpret_cast<PyObject *>(PyArray_DescrFromType(type));
    c->layout = layout_of_type(static_cast<int>(shape.size()), type);
    c->bounds.dim = static_cast<int>(shape.size());
    int64_t step = c->item;
    for (int d = 0; d < runtime::kMaxDim; ++d) {
        c->bounds.lo[d] = 0;
        c->bounds.hi[d] = d < c->bounds.dim ? shape[d] : 1;
    }
    for (int d = c->bounds.dim - 1; d >= 0; --d) {
        c->step[d] = step;
        step *= shape[d];
    }
    c->volume = product(shape);
    c->bytes = c->volume * c->item;
    c->rect_id(c->bounds);
    return known.table.emplace(h, std::move(c))->second.get();
}

const Geometry *geometry(RootClass *of, std::span<const int64_t> shape, const int64_t *strides, int64_t offset) {
    static Interned<Geometry> known;
    const int ndim = static_cast<int>(shape.size());
    const int64_t head[] = {of->id, ndim, offset};
    const uint64_t h = hash_of({strides, shape.size()}, hash_of(shape, hash_of(head, 3)));
    const auto range = known.table.equal_range(h);
    for (auto it = range.first; it != range.second; ++it) {
        const Geometry &g = *it->second;
        if (g.of == of && g.ndim == ndim && g.offset == offset && std::equal(shape.begin(), shape.end(), g.shape.begin()) &&
            std::equal(strides, strides + ndim, g.strides.begin()))
            return &g;
    }
    auto g = std::make_unique<Geometry>();
    g->id = known.next++;
    g->of = of;
    g->ndim = ndim;
    g->shape.fill(1);
    g->strides.fill(0);
    std::copy(shape.begin(), shape.end(), g->shape.begin());
    std::copy_n(strides, ndim, g->strides.begin());
    g->offset = offset;
    g->size = product(shape);
    if (g->size == 0) {
        g->rect = of->rect_id(empty_rect(*of));
        g->distinct = g->covers = true;
        g->whole = of->volume == 0;
        g->relative = 0;
    } else {
        const Walk w = walk(*of, shape, strides, offset);
        g->rect = of->rect_id(w.rect);
        g->relative = offset - start_of(*of, w.rect);
        g->distinct = true;
        bool c_order = offset == 0 && g->size == of->volume;
        int64_t step = of->item;
        for (int a = ndim - 1; a >= 0; --a) {
            if (shape[a] == 1) continue;
            g->distinct &= strides[a] != 0;
            c_order &= strides[a] == step;
            step *= shape[a];
        }
        g->whole = c_order;
        g->covers = c_order || (g->distinct && g->size == w.rect.volume());
    }
    return known.table.emplace(h, std::move(g))->second.get();
}

const Geometry *whole_geometry(int type, std::span<const int64_t> shape) {
    RootClass *of = root_class(type, shape);
    int64_t strides[kMaxAxes], step = of->item;
    for (int a = static_cast<int>(shape.size()) - 1; a >= 0; --a) {
        strides[a] = step;
        step *= shape[a];
    }
    return geometry(of, shape, strides, 0);
}

Part part(RootClass *of, std::span<const int64_t> shape, const int64_t *strides, int64_t offset) {
    if (product(shape) == 0) return {of->rect_id(empty_rect(*of)), 0};
    const Rect r = walk(*of, shape, strides, offset).rect;
    return {of->rect_id(r), offset - start_of(*of, r)};
}

}  // namespace burnish::array
