// SPDX-License-Identifier: Apache-2.0
// OpeningSearch: vacates nodes onto nodes that were empty before the plan.
#pragma once

#include <gpusched/consolidation/chain_search.hpp>
#include <gpusched/consolidation/result.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// Goes on where nothing more can be vacated onto nodes in use. First each node is tried alone: a task that finds no place elsewhere opens
/// an empty node. Then one empty node after the other is offered like those in use, as many nodes as possible are vacated, and what
/// comes of it is kept where it is worth what the node costs. Of each kind of empty nodes, one that fails is the last.
template <class Policies>
class OpeningSearch {
  public:
    /// @param options whose price and open price values are judged at
    OpeningSearch(Workspace& work, const Policies& policies, const Options& options, int depth,
                  Budget& budget, Statistics& stats)
        : work_(work), cluster_(work.cluster), policies_(policies), options_(options), depth_(depth),
          budget_(budget), stats_(stats), chains_(work, policies, depth, budget, stats) {}

    /// @param vacated by NodeId, as the joined chains leave it
    /// @return chains that lead on from the state at hand
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
        alone(found);
        together(empty, found);
        return found;
    }

  private:
    static constexpr std::int64_t steps_per_node = 5000;

    void alone(std::vector<Vacated>& found) {
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

    void together(const EmptyNodes& empty, std::vector<Vacated>& found) {
        const auto last_step = steps() + steps_per_node * static_cast<std::int64_t>(sources_.size());
        for (const auto& alike : empty.kinds)
            for (const auto node : alike) {
                if (sources_.empty() || steps() > last_step || budget_.exhausted()) return;
                if (cluster_.occupants(node) == 0 && !try_together(node, found)) break;
            }
    }
    // Opens the empty node and vacates other nodes into it; undoes both where the gain is less than the price of opening.
    bool try_together(NodeId node, std::vector<Vacated>& found) {
        work_.on_trial = node;
        work_.index.open(cluster_, node);
        work_.forget_failures();
        std::vector<Vacated> made;
        ChainSet sum;
        for (const auto& [key, source] : sources_) {
            if (!chains_.vacate(source, depth_)) continue;
            made.push_back(chains_.moves().close());
            add(sum, made.back().chains);
        }
        work_.on_trial = none<NodeId>;
        sum.opening += chains_.moves().cost_of_opening(node);
        ++sum.opened;
        if (cluster_.occupants(node) > 0 && pays(sum)) {
            keep(std::move(made), sum, found);
            return true;
        }
        take_back(made);
        work_.index.close(node);
        return false;
    }

    /// Whether it gains anything. Where the nodes to vacate are given, it is enough that nothing is lost.
    [[nodiscard]] bool pays(const ChainSet& chains) const {
        if (chains.opened <= 0)
            return true;  // what is worth nothing costs nothing to open, and gains nothing either
        const auto value = value_milli(chains.gain, chains.cost, options_.price);
        return options_.clear ? value >= chains.opening : value > chains.opening;
    }

    static void add(ChainSet& sum, const ChainSet& chains) {
        sum.gain += chains.gain;
        sum.tasks += chains.tasks;
        sum.moves += chains.moves;
        sum.cost += chains.cost;
        sum.opening += chains.opening;
        sum.opened += chains.opened;
    }
    // All steps go with the first node: they are worth what they cost only together.
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
    void take_back(const std::vector<Vacated>& made) {
        for (auto part = made.rbegin(); part != made.rend(); ++part) {
            for (auto step = part->steps.rbegin(); step != part->steps.rend(); ++step) {
                cluster_.undo();
                work_.moved(step->task, step->to, step->from);
            }
            work_.index.open(cluster_, part->chains.node);
        }
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
