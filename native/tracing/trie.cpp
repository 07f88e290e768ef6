#include "tracing/trie.hpp"

#include <algorithm>

namespace burnish::tracing {

std::vector<uint32_t> NormalForm::parameters() const {
    std::vector<uint32_t> number(distances.size());
    uint32_t next = 0;
    for (size_t i = 0; i < distances.size(); ++i) number[i] = distances[i] ? number[i - distances[i]] : next++;
    return number;
}

NormalForm NormalForm::slice(uint32_t first, uint32_t length) const {
    NormalForm part;
    for (uint32_t k = first; k < first + length; ++k) {
        for (uint32_t i = offsets[k]; i < offsets[k + 1]; ++i)
            part.distances.push_back(distances[i] <= i - offsets[first] ? distances[i] : 0);
        part.push(signatures[k]);
    }
    return part;
}

void Trie::clear() {
    nodes_.assign(1, Node{});
    pool_.clear();
    groups_.assign(1, {});
    starts_.assign(64, kNone);
    start_count_ = 0;
}

bool Trie::same(const Node &node, const NormalForm &form, uint32_t k) const {
    const uint32_t begin = form.offsets[k], arity = form.offsets[k + 1] - begin;
    return node.signature == form.signatures[k] && node.arity == arity &&
           std::equal(pool_.begin() + node.distances, pool_.begin() + node.distances + arity, form.distances.begin() + begin);
}

uint32_t Trie::find_child(uint32_t node, const NormalForm &form, uint32_t k) const {
    for (uint32_t c = nodes_[node].child; c != kNone; c = nodes_[c].sibling)
        if (same(nodes_[c], form, k)) return c;
    return kNone;
}

uint32_t Trie::append(uint32_t parent, const NormalForm &form, uint32_t k, uint32_t group) {
    const auto n = static_cast<uint32_t>(nodes_.size());
    Node node;
    node.signature = form.signatures[k];
    node.distances = static_cast<uint32_t>(pool_.size());
    node.arity = form.offsets[k + 1] - form.offsets[k];
    node.depth = k + 1;
    node.group = group;
    pool_.insert(pool_.end(), form.distances.begin() + form.offsets[k], form.distances.begin() + form.offsets[k + 1]);
    nodes_.push_back(node);
    if (parent == kRoot) {
        link_start(n);
    } else {
        nodes_[n].sibling = nodes_[parent].child;
        nodes_[parent].child = n;
    }
    return n;
}

// Children of the root with equal signatures are neighbours in the sibling list, reached through the hash table.
void Trie::link_start(uint32_t n) {
    const uint32_t other = first(nodes_[n].signature);
    if (other != kNone) {
        nodes_[n].sibling = nodes_[other].sibling;
        nodes_[other].sibling = n;
        return;
    }
    nodes_[n].sibling = nodes_[kRoot].child;
    nodes_[kRoot].child = n;
    if (2 * ++start_count_ > starts_.size()) starts_.assign(2 * starts_.size(), kNone);
    for (uint32_t c = nodes_[kRoot].child; c != kNone; c = nodes_[c].sibling) {
        size_t h = hash_of(nodes_[c].signature) & (starts_.size() - 1);
        while (starts_[h] != kNone && nodes_[starts_[h]].signature != nodes_[c].signature) h = (h + 1) & (starts_.size() - 1);
        if (starts_[h] == kNone) starts_[h] = c;
    }
}

// Nodes with the same candidates below form unary runs that share one group. A path covers each of its runs
// completely, except perhaps the last one, which is then split.
void Trie::add_to_path(const std::vector<uint32_t> &path, uint32_t candidate) {
    for (size_t i = 0; i < path.size();) {
        size_t j = i;
        while (j < path.size() && nodes_[path[j]].group == nodes_[path[i]].group) ++j;
        const uint32_t child = nodes_[path[j - 1]].child, group = nodes_[path[i]].group;
        const bool split = j == path.size() && child != kNone && nodes_[child].group == group;
        if (split) {
            groups_.push_back(groups_[group]);
            for (size_t k = i; k < j; ++k) nodes_[path[k]].group = static_cast<uint32_t>(groups_.size() - 1);
        }
        groups_[nodes_[path[i]].group].push_back(candidate);
        i = j;
    }
}

uint32_t Trie::insert(const NormalForm &form, uint32_t candidate) {
    std::vector<uint32_t> path;
    uint32_t node = kRoot, k = 0;
    for (; k < form.length(); ++k) {
        const uint32_t c = find_child(node, form, k);
        if (c == kNone) break;
        path.push_back(node = c);
    }
    if (k == form.length() && nodes_[node].ends != kNone) return nodes_[node].ends;
    add_to_path(path, candidate);
    if (k < form.length()) {
        const auto group = static_cast<uint32_t>(groups_.size());
        groups_.push_back({candidate});
        for (; k < form.length(); ++k) node = append(node, form, k, group);
    }
    return nodes_[node].ends = candidate;
}

}  // namespace burnish::tracing
