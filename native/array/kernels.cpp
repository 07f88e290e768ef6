#include "kernels.hpp"

#include "numpy_api.hpp"
#include "reduce.hpp"

namespace burnish::array {

namespace {

using Shape = std::vector<int64_t>;

Shape shape_of(const Geometry &g) { return {g.dims().begin(), g.dims().end()}; }

// ---- reductions ----
Reduction reduction_over(const Operation &op, const Geometry &g, const Shape &shape, int first, int last, int type,
                         const Geometry &out) {
    Reduction r;
    const int types[] = {type, type, type};
    if (auto loop = find_loop(op.ufunc, types)) r.loop = *loop;
    r.item = item_size(type);
    r.cast = find_cast(g.of->type, type);
    r.outer = {.axes = first, .operands = 2};
    r.sequence = {.axes = last - first, .operands = 1};
    r.inner = {.axes = g.ndim - last, .operands = 2};
    for (int a = 0; a < g.ndim; ++a) {
        Iteration &part = a < first ? r.outer : a < last ? r.sequence : r.inner;
        const int at = a < first ? a : a < last ? a - first : a - last;
        part.shape[at] = shape[a];
        part.strides[0][at] = g.strides[a];
        if (a < first) part.strides[1][at] = out.strides[a];
        else if (a >= last) part.strides[1][at] = out.strides[a - (last - first)];
    }
    r.prepare();
    return r;
}

class ReducePlan final : public Plan {
   public:
    struct Piece {
        Reduction work;
        int64_t relative_in = 0, relative_out = 0;
        int64_t first_leaf = -1, end_leaf = 0;  // first_leaf < 0: everything
    };
    void run(const NativeCall &call, int64_t point) const override {
        const Piece &p = pieces[static_cast<size_t>(point)];
        const char *in = data(call, 0) + p.relative_in;
        char *out = data(call, 1) + p.relative_out;
        if (p.first_leaf < 0) p.work.run(in, out);
        else p.work.run_leaves(in, out, p.first_leaf, p.end_leaf);
    }
    using Plan::prepare;
    std::vector<Piece> pieces;
    const Geometry *result = nullptr;
    bool partial = false;  // the result is one row per leaf: reduce its first axis to finish
};

// Cut along the first kept axis: each piece reduces its own rows.
void cut_outer(ReducePlan &plan, const Operation &op, const Geometry &g, const Shape &shape, int first, int last, int type,
               int workers, std::vector<int> &rects) {
    const Geometry &out = *plan.result;
    Cuts cuts = cut(shape, workers);
    if (first == 0 || cuts.axis != 0) cuts.at = {0, first ? shape[0] : 1};
    for (int p = 0; p < cuts.pieces(); ++p) {
        Shape in_shape = shape, out_shape = shape_of(out);
        int64_t in_offset = g.offset, out_offset = 0;
        if (first > 0) {
            in_shape[0] = out_shape[0] = cuts.at[p + 1] - cuts.at[p];
            in_offset += cuts.at[p] * g.strides[0];
            out_offset = cuts.at[p] * out.strides[0];
        }
        const Part in = part(g.of, in_shape, g.strides.data(), in_offset);
        const Part to = part(out.of, out_shape, out.strides.data(), out_offset);
        rects.push_back(in.rect);
        rects.push_back(to.rect);
        plan.pieces.push_back({reduction_over(op, g, in_shape, first, last, type, out), in.relative, to.relative, -1, 0});
    }
}

// Cut the sequence itself between leaves.
void cut_leaves(ReducePlan &plan, const Reduction &whole, const Geometry &g, const Shape &shape, int type, int workers,
                std::vector<int> &rects) {
    const int64_t leaves = whole.leaves(), row_length = whole.length / shape[0];
    const int pieces = static_cast<int>(std::min<int64_t>(workers, leaves));
    const bool rows = whole.inner.axes > 0;  // else the leaf results are a plain sequence again
    plan.result = whole_geometry(type, rows ? Shape{leaves, whole.rows} : Shape{leaves});
    plan.partial = true;
    for (int p = 0; p < pieces; ++p) {
        const int64_t begin = leaves * p / pieces, end = leaves * (p + 1) / pieces;
        // rows of the first axis that hold these leaves
        const int64_t low = begin * whole.leaf() / row_length;
        const int64_t high = (std::min(whole.length, end * whole.leaf()) - 1) / row_length + 1;
        Shape in_shape = shape;
        in_shape[0] = high - low;
        const Part in = part(g.of, in_shape, g.strides.data(), g.offset + low * g.strides[0]);
        const Part to = part(plan.result->of, rows ? Shape{end - begin, whole.rows} : Shape{end - begin}, plan.result->strides.data(), begin * plan.result->strides[0]);
        rects.push_back(in.rect);
        rects.push_back(to.rect);
        plan.pieces.push_back({whole, in.relative - low * g.strides[0], to.relative, begin, end});
    }
}

std::unique_ptr<ReducePlan> make_reduce_plan(const Operation &op, const Geometry &g, int first, int last, int type, int workers) {
    auto plan = std::make_unique<ReducePlan>();
    const Shape shape = shape_of(g);
    Shape kept(shape.begin(), shape.begin() + first);
    kept.insert(kept.end(), shape.begin() + last, shape.end());
    plan->result = whole_geometry(type, kept);
    const Reduction whole = reduction_over(op, g, shape, first, last, type, *plan->result);
    if (!whole.loop.call) {
        PyErr_Format(PyExc_NotImplementedError, "bn.%s.reduce is not available for this type", op.name.c_str());
        return nullptr;
    }
    std::vector<int> rects;
    if (first == 0 && last > 0 && g.size > kChunkedAbove && whole.leaves() > 1 && workers > 1)
        cut_leaves(*plan, whole, g, shape, type, workers, rects);
    else
        cut_outer(*plan, op, g, shape, first, last, type, workers, rects);
    plan->prepare(op.name + "_reduce", {{g.of, Privilege::Read}, {plan->result->of, Privilege::Write}}, std::move(rects));
    return plan;
}

// ---- products ----
constexpr int64_t kGemmRows = 256;  // rows of one call of the matrix kernel: fixed, so that pieces do not show

class MatmulPlan final : public Plan {
   public:
    struct Piece {
        int64_t rows = 0;
        std::array<int64_t, 3> relative{};
    };
    void run(const NativeCall &call, int64_t point) const override {
        const Piece &p = pieces[static_cast<size_t>(point)];
        for (int64_t start = 0; start < p.rows; start += kGemmRows) {
            char *args[] = {data(call, 0) + p.relative[0] + start * steps[3], data(call, 1) + p.relative[1],
                            data(call, 2) + p.relative[2] + start * steps[7]};
            const int64_t dims[] = {1, std::min(kGemmRows, p.rows - start), n, columns};
            loop.call(args, dims, steps.data(), loop.data);
        }
    }
    using Plan::prepare;
    Loop loop;
    int64_t n = 0, columns = 0;
    std::array<int64_t, 9> steps{};  // outer (3), then two each for the first, second and result
    std::vector<Piece> pieces;
    const Geometry *result = nullptr;
};

std::unique_ptr<MatmulPlan> make_matmul_plan(const Operation &op, const Geometry &a, const Geometry &b, int workers) {
    auto plan = std::make_unique<MatmulPlan>();
    const int type = a.of->type, types[] = {type, type, type};
    auto loop = find_loop(op.ufunc, types);
    if (!loop) {
        PyErr_SetString(PyExc_NotImplementedError, "bn.matmul is not available for this type");
        return nullptr;
    }
    plan->loop = *loop;
    const bool row = a.ndim == 1, column = b.ndim == 1;
    const int64_t m = row ? 1 : a.shape[0], n = row ? a.shape[0] : a.shape[1], p = column ? 1 : b.shape[1];
    if (b.shape[0] != n) {
        PyErr_Format(PyExc_ValueError, "matmul: the first operand has %lld columns, the second %lld rows", static_cast<long long>(n),
                     static_cast<long long>(b.shape[0]));
        return nullptr;
    }
    Shape shape;
    if (!row) shape.push_back(m);
    if (!column) shape.push_back(p);
    plan->result = whole_geometry(type, shape);
    const Geometry &out = *plan->result;
    plan->n = n;
    plan->columns = p;
    const int64_t item = a.of->item;
    plan->steps = {0, 0, 0,
                   row ? n * item : a.strides[0], row ? a.strides[0] : a.strides[1],
                   b.strides[0], column ? item : b.strides[1],
                   row ? p * item : out.strides[0], column ? item : out.strides[out.ndim - 1]};
    const int64_t tiles = (m + kGemmRows - 1) / kGemmRows;
    const int pieces = m * n * p > 8 * kChunkedAbove ? static_cast<int>(std::min<int64_t>(workers, tiles)) : 1;
    std::vector<int> rects;
    for (int k = 0; k < pieces; ++k) {
        const int64_t low = tiles * k / pieces * kGemmRows, high = std::min(m, tiles * (k + 1) / pieces * kGemmRows);
        Shape left = shape_of(a), to = shape;
        if (!row) left[0] = to[0] = high - low;
        const Part x = part(a.of, left, a.strides.data(), a.offset + (row ? 0 : low * a.strides[0]));
        const Part z = part(out.of, to, out.strides.data(), row ? 0 : low * out.strides[0]);
        rects.insert(rects.end(), {x.rect, b.rect, z.rect});
        plan->pieces.push_back({high - low, {x.relative, b.relative, z.relative}});
    }
    plan->prepare("matmul", {{a.of, Privilege::Read}, {b.of, Privilege::Read}, {out.of, Privilege::Write}}, std::move(rects));
    return plan;
}

// ---- roll ----
class RollPlan final : public Plan {
   public:
    struct Move {
        Copy work;
        int64_t relative_in, relative_out;
    };
    void run(const NativeCall &call, int64_t point) const override {
        for (const Move &m : pieces[static_cast<size_t>(point)]) m.work.run(data(call, 0) + m.relative_in, data(call, 1) + m.relative_out);
    }
    using Plan::prepare;
    std::vector<std::vector<Move>> pieces;
    const Geometry *result = nullptr;
};

struct Block {  // of the result, and where it comes from
    Shape lo, from, extent;
};

// Rows [low, high) of the result as blocks that are contiguous in the source.
std::vector<Block> roll_blocks(const Shape &shape, std::span<const int64_t> shifts, int64_t low, int64_t high) {
    std::vector<Block> blocks{{}};
    for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t n = shape[d], k = n ? ((shifts[d] % n) + n) % n : 0;
        std::vector<Block> next;
        for (const Block &b : blocks)
            for (const auto &[lo, hi, from] : {std::array<int64_t, 3>{0, k, n - k}, {k, n, 0}}) {
                const int64_t first = d ? lo : std::max(lo, low), end = d ? hi : std::min(hi, high);
                if (first >= end) continue;
                Block made = b;
                made.lo.push_back(first);
                made.from.push_back(from + first - lo);
                made.extent.push_back(end - first);
                next.push_back(std::move(made));
            }
        blocks = std::move(next);
    }
    return blocks;
}

std::unique_ptr<RollPlan> make_roll_plan(const Geometry &g, std::span<const int64_t> shifts, int workers) {
    auto plan = std::make_unique<RollPlan>();
    const Shape shape = shape_of(g);
    plan->result = whole_geometry(g.of->type, shape);
    const Geometry &out = *plan->result;
    Cuts cuts = cut(shape, workers);
    if (cuts.axis != 0) cuts.at = {0, shape[0]};
    std::vector<int> rects;
    for (int p = 0; p < cuts.pieces(); ++p) {
        Shape rows = shape;
        rows[0] = cuts.at[p + 1] - cuts.at[p];
        const Part to = part(out.of, rows, out.strides.data(), cuts.at[p] * out.strides[0]);
        rects.insert(rects.end(), {g.rect, to.rect});
        auto &moves = plan->pieces.emplace_back();
        for (const Block &b : roll_blocks(shape, shifts, cuts.at[p], cuts.at[p + 1])) {
            Copy work{.over = {.axes = g.ndim, .operands = 2}, .size = g.of->item};
            int64_t in = g.relative, at = to.relative - cuts.at[p] * out.strides[0];
            for (int d = 0; d < g.ndim; ++d) {
                work.over.shape[d] = b.extent[d];
                work.over.strides[0][d] = g.strides[d];
                work.over.strides[1][d] = out.strides[d];
                in += b.from[d] * g.strides[d];
                at += b.lo[d] * out.strides[d];
            }
            work.over.simplify(1);
            moves.push_back({work, in, at});
        }
    }
    plan->prepare("roll", {{g.of, Privilege::Read}, {out.of, Privilege::Write}}, std::move(rects));
    return plan;
}

// ---- random ----
class RandomPlan final : public Plan {
   public:
    void run(const NativeCall &call, int64_t point) const override {
        const auto *w = call.scalars + 1;
        const Draw draw{.key = {static_cast<uint64_t>(w[0].i), static_cast<uint64_t>(w[1].i)}, .call = static_cast<uint64_t>(w[2].i),
                        .distribution = static_cast<Distribution>(w[3].i), .low = w[4].i, .range = static_cast<uint64_t>(w[5].i)};
        fill_random(draw, cuts[static_cast<size_t>(point)], cuts[static_cast<size_t>(point) + 1], data(call, 0));
    }
    using Plan::prepare;
    std::vector<int64_t> cuts;
    const Geometry *result = nullptr;
};

const Operation &internal(const char *name) { return *add_operation(name, nullptr, 1); }

PyObject *fresh(Context &c, const Geometry *g, uint32_t site, ArrayRoot **root, bool scalar) {
    *root = take_root(c, g->of, site);
    return *root ? new_array(*root, g, scalar) : nullptr;
}

}  // namespace

PyObject *reduce_array(Context &c, const Operation &op, ArrayObject *a, int first, int last, int type) {
    const uint32_t site = c.site_here(), workers = static_cast<uint32_t>(c.options().workers);
    const PlanKey key{{internal("reduce").id, workers, op.id, a->geom->id, static_cast<uint32_t>(first), static_cast<uint32_t>(last), static_cast<uint32_t>(type)}};
    auto *plan = static_cast<const ReducePlan *>(find_plan(key));
    if (!plan) {
        auto made = make_reduce_plan(op, *a->geom, first, last, type, static_cast<int>(workers));
        if (!made) return nullptr;
        plan = static_cast<const ReducePlan *>(store_plan(key, std::move(made)));
    }
    ArrayRoot *roots[2] = {a->root, nullptr};
    PyObject *result = fresh(c, plan->result, site, &roots[1], plan->result->ndim == 0);
    if (!result) return nullptr;
    if (plan->result->size && !plan->launch(c, site, roots, nullptr, 0)) {
        Py_DECREF(result);
        return nullptr;
    }
    if (!plan->partial) return result;
    PyObject *rows = reduce_array(c, op, as_array_object(result), 0, 1, type);  // (rows,)
    Py_DECREF(result);
    if (!rows) return nullptr;
    std::array<int64_t, kMaxAxes> shape{}, strides{};
    const int kept = a->geom->ndim - last;
    int64_t step = as_array_object(rows)->geom->of->item;
    for (int k = kept - 1; k >= 0; --k) {
        shape[k] = a->geom->shape[last + k];
        strides[k] = step;
        step *= shape[k];
    }
    PyObject *view = new_view(as_array_object(rows), geometry(as_array_object(rows)->geom->of, {shape.data(), static_cast<size_t>(kept)}, strides.data(), 0));
    if (view) as_array_object(view)->scalar = kept == 0;
    Py_DECREF(rows);
    return view;
}

PyObject *multiply_matrices(Context &c, const Operation &matmul, ArrayObject *a, ArrayObject *b) {
    const uint32_t site = c.site_here(), workers = static_cast<uint32_t>(c.options().workers);
    const PlanKey key{{internal("matmul").id, workers, a->geom->id, b->geom->id}};
    auto *plan = static_cast<const MatmulPlan *>(find_plan(key));
    if (!plan) {
        auto made = make_matmul_plan(matmul, *a->geom, *b->geom, static_cast<int>(workers));
        if (!made) return nullptr;
        plan = static_cast<const MatmulPlan *>(store_plan(key, std::move(made)));
    }
    ArrayRoot *roots[3] = {a->root, b->root, nullptr};
    PyObject *result = fresh(c, plan->result, site, &roots[2], plan->result->ndim == 0);
    if (result && plan->result->size && !plan->launch(c, site, roots, nullptr, 0)) Py_CLEAR(result);
    return result;
}

PyObject *roll_array(Context &c, ArrayObject *a, std::span<const int64_t> shifts) {
    const uint32_t site = c.site_here(), workers = static_cast<uint32_t>(c.options().workers);
    PlanKey key{{internal("roll").id, workers, a->geom->id}};
    for (size_t d = 0; d < shifts.size(); ++d) key.words[3 + d] = static_cast<uint32_t>(shifts[d]);
    auto *plan = static_cast<const RollPlan *>(find_plan(key));
    if (!plan) plan = static_cast<const RollPlan *>(store_plan(key, make_roll_plan(*a->geom, shifts, static_cast<int>(workers))));
    ArrayRoot *roots[2] = {a->root, nullptr};
    PyObject *result = fresh(c, plan->result, site, &roots[1], false);
    if (result && plan->result->size && !plan->launch(c, site, roots, nullptr, 0)) Py_CLEAR(result);
    return result;
}

PyObject *draw_random(Context &c, const Draw &draw, int64_t n) {
    const uint32_t site = c.site_here(), workers = static_cast<uint32_t>(c.options().workers);
    const int type = draw.distribution == Distribution::Integers ? NPY_LONG : NPY_DOUBLE;
    const Geometry *g = whole_geometry(type, Shape{n});
    const PlanKey key{{internal("random").id, workers, g->id, static_cast<uint32_t>(draw.distribution)}};
    auto *plan = static_cast<const RandomPlan *>(find_plan(key));
    if (!plan) {
        auto made = std::make_unique<RandomPlan>();
        made->result = g;
        const int64_t blocks = (n + kRandomBlock - 1) / kRandomBlock;
        const int64_t pieces = n > kChunkedAbove ? std::min<int64_t>(workers, blocks) : 1;
        std::vector<int> rects;
        for (int64_t p = 0; p <= pieces; ++p) made->cuts.push_back(std::min(n, blocks * p / pieces * kRandomBlock));
        for (int64_t p = 0; p < pieces; ++p)
            rects.push_back(part(g->of, Shape{made->cuts[p + 1] - made->cuts[p]}, g->strides.data(), made->cuts[p] * g->of->item).rect);
        made->prepare("random", {{g->of, Privilege::Write}}, std::move(rects));
        plan = static_cast<const RandomPlan *>(store_plan(key, std::move(made)));
    }
    ArrayRoot *root;
    PyObject *result = fresh(c, g, site, &root, false);
    Scalar words[6];
    words[0].i = static_cast<int64_t>(draw.key[0]);
    words[1].i = static_cast<int64_t>(draw.key[1]);
    words[2].i = static_cast<int64_t>(draw.call);
    words[3].i = static_cast<int64_t>(draw.distribution);
    words[4].i = draw.low;
    words[5].i = static_cast<int64_t>(draw.range);
    if (result && n && !plan->launch(c, site, &root, words, 6)) Py_CLEAR(result);
    return result;
}

}  // namespace burnish::array
