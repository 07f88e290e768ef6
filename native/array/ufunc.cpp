#include "ufunc.hpp"

#include <structmember.h>

#include <cstring>
#include <map>

#include "numpy_api.hpp"
#include "select.hpp"

namespace burnish::array {

namespace {

// Scalars take part in a plan by how NumPy promotes them: Python's int, float and complex adapt to the arrays, others
// have a type of their own.
enum Kind : uint32_t { kWeakInt = 1, kWeakFloat, kWeakComplex, kTyped };
constexpr uint32_t kScalar = 0x80000000u;
uint32_t scalar_kind(Kind kind, int type = 0) { return kScalar | kind << 8 | static_cast<uint32_t>(type); }
Kind kind_of(uint32_t code) { return static_cast<Kind>(code >> 8 & 0xFF); }
int type_of(uint32_t code) { return static_cast<int>(code & 0xFF); }

bool convert_scalar(PyObject *value, int type, void *to) {
    if (type == NPY_DOUBLE && PyFloat_CheckExact(value)) {
        const double x = PyFloat_AS_DOUBLE(value);
        std::memcpy(to, &x, sizeof x);
        return true;
    }
    PyArray_Descr *descr = PyArray_DescrFromType(type);
    const bool ok = PyArray_Pack(descr, to, value) == 0;
    Py_DECREF(descr);
    return ok;
}

// One elementwise loop over array arguments and scalars; every point has its own piece.
class ElementwisePlan final : public Plan {
   public:
    void run(const NativeCall &call, int64_t point) const override {
        char *base[kMaxOperands];
        const Piece &piece = pieces[static_cast<size_t>(point)];
        for (int k = 0; k < piece.work.over.operands; ++k)
            base[k] = source[k] >= 0 ? data(call, source[k]) + piece.relative[k] : const_cast<char *>(scalar(call, -1 - source[k]));
        piece.work.run(base);
    }

    struct Piece {
        Elementwise work;
        std::array<int64_t, kMaxOperands> relative{};
    };
    std::vector<Piece> pieces;
    std::array<int, kMaxOperands> source{};  // argument, or -1 - number of a scalar
    std::array<int, kMaxOperands> types{};   // of the loop
    RootClass *result = nullptr;             // of a fresh result
    const Geometry *result_geom = nullptr;
    using Plan::prepare;
};

struct Layout {  // one operand seen with the shape of the result
    RootClass *of = nullptr;
    std::array<int64_t, kMaxAxes> strides{};
    int64_t offset = 0;
};

void broadcast_error(const char *what, const Operand *in, int n, const Geometry *out) {
    std::string text = what;
    auto add = [&](const Geometry *g) {
        std::string list;
        for (int a = 0; a < g->ndim; ++a) {
            if (a) list.push_back(',');
            list += std::to_string(g->shape[a]);
        }
        if (g->ndim == 1) list.push_back(',');
        text.append(" (").append(list).append(")");
    };
    for (int k = 0; k < n; ++k)
        if (in[k].geom) add(in[k].geom);
    if (out) add(out);
    PyErr_SetString(PyExc_ValueError, text.c_str());
}

bool broadcast_shape(const Operand *in, int n, std::vector<int64_t> &shape) {
    int ndim = 0;
    for (int k = 0; k < n; ++k)
        if (in[k].geom) ndim = std::max(ndim, in[k].geom->ndim);
    shape.assign(ndim, 1);
    for (int k = 0; k < n; ++k) {
        const Geometry *g = in[k].geom;
        if (!g) continue;
        for (int a = 0; a < g->ndim; ++a) {
            int64_t &s = shape[ndim - g->ndim + a];
            if (g->shape[a] == s || g->shape[a] == 1) continue;
            if (s != 1) return broadcast_error("operands could not be broadcast together with shapes", in, n, nullptr), false;
            s = g->shape[a];
        }
    }
    return true;
}

bool fits(const Geometry *g, std::span<const int64_t> shape) {
    const int lead = static_cast<int>(shape.size()) - g->ndim;
    for (int a = 0; a < g->ndim; ++a) {
        if (a + lead < 0) {
            if (g->shape[a] != 1) return false;
        } else if (g->shape[a] != 1 && g->shape[a] != shape[a + lead]) {
            return false;
        }
    }
    return true;
}

Layout layout(const Geometry *g, std::span<const int64_t> shape) {
    Layout l{g->of, {}, g->offset};
    const int lead = static_cast<int>(shape.size()) - g->ndim;
    for (int a = 0; a < g->ndim; ++a)
        if (a + lead >= 0) l.strides[a + lead] = g->shape[a] == 1 && shape[a + lead] != 1 ? 0 : g->strides[a];
    return l;
}

bool rects_overlap(const Geometry *a, const Geometry *b) {
    const Rect &x = a->of->rects[a->rect], &y = b->of->rects[b->rect];
    for (int d = 0; d < x.dim; ++d)
        if (x.hi[d] <= y.lo[d] || y.hi[d] <= x.lo[d]) return false;
    return true;
}

PyObject *type_spec(const Operand &o) {  // as numpy.ufunc.resolve_dtypes takes it
    if (o.geom) return Py_NewRef(o.geom->of->descr);
    switch (kind_of(o.kind)) {
        case kWeakInt: return Py_NewRef(reinterpret_cast<PyObject *>(&PyLong_Type));
        case kWeakFloat: return Py_NewRef(reinterpret_cast<PyObject *>(&PyFloat_Type));
        case kWeakComplex: return Py_NewRef(reinterpret_cast<PyObject *>(&PyComplex_Type));
        default: return reinterpret_cast<PyObject *>(PyArray_DescrFromType(type_of(o.kind)));
    }
}

// The types of NumPy's loop for these operands (inputs, output).
bool resolve_types(const Operation &op, const Operand *in, int n, int *types) {
    PyObject *specs = PyTuple_New(n + 1);
    for (int k = 0; k < n; ++k) PyTuple_SET_ITEM(specs, k, type_spec(in[k]));
    PyTuple_SET_ITEM(specs, n, Py_NewRef(Py_None));
    PyObject *found = PyObject_CallMethod(op.ufunc, "resolve_dtypes", "N", PyTuple_Pack(1, specs));
    Py_DECREF(specs);
    if (!found) return false;
    for (int k = 0; k <= n; ++k) types[k] = reinterpret_cast<PyArray_Descr *>(PyTuple_GET_ITEM(found, k))->type_num;
    Py_DECREF(found);
    return true;
}

bool find_work(const Operation &op, const Operand *in, int n, int out_type, Elementwise &work, int *types) {
    if (op.ufunc) {
        if (!resolve_types(op, in, n, types)) return false;
        auto loop = find_loop(op.ufunc, {types, static_cast<size_t>(n + 1)});
        for (int k = 0; k <= n; ++k)
            if (!supported_type(types[k])) loop.reset();
        if (!loop) {
            PyErr_Format(PyExc_NotImplementedError, "bn.%s is not available for these types", op.name.c_str());
            return false;
        }
        work.loop = *loop;
    } else {
        std::array<int, kMaxInputs> stored{};
        for (int k = 0; k < n; ++k)
            stored[k] = in[k].geom ? in[k].geom->of->type : kind_of(in[k].kind) == kTyped ? type_of(in[k].kind) : -1;
        work.loop = own_loop(op.name, {stored.data(), static_cast<size_t>(n)}, out_type, types);
    }
    return true;
}

std::unique_ptr<ElementwisePlan> make_plan(const Operation &op, const Operand *in, int n, const Geometry *out,
                                           uint32_t shared, int workers) {
    auto plan = std::make_unique<ElementwisePlan>();
    Elementwise work;
    int types[kMaxInputs + 1];
    if (!find_work(op, in, n, out ? out->of->type : -1, work, types)) return nullptr;
    std::vector<int64_t> shape;
    if (out) shape.assign(out->dims().begin(), out->dims().end());
    else if (!broadcast_shape(in, n, shape)) return nullptr;
    for (int k = 0; k < n && out; ++k)
        if (in[k].geom && !fits(in[k].geom, shape))
            return broadcast_error("could not broadcast input array into the shape of the output:", in, n, out), nullptr;
    if (shape.size() > static_cast<size_t>(kMaxAxes)) {
        PyErr_Format(PyExc_ValueError, "bn arrays have at most %d axes", kMaxAxes);
        return nullptr;
    }
    if (out && out->of->type != types[n]) {
        PyArray_Descr *from = PyArray_DescrFromType(types[n]), *to = PyArray_DescrFromType(out->of->type);
        if (op.ufunc && !PyArray_CanCastTypeTo(from, to, NPY_SAME_KIND_CASTING)) {
            PyErr_Format(PyExc_TypeError, "Cannot cast ufunc '%s' output from %R to %R with casting rule 'same_kind'",
                         op.name.c_str(), from, to);
            Py_DECREF(from);
            Py_DECREF(to);
            return nullptr;
        }
        Py_DECREF(from);
        Py_DECREF(to);
    }
    if (!out) {
        plan->result_geom = out = whole_geometry(types[n], shape);
        plan->result = out->of;
    }

    // Arguments: inputs that are arrays, then the output unless an input is the same elements.
    std::vector<ArrayArg> args;
    std::vector<Layout> layouts(n + 1);
    std::vector<int> stored(n + 1);
    int scalars = 0, out_arg = -1;
    for (int k = 0; k < n; ++k) {
        plan->types[k] = types[k];
        if (!in[k].geom) {
            stored[k] = types[k];
            plan->source[k] = -1 - scalars++;
            continue;
        }
        stored[k] = in[k].geom->of->type;
        layouts[k] = layout(in[k].geom, shape);
        if (shared >> k & 1) {
            if (out_arg < 0) {
                out_arg = static_cast<int>(args.size());
                args.push_back({out->of, Privilege::ReadWrite});
            }
            plan->source[k] = out_arg;
        } else {
            plan->source[k] = static_cast<int>(args.size());
            args.push_back({in[k].geom->of, Privilege::Read});
        }
    }
    const bool keeps = op.name == "masked_copy";  // elements outside the mask stay
    if (out_arg < 0) {
        out_arg = static_cast<int>(args.size());
        args.push_back({out->of, out->covers && !keeps ? Privilege::Write : Privilege::ReadWrite});
    }
    plan->source[n] = out_arg;
    stored[n] = out->of->type;
    layouts[n] = layout(out, shape);

    set_types(work, stored, {types, static_cast<size_t>(n + 1)});
    Cuts cuts = cut(shape, out->distinct ? workers : 1);
    for (int attempt = 0;; ++attempt) {
        std::vector<int> rects;
        plan->pieces.clear();
        for (int p = 0; p < cuts.pieces(); ++p) {
            std::vector<int64_t> piece = shape;
            const int64_t start = cuts.at[p];
            if (!piece.empty()) piece[cuts.axis] = cuts.at[p + 1] - start;
            ElementwisePlan::Piece made{work, {}};
            made.work.over.axes = static_cast<int>(shape.size());
            made.work.over.operands = n + 1;
            std::copy(piece.begin(), piece.end(), made.work.over.shape.begin());
            const size_t first = rects.size();
            rects.resize(first + args.size());
            for (int k = 0; k <= n; ++k) {
                if (plan->source[k] < 0) continue;
                const Layout &l = layouts[k];
                made.work.over.strides[k] = l.strides;
                const Part part_of = part(l.of, piece, l.strides.data(), l.offset + (shape.empty() ? 0 : start * l.strides[cuts.axis]));
                made.relative[k] = part_of.relative;
                rects[first + plan->source[k]] = part_of.rect;
            }
            made.work.over.simplify(n);
            plan->pieces.push_back(std::move(made));
        }
        // Pieces of reshaped views may share rows: then they are not independent.
        bool apart = true;
        for (int p = 1; p < cuts.pieces() && apart; ++p) {
            const Rect &a = out->of->rects[rects[(p - 1) * args.size() + out_arg]], &b = out->of->rects[rects[p * args.size() + out_arg]];
            bool meet = true;
            for (int d = 0; d < a.dim; ++d) meet &= a.lo[d] < b.hi[d] && b.lo[d] < a.hi[d];
            apart = !meet;
        }
        if (apart) {
            plan->prepare(op.name, args, std::move(rects));
            return plan;
        }
        cuts = cut(shape, 1);
    }
}

std::vector<std::unique_ptr<Operation>> &operations() {
    static std::vector<std::unique_ptr<Operation>> all;
    return all;
}
std::map<std::string, Operation *> &by_name() {
    static std::map<std::string, Operation *> names;
    return names;
}

}  // namespace

Operation *find_operation(const char *name) {
    auto it = by_name().find(name);
    return it == by_name().end() ? nullptr : it->second;
}

Operation *add_operation(std::string name, PyObject *ufunc, int nin) {
    if (Operation *known = find_operation(name.c_str())) return known;
    auto op = std::make_unique<Operation>();
    op->id = static_cast<uint32_t>(operations().size() + 1);
    op->name = name;
    op->ufunc = Py_XNewRef(ufunc);
    op->nin = nin;
    operations().push_back(std::move(op));
    return by_name()[name] = operations().back().get();
}

Inputs::~Inputs() {
    for (PyObject *o : owned_) Py_XDECREF(o);
}

int Inputs::add(PyObject *o) {
    Operand &x = operands[n];
    if (is_array(o)) {
        x.root = as_array_object(o)->root;
        x.geom = as_array_object(o)->geom;
    } else if (PyFloat_CheckExact(o)) {
        x.kind = scalar_kind(kWeakFloat);
    } else if (PyBool_Check(o)) {
        x.kind = scalar_kind(kTyped, NPY_BOOL);
    } else if (PyLong_Check(o)) {
        x.kind = scalar_kind(kWeakInt);
    } else if (PyComplex_CheckExact(o)) {
        x.kind = scalar_kind(kWeakComplex);
    } else if (PyArray_IsScalar(o, Generic)) {
        PyArray_Descr *descr = PyArray_DescrFromScalar(o);
        if (!descr) return -1;
        const int type = descr->type_num;
        Py_DECREF(descr);
        if (!supported_type(type)) return 0;
        x.kind = scalar_kind(kTyped, type);
    } else if (PyArray_Check(o) || PyList_Check(o) || PyTuple_Check(o)) {
        PyObject *made = PyObject_CallOneArg(array_types().from_numpy, o);
        if (!made) return -1;
        owned_[n] = made;
        x.root = as_array_object(made)->root;
        x.geom = as_array_object(made)->geom;
    } else {
        return 0;
    }
    x.value = o;
    ++n;
    return 1;
}

PyObject *apply(Context &c, const Operation &op, Operand *in, int n, Target out) {
    // What the output overwrites while it is still to be read is copied first, unless each element is read only when
    // its own result is written.
    PyObject *copies[kMaxInputs] = {};
    uint32_t shared = 0;
    const uint32_t site = c.site_here();
    PyObject *result = nullptr;
    ArrayRoot *root = out.root;
    bool ok = true;
    if (out.root)
        for (int k = 0; k < n && ok; ++k) {
            if (in[k].root != out.root || !rects_overlap(in[k].geom, out.geom)) continue;
            if (in[k].geom == out.geom && out.geom->distinct) {
                shared |= 1u << k;
                continue;
            }
            copies[k] = copy_array(c, in[k].root, in[k].geom, in[k].geom->of->type, false);
            ok = copies[k] != nullptr;
            if (ok) {
                in[k].root = as_array_object(copies[k])->root;
                in[k].geom = as_array_object(copies[k])->geom;
            }
        }
    const ElementwisePlan *plan = nullptr;
    const int workers = c.options().workers;
    if (ok) {
        PlanKey key;
        key.words[0] = op.id;
        key.words[1] = static_cast<uint32_t>(workers) << 8 | shared;
        key.words[2] = out.geom ? out.geom->id : 0;
        for (int k = 0; k < n; ++k) key.words[3 + k] = in[k].geom ? in[k].geom->id : in[k].kind;
        plan = static_cast<const ElementwisePlan *>(find_plan(key));
        if (!plan) {
            auto made = make_plan(op, in, n, out.geom, shared, workers);
            if (made) plan = static_cast<const ElementwisePlan *>(store_plan(key, std::move(made)));
        }
    }
    if (plan && !root) {
        root = take_root(c, plan->result, site);
        bool scalar = plan->result_geom->ndim == 0;
        result = root ? new_array(root, plan->result_geom, scalar) : nullptr;
        ok = result != nullptr;
    }
    if (plan && ok) {
        const Geometry *g = plan->result_geom ? plan->result_geom : out.geom;
        Scalar words[2 * kMaxInputs];
        uint32_t n_words = 0;
        ArrayRoot *roots[kMaxInputs + 1];
        for (int k = 0; k < n && ok; ++k) {
            if (in[k].geom) {
                roots[plan->source[k]] = in[k].root;
            } else {
                ok = convert_scalar(in[k].value, plan->types[k], &words[n_words]);
                n_words += 2;
            }
        }
        roots[plan->source[n]] = root;
        if (ok && g->size) ok = plan->launch(c, site, roots, words, n_words);
    } else {
        ok = false;
    }
    for (PyObject *o : copies) Py_XDECREF(o);
    if (!ok) {
        Py_XDECREF(result);
        return nullptr;
    }
    return result ? result : Py_NewRef(Py_None);
}

PyObject *copy_array(Context &c, ArrayRoot *root, const Geometry *geom, int type, bool scalar) {
    static const Operation *copy = add_operation("copy", nullptr, 1);
    const Geometry *to = whole_geometry(type, geom->dims());
    ArrayRoot *made = take_root(c, to->of, c.site_here());
    if (!made) return nullptr;
    PyObject *result = new_array(made, to, scalar);
    Operand in[] = {{root, geom, 0, nullptr}};
    PyObject *done = result ? apply(c, *copy, in, 1, {made, to}) : nullptr;
    if (!done) Py_XDECREF(result), result = nullptr;
    Py_XDECREF(done);
    return result;
}

bool assign(Context &c, ArrayRoot *root, const Geometry *geom, PyObject *value) {
    static const Operation *copy = add_operation("copy", nullptr, 1);
    Inputs in;
    const int understood = in.add(value);
    if (understood < 0) return false;
    if (understood == 0) {
        PyErr_Format(PyExc_TypeError, "cannot assign %s to elements of a bn array", Py_TYPE(value)->tp_name);
        return false;
    }
    if (in.operands[0].root == root && in.operands[0].geom == geom) return true;
    PyObject *done = apply(c, *copy, in.operands, 1, {root, geom});
    Py_XDECREF(done);
    return done != nullptr;
}

// ---- operators ----
PyObject *binary_slot(const Operation &op, PyObject *a, PyObject *b) {
    Inputs in;
    for (PyObject *o : {a, b}) {
        const int understood = in.add(o);
        if (understood < 0) return nullptr;
        if (understood == 0) Py_RETURN_NOTIMPLEMENTED;
    }
    Context *c = array_context();
    return c ? apply(*c, op, in.operands, 2, {}) : nullptr;
}

PyObject *inplace_slot(const Operation &op, PyObject *a, PyObject *b) {
    if (!is_array(a) || as_array_object(a)->scalar) return binary_slot(op, a, b);
    Inputs in;
    for (PyObject *o : {a, b}) {
        const int understood = in.add(o);
        if (understood < 0) return nullptr;
        if (understood == 0) Py_RETURN_NOTIMPLEMENTED;
    }
    Context *c = array_context();
    PyObject *done = c ? apply(*c, op, in.operands, 2, {as_array_object(a)->root, as_array_object(a)->geom}) : nullptr;
    if (!done) return nullptr;
    Py_DECREF(done);
    return Py_NewRef(a);
}

PyObject *unary_slot(const Operation &op, PyObject *a) {
    Inputs in;
    if (in.add(a) < 0) return nullptr;
    Context *c = array_context();
    return c ? apply(*c, op, in.operands, 1, {}) : nullptr;
}

// ---- functions ----
namespace {

struct UfuncObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    const Operation *op;
};

PyObject *call_ufunc(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    const Operation &op = *reinterpret_cast<UfuncObject *>(self)->op;
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyObject *out = nullptr;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k), *value = args[n + k];
        if (PyUnicode_CompareWithASCIIString(name, "out") == 0) {
            if (value == Py_None) continue;
            if (is_array(value) && !as_array_object(value)->scalar) {
                out = value;
                continue;
            }
            return PyErr_Format(PyExc_TypeError, "bn.%s: out must be a bn array", op.name.c_str());
        }
        return PyErr_Format(PyExc_NotImplementedError, "bn.%s takes out, but not '%U'", op.name.c_str(), name);
    }
    if (n == op.nin + 1 && !out && is_array(args[op.nin])) out = args[op.nin];
    else if (n != op.nin)
        return PyErr_Format(PyExc_TypeError, "bn.%s takes %d arguments, got %zd", op.name.c_str(), op.nin, n);
    Inputs in;
    for (int k = 0; k < op.nin; ++k) {
        const int understood = in.add(args[k]);
        if (understood < 0) return nullptr;
        if (understood == 0)
            return PyErr_Format(PyExc_TypeError, "bn.%s: cannot use an argument of type %s", op.name.c_str(), Py_TYPE(args[k])->tp_name);
    }
    bool any = out != nullptr;
    for (int k = 0; k < in.n; ++k) any |= in.operands[k].geom != nullptr;
    if (!any) return op.ufunc ? PyObject_Vectorcall(op.ufunc, args, op.nin, nullptr)  // plain scalars: nothing to launch
                              : PyErr_Format(PyExc_TypeError, "bn.%s needs at least one array", op.name.c_str());
    Context *c = array_context();
    if (!c) return nullptr;
    if (!out) return apply(*c, op, in.operands, in.n, {});
    PyObject *done = apply(*c, op, in.operands, in.n, {as_array_object(out)->root, as_array_object(out)->geom});
    if (!done) return nullptr;
    Py_DECREF(done);
    return Py_NewRef(out);
}

void ufunc_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}
PyObject *ufunc_repr(PyObject *self) {
    return PyUnicode_FromFormat("<bn.%s>", reinterpret_cast<UfuncObject *>(self)->op->name.c_str());
}
PyObject *ufunc_name(PyObject *self, void *) { return PyUnicode_FromString(reinterpret_cast<UfuncObject *>(self)->op->name.c_str()); }
PyObject *ufunc_doc(PyObject *self, void *) {
    const Operation *op = reinterpret_cast<UfuncObject *>(self)->op;
    return op->ufunc ? PyObject_GetAttrString(op->ufunc, "__doc__") : Py_NewRef(Py_None);
}
PyGetSetDef ufunc_getset[] = {{"__name__", ufunc_name, nullptr, nullptr, nullptr},
                              {"__doc__", ufunc_doc, nullptr, nullptr, nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef ufunc_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(UfuncObject, vectorcall), READONLY, nullptr},
                               {nullptr, 0, 0, 0, nullptr}};
PyType_Slot ufunc_slots[] = {{Py_tp_dealloc, (void *)ufunc_dealloc},
                             {Py_tp_call, (void *)PyVectorcall_Call},
                             {Py_tp_repr, (void *)ufunc_repr},
                             {Py_tp_getset, ufunc_getset},
                             {Py_tp_members, ufunc_members},
                             {0, nullptr}};

}  // namespace

PyType_Spec ufunc_spec = {"burnish.runtime.array.ufunc", sizeof(UfuncObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, ufunc_slots};

PyObject *make_ufunc(const Operation *op) {
    auto *o = reinterpret_cast<UfuncObject *>(array_types().ufunc->tp_alloc(array_types().ufunc, 0));
    if (!o) return nullptr;
    o->vectorcall = call_ufunc;
    o->op = op;
    return reinterpret_cast<PyObject *>(o);
}

}  // namespace burnish::array
