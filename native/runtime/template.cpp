#include "template.hpp"

#include <algorithm>
#include <unordered_map>

#include "context.hpp"

namespace burnish::runtime {

namespace {

// The rules of Context::require on rows instead of records.
class Recorder {
   public:
    Recorder(std::span<const LoggedOp *const> ops, void (*refresh)(void *, RegionNode *), void *context)
        : ops_(ops), refresh_(refresh), context_(context), made_(std::make_shared<Template>()) {}

    std::shared_ptr<Template> run() {
        for (int pass = 0; pass < 2; ++pass)  // a node of a pooled root's earlier use may cut atoms of others
            for (const LoggedOp *op : ops_) {
                if (op->separator) return nullptr;
                for (int64_t i = 0; i < op->points * op->plan->n_args; ++i) refresh_(context_, op->nodes()[i]);
            }
        for (const LoggedOp *op : ops_) record(*op);
        finish();
        return made_;
    }

   private:
    struct Piece {  // state of some fields of one atom inside the trace
        uint64_t mask;
        uint32_t writer = kNoRow;
        std::vector<uint32_t> readers;
        int op = -1;
        std::vector<std::pair<uint32_t, uint32_t>> reducers;
        bool touched = false;
    };
    struct AtomKey {
        uint32_t param;
        Atom *atom;
        bool operator==(const AtomKey &) const = default;
    };
    struct AtomKeyHash {
        size_t operator()(const AtomKey &k) const {
            return tracing::combine(k.param, reinterpret_cast<uintptr_t>(k.atom));
        }
    };
    struct AtomState {
        uint32_t param, atom;
        std::vector<Piece> pieces;
    };

    // A pooled root that was used again is another parameter.
    uint32_t param_of(Root *root, uint32_t logical) {
        auto [it, fresh] = params_.try_emplace(logical, static_cast<uint32_t>(made_->param_structures.size()));
        if (fresh) {
            made_->param_structures.push_back(root->structure());
            uint32_t k = 0;
            for (const auto &atom : root->ordered_atoms()) ordinals_[atom.get()] = k++;
        }
        return it->second;
    }

    AtomState &state_of(RegionNode *node, uint32_t param, const AtomRef &atom) {
        const AtomKey key{param, atom.get()};
        auto [it, fresh] = states_.try_emplace(key);
        if (fresh) {
            it->second.param = param;
            it->second.atom = ordinals_.at(atom.get());
            it->second.pieces.push_back({node->root->full_mask, kNoRow, {}, -1, {}, false});
            order_.push_back(key);
        }
        return it->second;
    }

    // Pieces of an atom within `mask`, cut to fit.
    template <class F>
    void for_pieces(AtomState &state, uint64_t mask, F &&visit) {
        for (size_t i = 0, n = state.pieces.size(); i < n; ++i) {
            uint64_t common = state.pieces[i].mask & mask;
            if (!common) continue;
            if (common != state.pieces[i].mask) {
                Piece rest = state.pieces[i];
                rest.mask &= ~mask;
                state.pieces[i].mask = common;
                state.pieces.push_back(std::move(rest));
            }
            visit(state.pieces[i]);
        }
    }

    void start_row(int32_t point) {
        made_->row_point.push_back(point);
        made_->pred_begin.push_back(static_cast<uint32_t>(made_->preds.size()));
        made_->entry_begin.push_back(static_cast<uint32_t>(made_->entries.size()));
        made_->buffer_begin.push_back(made_->n_buffers);
        row_ = made_->rows() - 1;
        row_preds_.clear();
    }

    void pred(uint32_t row, bool data) {
        if (row != row_) row_preds_.push_back(row * 2 + data);
    }

    // Duplicates go; an order edge beside a data edge goes.
    void end_row() {
        std::sort(row_preds_.begin(), row_preds_.end(), std::greater<>());
        uint32_t last = kNoRow;
        for (uint32_t p : row_preds_) {
            ++made_->edges_before_reduction;
            if (p / 2 == last) continue;
            last = p / 2;
            made_->preds.push_back(p);
        }
    }

    void entry(const AtomState &s, uint64_t mask, Privilege p) { made_->entries.push_back({{s.param, s.atom, mask}, p}); }

    void record(const LoggedOp &op) {
        TemplateSlot slot{op.task, made_->rows(), 0, static_cast<uint32_t>(made_->params.size()), op.plan->n_args, op.points};
        for (uint16_t a = 0; a < op.plan->n_args; ++a)
            made_->params.push_back(op.points ? param_of(op.nodes()[a]->root, op.operand(a)) : 0);
        const uint32_t *params = made_->params.data() + slot.first_param;
        for (int64_t i = 0; i < op.points; ++i) {
            RegionNode *const *nodes = op.nodes() + i * op.plan->n_args;
            for (const auto &q : op.plan->requirements) fold_open(nodes[q.arg], params[q.arg], privilege_of(op, q), q.op, q.mask);
            start_row(static_cast<int32_t>(i));
            for (const auto &q : op.plan->requirements) use(nodes[q.arg], params[q.arg], privilege_of(op, q), q.op, q.mask);
            end_row();
        }
        slot.end_row = made_->rows();
        made_->slots.push_back(slot);
    }

    static Privilege privilege_of(const LoggedOp &op, const Requirement &q) {
        return op.predicated && q.privilege == Privilege::Write ? Privilege::ReadWrite : q.privilege;
    }

    static bool alike(const Piece &a, const Piece &b) {
        return a.writer != kNoRow && a.writer == b.writer && a.op == b.op && a.readers == b.readers &&
               std::equal(a.reducers.begin(), a.reducers.end(), b.reducers.begin(), b.reducers.end(),
                          [](const auto &x, const auto &y) { return x.first == y.first; });
    }

    // As Context::fold_open: one fold for pieces with the same users.
    void fold_open(RegionNode *node, uint32_t param, Privilege privilege, int op, uint64_t mask) {
        std::vector<std::pair<AtomState *, size_t>> closing;
        for (const auto &atom : node->atoms) {
            auto it = states_.find({param, atom.get()});
            if (it == states_.end()) continue;
            AtomState &state = it->second;
            for_pieces(state, mask, [](Piece &) {});
            for (size_t i = 0; i < state.pieces.size(); ++i) {
                Piece &piece = state.pieces[i];
                if (!(piece.mask & mask) || piece.op < 0) continue;
                if (privilege == Privilege::Reduce && piece.op == op) continue;
                if (privilege == Privilege::Write) {
                    piece.reducers.clear();
                    piece.op = -1;
                } else {
                    closing.emplace_back(&state, i);
                }
            }
        }
        const auto piece = [&](size_t k) -> Piece & { return closing[k].first->pieces[closing[k].second]; };
        for (size_t first = 0; first < closing.size();) {
            size_t end = first + 1, stop = std::min(closing.size(), first + 64);
            for (size_t i = end; i < stop; ++i)
                if (alike(piece(first), piece(i))) std::swap(closing[end++], closing[i]);
            close(std::span(closing).subspan(first, end - first));
            first = end;
        }
    }

    void close(std::span<const std::pair<AtomState *, size_t>> group) {
        FoldSpec fold;
        start_row(-1 - static_cast<int32_t>(made_->folds.size()));
        for (auto [state, i] : group) {
            Piece &piece = state->pieces[i];
            FoldSpec::Part part{{state->param, state->atom, piece.mask}, piece.op, {}};
            for (auto &r : piece.reducers) part.buffers.push_back(r.second);
            fold.needs_gil |= !reduce_ops()[piece.op].builtin;
            fold.parts.push_back(std::move(part));
            if (piece.writer != kNoRow) pred(piece.writer, true);
            else entry(*state, piece.mask, Privilege::ReadWrite);
            for (uint32_t r : piece.readers) pred(r, false);
            for (auto &r : piece.reducers) pred(r.first, true);
            piece.writer = row_;
            piece.readers.clear();
            piece.reducers.clear();
            piece.op = -1;
            piece.touched = true;
        }
        made_->folds.push_back(std::move(fold));
        end_row();
    }

    void use(RegionNode *node, uint32_t param, Privilege privilege, int op, uint64_t mask) {
        uint32_t buffer = privilege == Privilege::Reduce ? made_->n_buffers++ : 0;
        for (const auto &atom : node->atoms) {
            AtomState &state = state_of(node, param, atom);
            for_pieces(state, mask, [&](Piece &piece) {
                piece.touched = true;
                bool inside = piece.writer != kNoRow;
                switch (privilege) {
                    case Privilege::Read:
                        if (inside) pred(piece.writer, true);
                        else entry(state, piece.mask, privilege);
                        piece.readers.push_back(row_);
                        break;
                    case Privilege::Write:
                    case Privilege::ReadWrite: {
                        bool data = privilege == Privilege::ReadWrite;
                        if (!inside) entry(state, piece.mask, privilege);
                        else if (piece.readers.empty() || data) pred(piece.writer, data);
                        for (uint32_t r : piece.readers) pred(r, false);
                        piece.writer = row_;
                        piece.readers.clear();
                        break;
                    }
                    case Privilege::Reduce:
                        if (!inside) entry(state, piece.mask, privilege);
                        piece.op = op;
                        piece.reducers.emplace_back(row_, buffer);
                        break;
                    case Privilege::None: break;
                }
            });
        }
    }

    void finish() {
        Template &t = *made_;
        uint32_t n = t.rows();
        t.pred_begin.push_back(static_cast<uint32_t>(t.preds.size()));
        t.entry_begin.push_back(static_cast<uint32_t>(t.entries.size()));
        t.buffer_begin.push_back(t.n_buffers);
        t.succ_begin.assign(n + 1, 0);
        for (uint32_t p : t.preds) ++t.succ_begin[p / 2 + 1];
        for (uint32_t r = 0; r < n; ++r) t.succ_begin[r + 1] += t.succ_begin[r];
        t.succs.resize(t.preds.size());
        std::vector<uint32_t> at(t.succ_begin.begin(), t.succ_begin.end() - 1);
        for (uint32_t r = 0; r < n; ++r)
            for (uint32_t i = t.pred_begin[r]; i < t.pred_begin[r + 1]; ++i)
                t.succs[at[t.preds[i] / 2]++] = r * 2 + (t.preds[i] & 1);
        for (const AtomKey &key : order_) {
            AtomState &state = states_.at(key);
            for (Piece &p : state.pieces)
                if (p.touched)
                    t.exits.push_back({{state.param, state.atom, p.mask}, p.writer, std::move(p.readers), p.op, std::move(p.reducers)});
        }
    }

    std::span<const LoggedOp *const> ops_;
    void (*refresh_)(void *, RegionNode *);
    void *context_;
    std::shared_ptr<Template> made_;
    std::unordered_map<uint32_t, uint32_t> params_;  // by logical root
    std::unordered_map<Atom *, uint32_t> ordinals_;
    std::unordered_map<AtomKey, AtomState, AtomKeyHash> states_;
    std::vector<AtomKey> order_;
    std::vector<uint32_t> row_preds_;
    uint32_t row_ = 0;
};

}  // namespace

std::shared_ptr<Template> capture(std::span<const LoggedOp *const> ops, void (*refresh)(void *, RegionNode *),
                                  void *context) {
    return Recorder(ops, refresh, context).run();
}

size_t Template::bytes() const {
    size_t n = sizeof(Template) + slots.size() * sizeof(TemplateSlot) + params.size() * 4 + param_structures.size() * 8;
    n += row_point.size() * 4 + (pred_begin.size() + preds.size() + succ_begin.size() + succs.size()) * 4;
    n += entries.size() * sizeof(EntryUse) + entry_begin.size() * 4 + buffer_begin.size() * 4;
    for (const auto &e : exits) n += sizeof(ExitState) + e.readers.size() * 4 + e.reducers.size() * 8;
    for (const auto &f : folds)
        for (const auto &p : f.parts) n += sizeof(FoldSpec::Part) + p.buffers.size() * 4;
    return n;
}

}  // namespace burnish::runtime
