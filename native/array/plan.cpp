#include "plan.hpp"

#include <map>
#include <numeric>

#include "runtime/pytypes.hpp"

namespace burnish::array {

namespace {

void run_plan(NativeCall *call) {
    reinterpret_cast<const Plan *>(call->scalars[0].i)->run(*call, call->point < 0 ? 0 : call->point);
}

// One task per operation name and privileges.
runtime::TaskDef *native_task(const std::string &name, const std::vector<ArrayArg> &args) {
    static std::map<std::string, runtime::TaskDef *> known;
    std::string key = name;
    for (const auto &a : args) key.append(" ").append(std::to_string(static_cast<int>(a.privilege)));
    runtime::TaskDef *&task = known[key];
    if (task) return task;
    task = new runtime::TaskDef;
    task->id = static_cast<uint32_t>(runtime::task_registry().size() + 1);
    task->name = "bn." + name;
    task->body = runtime::BodyKind::Native;
    task->native = run_plan;
    for (size_t i = 0; i < args.size(); ++i) {
        runtime::Param p;
        p.name = "a" + std::to_string(i);
        p.kind = runtime::ParamKind::Region;
        p.declared.push_back({{}, args[i].privilege, -1});
        task->region_params.push_back(static_cast<uint16_t>(i));
        task->params.push_back(std::move(p));
        task->resolved.push_back(std::make_unique<runtime::ResolvedTable>());
    }
    runtime::task_registry().push_back(task);
    return task;
}

struct KeyHash {
    size_t operator()(const PlanKey &k) const {
        uint64_t h = 0;
        for (size_t i = 0; i < k.words.size(); i += 2)
            h = (h ^ (uint64_t{k.words[i]} << 32 | k.words[i + 1])) * 0x9E3779B97F4A7C15ull, h ^= h >> 29;
        return h;
    }
};
std::unordered_map<PlanKey, std::unique_ptr<Plan>, KeyHash> &table() {
    static std::unordered_map<PlanKey, std::unique_ptr<Plan>, KeyHash> plans;
    return plans;
}

}  // namespace

const Plan *find_plan(const PlanKey &key) {
    auto it = table().find(key);
    return it == table().end() ? nullptr : it->second.get();
}

const Plan *store_plan(const PlanKey &key, std::unique_ptr<Plan> plan) {
    return (table()[key] = std::move(plan)).get();
}

void Plan::prepare(const std::string &name, const std::vector<ArrayArg> &args, std::vector<int> rects) {
    static uint64_t serial = 0;
    task_ = native_task(name, args);
    op_.n_args = static_cast<uint16_t>(args.size());
    for (size_t i = 0; i < args.size(); ++i) op_.requirements.push_back({static_cast<uint16_t>(i), args[i].privilege, -1, 1});
    rects_ = std::move(rects);
    points_ = static_cast<int>(rects_.size() / args.size());
    const uint64_t h = tracing::combine(task_->id, ++serial);
    signature_ = {h, tracing::mix(h ^ 0x5bd1e995u)};
}

bool Plan::resolve(ArrayRoot *const *roots) const {
    for (uint16_t a = 0; a < op_.n_args; ++a)
        if (!runtime::resolve(task_, a, roots[a]->root)) return false;
    return resolved_ = true;
}

bool Plan::launch(Context &c, uint32_t site, ArrayRoot *const *roots, const Scalar *words, uint32_t n_words) const {
    if (!resolved_ && !resolve(roots)) return false;
    runtime::Launch *l = c.new_launch(task_, 1 + n_words);
    l->site = site;
    l->scalars[0].i = reinterpret_cast<int64_t>(this);
    std::copy_n(words, n_words, l->scalars + 1);
    RegionNode *inline_nodes[runtime::kInlineArgs];
    RegionNode **nodes = inline_nodes;
    const int n = op_.n_args;
    if (points_ > 1 || n > runtime::kInlineArgs) {
        l->owned_nodes.reset(new RegionNode *[static_cast<size_t>(points_) * n]);
        nodes = l->owned_nodes.get();
    }
    const int *rect = rects_.data();
    RegionNode **node = nodes;
    for (int p = 0; p < points_; ++p)
        for (int a = 0; a < n; ++a) *node++ = roots[a]->node(*rect++);
    uint32_t operands[kMaxOperands];
    uint64_t flat = signature_.hi;
    for (int a = 0; a < n; ++a) {
        operands[a] = roots[a]->root->logical_id;
        flat = flat * 0x9E3779B97F4A7C15ull + operands[a];
    }
    return runtime::launch_native(&c, l, &op_, nodes, points_, signature_, {flat, tracing::mix(flat)},
                                  {operands, static_cast<size_t>(n)}, nullptr);
}

Cuts cut(std::span<const int64_t> shape, int workers) {
    int64_t size = 1;
    for (int64_t n : shape) size *= n;
    Cuts cuts;
    const auto first = std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n != 1; });
    const int64_t length = first == shape.end() ? 1 : *first;
    if (first != shape.end()) cuts.axis = static_cast<int>(first - shape.begin());
    cuts.at = {0};
    if (size > kChunkedAbove) {
        const int64_t row = size / length;
        int64_t tile = 64 / std::gcd(int64_t{64}, row);  // loops see whole groups of elements
        tile *= std::max<int64_t>(1, 2048 / (tile * row));
        const int64_t tiles = (length + tile - 1) / tile, pieces = std::min<int64_t>(workers, tiles);
        for (int64_t p = 1; p < pieces; ++p) cuts.at.push_back(p * tiles / pieces * tile);
    }
    cuts.at.push_back(length);
    return cuts;
}

}  // namespace burnish::array
