// SPDX-License-Identifier: Apache-2.0
// Lets single nodes join and leave the domains of levels that are labels.
#pragma once

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace gpusched::detail {

/// Keeps, per label level, which values there are and how many nodes have each. A value that its last node leaves is gone, and
/// its number is given away again.
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

    /// Makes the label key, which is none yet, a level.
    /// @param labels_of gives the labels of a node that there is
    template <class LabelsOf>
    void add(const std::string& key, LabelsOf&& labels_of) {
        out_.label_levels.push_back({key, {}, {}});
        levels_.emplace_back();
        auto& level = out_.label_levels.back();
        level.domain_of.assign(out_.nodes.names.size(), none<DomainId>);
        for (const auto node : out_.living_nodes()) enter(level, levels_.back(), node, labels_of(node));
    }

    /// Puts the node, which belongs to no domain, into those of its labels.
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
            level.values[id].clear();
            here.free.push_back(id);
        }
    }

  private:
    struct Values {
        std::map<std::string, std::uint32_t> ids;
        std::vector<std::uint32_t> nodes;  // by domain
        std::deque<std::uint32_t> free;
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
        auto id = static_cast<std::uint32_t>(here.nodes.size());
        if (here.free.empty()) {
            level.values.push_back(value);
            here.nodes.push_back(1);
        } else {
            id = here.free.front();
            here.free.pop_front();
            level.values[id] = value;
            here.nodes[id] = 1;
        }
        here.ids.emplace(value, id);
        return id;
    }

    Inventory& out_;
    std::vector<Values> levels_;
};

}  // namespace gpusched::detail
