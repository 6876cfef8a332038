// SPDX-License-Identifier: Apache-2.0
// The domains of network levels and of label levels, as single nodes join and leave them.
#pragma once

#include "model/check_specs.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gpusched::detail {

/// The domains of one level by number. A domain disappears with its last node, and its number is reused, the
/// oldest first.
struct NumberedDomains {
    std::vector<std::uint32_t> nodes;  // by domain
    std::deque<std::uint32_t> free;

    /// A new domain with one node.
    std::uint32_t open(std::vector<std::string>& names, const std::string& name) {
        if (free.empty()) {
            names.push_back(name);
            nodes.push_back(1);
            return static_cast<std::uint32_t>(names.size() - 1);
        }
        const auto id = free.front();
        free.pop_front();
        names[id] = name;
        nodes[id] = 1;
        return id;
    }

    void close(std::vector<std::string>& names, std::uint32_t id) {
        names[id].clear();
        free.push_back(id);
    }
};

/// The domains of each network level, with their parents and their numbers of nodes.
class DomainEditor {
  public:
    /// Takes over the domains of `inventory`.
    explicit DomainEditor(Inventory& inventory) : out_(inventory), levels_(out_.domain_of_.size()) {
        const auto nodes = out_.nodes.names.size();
        for (std::size_t l = 0; l < levels_.size(); ++l)
            levels_[l].nodes.assign(out_.domain_names_[l].size(), 0);
        depths_.assign(levels_.size() + 1, 0);
        for (std::size_t n = 0; n < nodes; ++n) {
            if (out_.nodes.names[n].empty()) continue;
            const auto depth = static_cast<std::size_t>(out_.network_depth_[n]);
            ++depths_[depth];
            std::uint32_t above = 0;
            for (std::size_t l = 0; l < levels_.size(); ++l) {
                const auto id = static_cast<std::uint32_t>(out_.domain_of_[l][n]);
                if (levels_[l].nodes[id]++ == 0 && l < depth)
                    add_name(l, out_.domain_names_[l][id], id, above);
                above = id;
            }
        }
        for (auto& level : levels_)
            for (std::uint32_t id = 0; id < level.nodes.size(); ++id)
                if (level.nodes[id] == 0) level.free.push_back(id);
    }

    /// Returns whether this is the current path of the node.
    [[nodiscard]] bool is_on(NodeId node, const std::vector<std::string>& path) const {
        const auto n = index(node);
        if (static_cast<std::size_t>(out_.network_depth_[n]) != path.size()) return false;
        for (std::size_t l = 0; l < path.size(); ++l)
            if (out_.domain_names_[l][static_cast<std::uint32_t>(out_.domain_of_[l][n])] != path[l])
                return false;
        return true;
    }

    /// Reports contradictions between the path and the paths of the other nodes.
    /// @param self the node that has the path; `none<NodeId>` for a new one
    void check(const NodeSpec& node, NodeId self, Problems& problems) const {
        if (self != none<NodeId> && is_on(self, node.network)) return;  // the path is unchanged
        const Owner owner("node", node.name);
        std::optional<std::uint32_t> above = 0;
        for (std::size_t l = 0; l < node.network.size(); ++l) {
            const auto& name = node.network[l];
            const auto appears_at = [&](std::size_t other) {
                problems.add(concat(owner, ": inconsistent topology: domain ", gpusched::quoted(name),
                                    " appears at levels ", other, " and ", l));
            };
            for (std::size_t other = 0; other < levels_.size(); ++other)
                if (other != l && find(other, name, self)) appears_at(other);
            for (std::size_t other = 0; other < l; ++other)
                if (node.network[other] == name) appears_at(other);
            const auto id = find(l, name, self);
            if (id && l > 0 && above != levels_[l].parent[*id])
                problems.add(owner + ": inconsistent topology: domain " + gpusched::quoted(name) +
                             " lies under " +
                             gpusched::quoted(out_.domain_names_[l - 1][levels_[l].parent[*id]]) +
                             " and under " + gpusched::quoted(node.network[l - 1]));
            above = id;
        }
    }

    /// Adds levels until there are `count`; true if one was added, which takes O(nodes).
    bool reach(std::size_t count) {
        if (count <= levels_.size()) return false;
        for (std::size_t l = levels_.size(); l < count; ++l) {
            levels_.emplace_back();
            depths_.push_back(0);
            out_.domain_of_.emplace_back(out_.nodes.names.size(), none<DomainId>);
            out_.domain_names_.emplace_back();
            for (std::size_t n = 0; n < out_.nodes.names.size(); ++n)
                if (!out_.nodes.names[n].empty())
                    out_.domain_of_[l][n] = make_id<DomainId>(open(l, out_.nodes.names[n]));
        }
        return true;
    }

    /// Adds the node, which belongs to no domain, to the domains of a valid path.
    void attach(NodeId node, const std::vector<std::string>& path) {
        const auto n = index(node);
        reach(path.size());
        if (out_.network_depth_.size() <= n) out_.network_depth_.resize(n + 1);
        std::uint32_t above = 0;
        for (std::size_t l = 0; l < levels_.size(); ++l) {
            auto& domain_of = out_.domain_of_[l];
            if (domain_of.size() <= n) domain_of.resize(n + 1, none<DomainId>);
            std::uint32_t id = 0;
            if (l >= path.size()) {
                id = open(l, out_.nodes.names[n]);
            } else if (const auto found = levels_[l].ids.find(path[l]); found != levels_[l].ids.end()) {
                id = found->second;
                ++levels_[l].nodes[id];
            } else {
                id = open(l, path[l]);
                add_name(l, path[l], id, above);
            }
            domain_of[n] = make_id<DomainId>(id);
            above = id;
        }
        out_.network_depth_[n] = static_cast<std::int8_t>(path.size());
        ++depths_[path.size()];
        find_deepest();
    }

    /// Removes the node from its domains.
    void detach(NodeId node) {
        const auto n = index(node);
        const auto depth = static_cast<std::size_t>(out_.network_depth_[n]);
        for (std::size_t l = 0; l < levels_.size(); ++l) {
            auto& level = levels_[l];
            const auto id = static_cast<std::uint32_t>(out_.domain_of_[l][n]);
            out_.domain_of_[l][n] = none<DomainId>;
            if (--level.nodes[id] > 0) continue;
            if (l < depth) level.ids.erase(out_.domain_names_[l][id]);
            level.close(out_.domain_names_[l], id);
        }
        --depths_[depth];
        find_deepest();
    }

  private:
    struct LevelDomains : NumberedDomains {
        std::map<std::string, std::uint32_t, std::less<>>
            ids;                            // without the domains of nodes of unknown position
        std::vector<std::uint32_t> parent;  // by domain
    };

    // The domain of that name, if it has a node other than `self`.
    [[nodiscard]] std::optional<std::uint32_t> find(std::size_t level, const std::string& name,
                                                    NodeId self) const {
        if (level >= levels_.size()) return std::nullopt;
        const auto found = levels_[level].ids.find(name);
        if (found == levels_[level].ids.end()) return std::nullopt;
        const bool only_self = self != none<NodeId> && levels_[level].nodes[found->second] == 1 &&
                               out_.domain_of_[level][index(self)] == make_id<DomainId>(found->second);
        return only_self ? std::nullopt : std::optional(found->second);
    }

    void add_name(std::size_t level, const std::string& name, std::uint32_t id, std::uint32_t parent) {
        auto& here = levels_[level];
        here.ids.emplace(name, id);
        if (here.parent.size() <= id) here.parent.resize(id + 1);
        here.parent[id] = parent;
    }

    std::uint32_t open(std::size_t level, const std::string& name) {
        return levels_[level].open(out_.domain_names_[level], name);
    }

    void find_deepest() {
        out_.network_levels_ = 0;
        for (std::size_t depth = 0; depth < depths_.size(); ++depth)
            if (depths_[depth] > 0) out_.network_levels_ = static_cast<int>(depth);
    }

    Inventory& out_;
    std::vector<LevelDomains> levels_;
    std::vector<std::uint32_t> depths_;  // number of nodes by length of path
};

/// The values of each label level, with their numbers of nodes.
class LabelDomains {
  public:
    /// Takes over the levels of `inventory`.
    explicit LabelDomains(Inventory& inventory) : out_(inventory), levels_(out_.label_levels.size()) {
        for (std::size_t k = 0; k < levels_.size(); ++k) {
            auto& here = levels_[k];
            const auto& level = out_.label_levels[k];
            here.nodes.assign(level.values.size(), 0);
            for (std::size_t n = 0; n < level.domain_of.size(); ++n)
                if (level.domain_of[n] != none<DomainId>) ++here.nodes[index(level.domain_of[n])];
            for (std::uint32_t id = 0; id < here.nodes.size(); ++id)
                if (here.nodes[id] > 0)
                    here.ids.emplace(level.values[id], id);
                else
                    here.free.push_back(id);
        }
    }

    /// Makes a label key a level.
    /// @param labels_of returns the labels of a node
    template <class LabelsOf>
    void add(const std::string& key, LabelsOf&& labels_of) {
        out_.label_levels.push_back({key, {}, {}});
        levels_.emplace_back();
        auto& level = out_.label_levels.back();
        level.domain_of.assign(out_.nodes.names.size(), none<DomainId>);
        for (const auto node : out_.living_nodes()) enter(level, levels_.back(), node, labels_of(node));
    }

    /// Adds the node, which belongs to no domain, to the domains of its labels.
    void attach(NodeId node, const Labels& labels) {
        for (std::size_t k = 0; k < levels_.size(); ++k) {
            auto& level = out_.label_levels[k];
            if (level.domain_of.size() <= index(node))
                level.domain_of.resize(index(node) + 1, none<DomainId>);
            enter(level, levels_[k], node, labels);
        }
    }

    void detach(NodeId node) {
        for (std::size_t k = 0; k < levels_.size(); ++k) {
            auto& level = out_.label_levels[k];
            auto& here = levels_[k];
            const auto domain = level.domain_of[index(node)];
            if (domain == none<DomainId>) continue;
            level.domain_of[index(node)] = none<DomainId>;
            const auto id = static_cast<std::uint32_t>(domain);
            if (--here.nodes[id] > 0) continue;
            here.ids.erase(level.values[id]);
            here.close(level.values, id);
        }
    }

  private:
    struct Values : NumberedDomains {
        std::map<std::string, std::uint32_t> ids;
    };

    static void enter(LabelLevel& level, Values& here, NodeId node, const Labels& labels) {
        if (const auto found = labels.find(level.key); found != labels.end())
            level.domain_of[index(node)] = make_id<DomainId>(enter(level, here, found->second));
    }

    static std::uint32_t enter(LabelLevel& level, Values& here, const std::string& value) {
        if (const auto found = here.ids.find(value); found != here.ids.end()) {
            ++here.nodes[found->second];
            return found->second;
        }
        const auto id = here.open(level.values, value);
        here.ids.emplace(value, id);
        return id;
    }

    Inventory& out_;
    std::vector<Values> levels_;
};

}  // namespace gpusched::detail
