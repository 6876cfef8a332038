// SPDX-License-Identifier: Apache-2.0
// RankedPlacement: places one task after another on the node of the greatest score, with scores kept between
// tasks.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/detail/policy_checks.hpp>
#include <gpusched/allocation/filters.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/follower.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::allocation {

namespace detail {

/// Keeps a row for every kind of task seen: the score of every eligible node, in the order of the cluster,
/// and the best of every block of 32. Nodes that cannot hold the task have no score, which is less than any.
/// This is a follower (follower.hpp): a row processes changes when it is next used.
template <class Score>
class ScoreIndex {
  public:
    void rebuild(const Cluster& cluster) {
        *this = {};
        latest_.assign(cluster.node_slots(), 0);
    }
    void usage_changed(const Cluster&, NodeId node) {
        latest_[index(node)] = log_.size();
        log_.push_back(node);
    }
    void node_changed(const Cluster& cluster, NodeId node) {
        if (latest_.size() < cluster.node_slots()) latest_.resize(cluster.node_slots(), 0);
        for (std::uint32_t r = 0; r < candidates_.size(); ++r) renew(cluster, r, node);
        usage_changed(cluster, node);
    }

    /// Returns the first feasible node with the greatest score; `none` if there is none.
    template <class ScoreOf>
    NodeId best(const Cluster& cluster, TaskId task, ScoreOf&& score_of) {
        const auto& inventory = cluster.inventory();
        auto& candidates = candidates_for(inventory, inventory.tasks.requirement[index(task)]);
        auto& row = row_of(candidates, inventory, task);
        refresh(candidates, row, [&](NodeId node) -> std::optional<Score> {
            if (find_resource_obstacle(cluster, task, node) != Obstacle::none) return std::nullopt;
            if (const auto extras = inventory.tasks.extras[index(task)];
                extras != 0 && !inventory.in_node_set(extras, node))
                return std::nullopt;
            return score_of(node);
        });
        // Groups also depend on other nodes, so scores do not include them: they are checked here, and
        // forbidden nodes are hidden. Everything else is checked again, too: even if a score is out of date,
        // the answer is a node that the task fits.
        hidden_.clear();
        NodeId found = none<NodeId>;
        for (;;) {
            const auto at = row.greatest();
            if (at == npos) break;
            if (find_obstacle(cluster, task, candidates.nodes[at]) == Obstacle::none) {
                found = candidates.nodes[at];
                break;
            }
            hidden_.emplace_back(at, row.scores[at]);
            row.set(at, std::nullopt);
        }
        for (auto& [at, score] : hidden_) row.set(at, std::move(score));
        return found;
    }

  private:
    static constexpr std::size_t block = 32;
    static constexpr std::size_t npos = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t most_entries = (std::size_t{256} << 20) / sizeof(std::optional<Score>);

    struct Row {
        std::vector<std::optional<Score>> scores{};
        std::vector<std::optional<Score>> block_best{};
        std::size_t seen = npos;  // position in the log up to which the row is current; npos = never filled
        std::uint64_t last_used = 0;

        void set(std::size_t at, std::optional<Score> score) {
            auto& best = block_best[at / block];
            const bool was_best = scores[at] == best;
            scores[at] = score;
            if (!(score < best)) {
                best = std::move(score);
            } else if (was_best) {
                // Ties are common: usually another node of the block is as good as the former best.
                const auto [first, last] = block_range(at / block);
                if (std::find(first, last, best) == last) best = *std::max_element(first, last);
            }
        }
        void renew_block(std::size_t b) {
            const auto [first, last] = block_range(b);
            block_best[b] = *std::max_element(first, last);
        }
        void resize(std::size_t nodes) {
            scores.resize(nodes);
            block_best.resize((nodes + block - 1) / block);
        }
        [[nodiscard]] auto block_range(std::size_t b) const {
            const auto at = [&](std::size_t i) {
                return scores.begin() + static_cast<std::ptrdiff_t>(std::min(scores.size(), i));
            };
            return std::pair(at(b * block), at((b + 1) * block));
        }
        [[nodiscard]] std::size_t greatest() const {
            const auto b = std::max_element(block_best.begin(), block_best.end());  // the first of equals
            if (b == block_best.end() || !*b) return npos;
            auto at = static_cast<std::size_t>(b - block_best.begin()) * block;
            while (scores[at] != *b) ++at;
            return at;
        }
        /// Its memory, in scores: those of the nodes, and 32 for everything else.
        [[nodiscard]] std::size_t entries() const { return scores.size() + 32; }
    };
    /// Everything that a task asks of a single node besides its requirement. Tasks of one requirement and of
    /// equal kind have the same node-local scores and share a row.
    using Kind = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint32_t, std::uint64_t, int, int,
                            PriorityClass, int>;
    /// Nodes that satisfy a requirement, in ascending order. Nodes that are cordoned or no longer satisfy it
    /// are closed.
    struct Candidates {
        std::optional<std::uint64_t>
            since{};  // distinguishes requirements that had this index; none = unread
        std::vector<NodeId> nodes{};
        std::vector<std::uint32_t> position{};  // by NodeId; `closed` = not in the list, or closed
        std::map<Kind, Row> rows{};
        [[nodiscard]] bool is_open(NodeId node) const { return position[index(node)] != closed; }
    };
    static constexpr std::uint32_t closed = 0xFFFFFFFFu;

    Row& row_of(Candidates& candidates, const Inventory& inventory, TaskId task) {
        const auto& t = inventory.tasks;
        const auto i = index(task);
        const auto level = inventory.task_affinities[t.affinities[i]].guaranteed_level();
        const Kind kind{t.cpu_milli[i],
                        t.memory_mib[i],
                        t.gpu_memory_mib[i],
                        t.extras[i],
                        Inventory::since(inventory.extras_since, t.extras[i]),
                        t.gpu_count[i],
                        t.gpu_share_milli[i],
                        t.priority_class[i],
                        level ? static_cast<int>(*level) : -1};
        auto known = candidates.rows.find(kind);
        if (known == candidates.rows.end()) {
            Row added;
            added.resize(candidates.nodes.size());
            forget_until(added.entries());
            entries_ += added.entries();
            known = candidates.rows.emplace(kind, std::move(added)).first;
        }
        known->second.last_used = ++uses_;
        return known->second;
    }

    [[nodiscard]] static std::uint64_t since(const Inventory& inventory, std::uint32_t requirement) {
        return Inventory::since(inventory.requirement_since, requirement);
    }
    [[nodiscard]] static bool is_eligible(const Inventory& inventory, std::uint32_t requirement,
                                          NodeId node) {
        return inventory.eligible(requirement, inventory.nodes.node_class[index(node)]);
    }

    Candidates& candidates_for(const Inventory& inventory, std::uint32_t requirement) {
        if (candidates_.size() <= requirement) candidates_.resize(requirement + 1);
        auto& list = candidates_[requirement];
        if (list.since == since(inventory, requirement)) return list;
        forget(list);
        list.since = since(inventory, requirement);
        list.position.assign(latest_.size(), closed);
        for (const auto node : inventory.living_nodes()) {
            if (!is_eligible(inventory, requirement, node)) continue;
            if (inventory.nodes.receives(node))
                list.position[index(node)] = static_cast<std::uint32_t>(list.nodes.size());
            list.nodes.push_back(node);
        }
        return list;
    }

    // Records that the node was added, changed or removed.
    void renew(const Cluster& cluster, std::uint32_t requirement, NodeId node) {
        auto& list = candidates_[requirement];
        const auto& inventory = cluster.inventory();
        // A requirement that no longer exists has lost its list, or loses it when another one with its index
        // is requested.
        if (list.since != since(inventory, requirement)) return;
        if (list.position.size() < latest_.size()) list.position.resize(latest_.size(), closed);
        const bool fits = cluster.contains(node) && inventory.nodes.receives(node) &&
                          is_eligible(inventory, requirement, node);
        if (fits == list.is_open(node)) return;
        auto& at = list.position[index(node)];
        if (!fits) {
            for (auto& [kind, row] : list.rows) row.set(at, std::nullopt);
            at = closed;
            return;
        }
        const auto found = std::lower_bound(list.nodes.begin(), list.nodes.end(), node);
        const auto place = static_cast<std::uint32_t>(found - list.nodes.begin());
        if (found == list.nodes.end()) {
            list.nodes.push_back(node);
            for (auto& [kind, row] : list.rows) row.resize(list.nodes.size());
            entries_ += list.rows.size();
        } else if (*found != node) {  // in between: the list is built again
            forget(list);
            return;
        }
        at = place;
    }

    void forget(Candidates& list) {
        for (const auto& [kind, row] : list.rows) entries_ -= row.entries();
        list = {};
    }

    template <class Evaluate>
    void refresh(const Candidates& candidates, Row& row, Evaluate&& evaluate) {
        if (row.seen == npos || log_.size() - row.seen > candidates.nodes.size()) {
            for (std::size_t at = 0; at < row.scores.size(); ++at) {
                const auto node = candidates.nodes[at];
                row.scores[at] = candidates.is_open(node) ? evaluate(node) : std::nullopt;
            }
            for (std::size_t b = 0; b < row.block_best.size(); ++b) row.renew_block(b);
        } else {
            for (auto i = row.seen; i < log_.size(); ++i) {
                const auto node = log_[i];
                if (latest_[index(node)] != i) continue;  // a later entry repeats it
                if (const auto at = candidates.position[index(node)]; at != closed)
                    row.set(at, evaluate(node));
            }
        }
        row.seen = log_.size();
        shorten_log();
    }

    // Drops the entries of the log that would only make a row start over.
    void shorten_log() {
        const auto keep = latest_.size();
        if (log_.size() < 2 * keep + 4096) return;
        const auto cut = log_.size() - keep;
        log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(cut));
        for (auto& at : latest_) at = at >= cut ? at - cut : 0;
        for (auto& list : candidates_) {
            std::erase_if(list.rows, [&](const auto& entry) {
                const bool outdated = entry.second.seen < cut;
                if (outdated) entries_ -= entry.second.entries();
                return outdated;
            });
            for (auto& [kind, row] : list.rows)
                if (row.seen != npos) row.seen -= cut;
        }
    }

    // Drops the rows that were not used for the longest time.
    void forget_until(std::size_t needed) {
        while (entries_ > 0 && entries_ + needed > most_entries) {
            Candidates* list = nullptr;
            typename std::map<Kind, Row>::iterator oldest;
            for (auto& other : candidates_)
                for (auto row = other.rows.begin(); row != other.rows.end(); ++row)
                    if (list == nullptr || row->second.last_used < oldest->second.last_used)
                        list = &other, oldest = row;
            entries_ -= oldest->second.entries();
            list->rows.erase(oldest);
        }
    }

    std::vector<Candidates> candidates_;  // by requirement
    std::vector<NodeId> log_;             // changed nodes, in order
    std::vector<std::size_t> latest_;     // by NodeId: its last entry in the log
    std::size_t entries_ = 0;
    std::uint64_t uses_ = 0;
    std::vector<std::pair<std::size_t, std::optional<Score>>> hidden_;
};

/// For rankers without `prepare`: keeps nothing.
template <class R>
class PreparedNodes {
  public:
    void rebuild(const Cluster&) noexcept {}
    void usage_changed(const Cluster&, NodeId) noexcept {}
};

template <PreparingRanker R>
class PreparedNodes<R> {
  public:
    using State = decltype(std::declval<const R&>().prepare(std::declval<const Cluster&>(), NodeId{}));

    void rebuild(const Cluster& cluster) { states_.assign(cluster.node_slots(), std::nullopt); }
    void usage_changed(const Cluster&, NodeId node) noexcept {
        if (index(node) < states_.size()) states_[index(node)].reset();
    }

    const State& of(const Cluster& cluster, NodeId node, const R& ranker) {
        states_.resize(cluster.node_slots());
        auto& state = states_[index(node)];
        if (!state) state = ranker.prepare(cluster, node);
        return *state;
    }

  private:
    std::vector<std::optional<State>> states_;
};

}  // namespace detail

/// A placement policy made of a ranker (NodeRanker), a GPU picker (GpuPicker) and a filter (NodeFilter). It
/// returns the same as `place`, much faster for many tasks in a row.
///
/// Scores of node-local rankers (see NodeRanker) are kept per kind of task and node. They are renewed only on
/// nodes that changed since the last task of that kind. Other rankers, and rankers with a filter that is not
/// node-local, are called for every node every time; so is every ranker if the cluster keeps no events
/// (`Cluster::keep_events`). Scores follow the events of the cluster (follower.hpp), so callers need not
/// report changes. A call with another cluster starts over. The chosen node is checked again before it is
/// returned.
///
/// Complexity with node-local policies: one score per node that changed since the last task of that kind,
/// plus O(nodes / 32), plus the changes that can still be undone in the cluster. Memory: 16 bytes per kind of
/// task and eligible node, at most about 256 MiB; beyond that the least recently used kinds are dropped.
template <class R, class P, class F = AnyNode>
class RankedPlacement {
    static_assert(detail::check_ranker<R>());
    static_assert(detail::check_gpu_picker<P>());
    static_assert(detail::check_filter<F>());

  public:
    explicit RankedPlacement(R ranker = {}, P picker = {}, F filter = {})
        : ranker_(std::move(ranker)), picker_(std::move(picker)), filter_(std::move(filter)) {}

    std::optional<Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng) {
        if constexpr (may_keep_scores) {
            if (keeps_scores() && cluster.events() != nullptr) {
                const auto node = best_kept(kept_.of(cluster), cluster, task, rng);
                if (node == none<NodeId>) return std::nullopt;
                return Destination{node, pick_gpus(picker_, cluster, task, node, rng)};
            }
        }
        return place(cluster, task, ranker_, picker_, rng, filter_);
    }

    /// Processes the events of the cluster now, as every call does, so that the next call need not.
    void catch_up(const Cluster& cluster) {
        if constexpr (may_keep_scores)
            if (keeps_scores() && cluster.events() != nullptr) (void)kept_.of(cluster);
    }

    /// True if ranker and filter are node-local.
    [[nodiscard]] bool keeps_scores() const {
        return may_keep_scores && detail::node_local(ranker_) && detail::node_local(filter_);
    }

  private:
    /// Data derived from the cluster.
    struct Kept {
        detail::ScoreIndex<Score<R>> index;
        detail::PreparedNodes<R> prepared;
        void rebuild(const Cluster& cluster) {
            index.rebuild(cluster);
            prepared.rebuild(cluster);
        }
        void usage_changed(const Cluster& cluster, NodeId node) {
            index.usage_changed(cluster, node);
            prepared.usage_changed(cluster, node);
        }
        void node_changed(const Cluster& cluster, NodeId node) {
            index.node_changed(cluster, node);
            prepared.usage_changed(cluster, node);
        }
    };

    NodeId best_kept(Kept& kept, const Cluster& cluster, TaskId task, Rng& rng) {
        return kept.index.best(cluster, task, [&](NodeId node) -> std::optional<Score<R>> {
            if (!filter_(cluster, task, node)) return std::nullopt;
            if constexpr (detail::PreparingRanker<R>)
                return ranker_(cluster, task, node, kept.prepared.of(cluster, node, ranker_));
            else
                return detail::ask(ranker_, cluster, task, node, rng);
        });
    }

    static constexpr bool may_keep_scores = detail::may_be_node_local<R> && detail::may_be_node_local<F>;
    R ranker_;
    P picker_;
    F filter_;
    Followed<Kept> kept_;
};

}  // namespace gpusched::allocation
