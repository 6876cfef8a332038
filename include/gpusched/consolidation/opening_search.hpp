// SPDX-License-Identifier: Apache-2.0
// OpeningSearch: vacates nodes onto nodes that were empty before the plan, if that is worth the cost of
// opening them.
#pragma once

#include <gpusched/consolidation/chain_search.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/budget.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// Continues when nothing more can be vacated onto nodes in use. First each node is tried alone: a task
/// without another place opens an empty node. Then each empty node in turn is offered like those in use, as
/// many nodes as possible are vacated, and the result is kept if it is worth the cost of opening the node.
/// After the first failure of a kind of empty nodes, the kind is skipped.
template <class Policies>
class OpeningSearch {
  public:
    /// @param options price and open price of values
    OpeningSearch(Workspace& work, const Policies& policies, const Options& options, int depth,
                  Budget& budget, Statistics& stats)
        : work_(work), cluster_(work.cluster), policies_(policies), options_(options), depth_(depth),
          budget_(budget), stats_(stats), chains_(work, policies, depth, budget, stats) {}

    /// @param vacated by NodeId, as the joined chains leave it
    /// @return chains that continue from the current state
    std::vector<Vacated> run(std::span<const NodeId> group, std::span<const std::uint8_t> vacated) {
        work_.index.reset(cluster_, group, work_.scope);
        work_.forget_failures();
        const EmptyNodes empty(work_, group, policies_.node_weight);
        std::vector<Vacated> found;
        if (empty.empty()) return found;
        for (const auto node : group) {
            if (vacated[index(node)])
                work_.index.close(node);
            else if (work_.scope.may_vacate[index(node)])
                sources_.emplace_back(static_cast<std::int64_t>(policies_.node_order(cluster_, node)), node);
        }
        std::sort(sources_.begin(), sources_.end());
        chains_.offer(empty);
        try_alone(found);
        try_together(empty, found);
        return found;
    }

  private:
    static constexpr std::int64_t steps_per_node = 5000;

    void try_alone(std::vector<Vacated>& found) {
        std::erase_if(sources_, [&](const NodeKey& source) {
            if (budget_.exhausted() || !chains_.vacate(source.second, depth_)) return false;
            auto& moves = chains_.moves();
            if (!pays(moves.chains())) {
                moves.drop();
                work_.index.open(cluster_, source.second);
                return false;
            }
            found.push_back(moves.close());
            return true;
        });
    }

    void try_together(const EmptyNodes& empty, std::vector<Vacated>& found) {
        const auto last_step = steps() + steps_per_node * static_cast<std::int64_t>(sources_.size());
        for (const auto& alike : empty.kinds)
            for (const auto node : alike) {
                if (sources_.empty() || steps() > last_step || budget_.exhausted()) return;
                if (cluster_.occupants(node) == 0 && !vacate_onto(node, found)) break;
            }
    }
    // Opens the empty node and vacates other nodes onto it. Undoes both if the gain is less than the cost of
    // opening.
    bool vacate_onto(NodeId node, std::vector<Vacated>& found) {
        work_.on_trial = node;
        work_.index.open(cluster_, node);
        work_.forget_failures();
        std::vector<Vacated> made;
        ChainSet sum;
        for (const auto& [key, source] : sources_) {
            if (!chains_.vacate(source, depth_)) continue;
            made.push_back(chains_.moves().close());
            sum += made.back().chains;
        }
        work_.on_trial = none<NodeId>;
        sum.opening += chains_.moves().cost_of_opening(node);
        ++sum.opened;
        if (cluster_.occupants(node) > 0 && pays(sum)) {
            keep(std::move(made), sum, found);
            return true;
        }
        for (auto part = made.rbegin(); part != made.rend(); ++part) {
            work_.undo(part->steps);
            work_.index.open(cluster_, part->chains.node);
        }
        work_.index.close(node);
        return false;
    }

    // Returns whether the chains gain anything. With `clear` it suffices that nothing is lost.
    [[nodiscard]] bool pays(const ChainSet& chains) const {
        // Counts nodes instead of their cost: opening a node without weight costs nothing, but gains nothing.
        if (chains.opened <= 0) return true;
        const auto value = value_milli(chains.gain, chains.cost, options_.price);
        return options_.clear ? value >= chains.opening : value > chains.opening;
    }

    // All steps go with the first node: only together are they worth their cost.
    void keep(std::vector<Vacated> made, const ChainSet& sum, std::vector<Vacated>& found) {
        std::set<NodeId> nodes;
        auto& first = made.front();
        for (auto& part : made) {
            nodes.insert(part.chains.node);
            if (&part == &first) continue;
            first.steps.insert(first.steps.end(), part.steps.begin(), part.steps.end());
            part = {{.node = part.chains.node}, {}};
        }
        const auto node = first.chains.node;
        first.chains = sum;
        first.chains.node = node;
        std::move(made.begin(), made.end(), std::back_inserter(found));
        std::erase_if(sources_, [&](const NodeKey& source) { return nodes.contains(source.second); });
    }

    [[nodiscard]] std::int64_t steps() const { return stats_.eject_calls + stats_.destinations_scanned; }

    Workspace& work_;
    Cluster& cluster_;
    const Policies& policies_;
    const Options& options_;
    int depth_;
    Budget& budget_;
    Statistics& stats_;
    ChainSearch<Policies> chains_;
    std::vector<NodeKey> sources_;  // that may still be vacated
};

}  // namespace gpusched::consolidation::detail
