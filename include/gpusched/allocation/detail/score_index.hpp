// Scores of nodes per kind of task, kept up to date lazily, with fast access to the greatest.
#pragma once

#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

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

namespace GPUSCHED_NAMESPACE::allocation::detail {

/// For every kind of task seen a row with the score of every eligible node, in the order of the cluster, and the best
/// of every block of 32. Nodes that cannot hold the task have no score, which is less than any.
template <class Score>
class ScoreIndex {
  public:
    /// The first feasible node of the greatest score; `none` if there is none.
    template <class ScoreOf>
    NodeId best(const Cluster& cluster, TaskId task, ScoreOf&& score_of) {
        if (serial_ != cluster.inventory().serial) bind(cluster);
        auto& row = row_of(task);
        const auto& nodes = candidates_[row.candidates].nodes;
        refresh(row, [&](NodeId node) -> std::optional<Score> {
            if (find_resource_obstacle(cluster, task, node) != Obstacle::none) return std::nullopt;
            return score_of(node);
        });
        // Groups are not a matter of the node alone: look at them last, and hide the nodes that they forbid.
        hidden_.clear();
        NodeId found = none<NodeId>;
        for (;;) {
            const auto at = row.greatest();
            if (at == npos) break;
            if (find_group_obstacle(cluster, task, nodes[at]) == Obstacle::none) {
                found = nodes[at];
                break;
            }
            hidden_.emplace_back(at, row.scores[at]);
            row.set(at, std::nullopt);
        }
        for (auto& [at, score] : hidden_) row.set(at, std::move(score));
        return found;
    }

    void changed(NodeId node) {
        if (inventory_ == nullptr) return;  // nothing is kept yet
        latest_[index(node)] = log_.size();
        log_.push_back(node);
    }

  private:
    static constexpr std::size_t block = 32;
    static constexpr std::size_t npos = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t most_entries = (std::size_t{256} << 20) / sizeof(std::optional<Score>);

    /// Nodes that satisfy a requirement, in ascending order.
    struct Candidates {
        std::vector<NodeId> nodes;
        std::vector<std::uint32_t> position;  // by NodeId; the number of nodes = not among them
    };
    struct Row {
        std::size_t candidates = 0;
        std::vector<std::optional<Score>> scores;
        std::vector<std::optional<Score>> block_best;
        std::size_t seen = npos;  // up to where it has followed the log; npos = never filled
        std::uint64_t last_used = 0;

        void set(std::size_t at, std::optional<Score> score) {
            auto& best = block_best[at / block];
            const bool was_best = scores[at] == best;
            scores[at] = score;
            if (!(score < best)) {
                best = std::move(score);
            } else if (was_best) {
                // Ties are common: usually another node of the block is as good as the one that was best.
                const auto [first, last] = block_range(at / block);
                if (std::find(first, last, best) == last) best = *std::max_element(first, last);
            }
        }
        void renew_block(std::size_t b) {
            const auto [first, last] = block_range(b);
            block_best[b] = *std::max_element(first, last);
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
    };
    /// What node-local scores may depend on: everything that a task asks of a single node.
    using Kind =
        std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint32_t, int, int, PriorityClass, int>;

    void bind(const Cluster& cluster) {
        *this = {};
        inventory_ = &cluster.inventory();
        serial_ = inventory_->serial;
        latest_.assign(cluster.node_slots(), 0);
        candidates_of_.assign(inventory_->requirements.size(), npos);
    }

    Row& row_of(TaskId task) {
        const auto& t = inventory_->tasks;
        const auto i = index(task);
        const auto level = inventory_->task_affinities[t.affinities[i]].guaranteed_level();
        const auto [at, added] = row_ids_.try_emplace(
            Kind{t.cpu_milli[i], t.memory_mib[i], t.gpu_memory_mib[i], t.requirement[i], t.gpu_count[i],
                 t.gpu_share_milli[i], t.priority_class[i], level ? static_cast<int>(*level) : -1},
            rows_.size());
        if (added) rows_.emplace_back().candidates = candidates_for(t.requirement[i]);
        auto& row = rows_[at->second];
        row.last_used = ++uses_;
        if (row.seen == npos) {
            const auto size = candidates_[row.candidates].nodes.size();
            forget_until(size);
            row.scores.assign(size, std::nullopt);
            row.block_best.assign((size + block - 1) / block, std::nullopt);
            entries_ += size;
        }
        return row;
    }

    std::size_t candidates_for(std::uint32_t requirement) {
        auto& known = candidates_of_[requirement];
        if (known != npos) return known;
        known = candidates_.size();
        auto& added = candidates_.emplace_back();
        const auto count = latest_.size();
        added.position.assign(count, static_cast<std::uint32_t>(count));
        for (const auto node : inventory_->living_nodes()) {
            if (!inventory_->nodes.schedulable[index(node)] ||
                !inventory_->eligible(requirement, inventory_->nodes.node_class[index(node)]))
                continue;
            added.position[index(node)] = static_cast<std::uint32_t>(added.nodes.size());
            added.nodes.push_back(node);
        }
        return known;
    }

    template <class Evaluate>
    void refresh(Row& row, Evaluate&& evaluate) {
        const auto& candidates = candidates_[row.candidates];
        if (row.seen == npos || log_.size() - row.seen > candidates.nodes.size()) {
            for (std::size_t at = 0; at < row.scores.size(); ++at)
                row.scores[at] = evaluate(candidates.nodes[at]);
            for (std::size_t b = 0; b < row.block_best.size(); ++b) row.renew_block(b);
        } else {
            for (auto i = row.seen; i < log_.size(); ++i) {
                const auto node = log_[i];
                if (latest_[index(node)] != i) continue;  // it comes again
                if (const auto at = candidates.position[index(node)]; at < candidates.nodes.size())
                    row.set(at, evaluate(node));
            }
        }
        row.seen = log_.size();
        shorten_log();
    }

    // Entries that would make a row start over anyway need not be kept.
    void shorten_log() {
        const auto keep = latest_.size();
        if (log_.size() < 2 * keep + 4096) return;
        const auto cut = log_.size() - keep;
        log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(cut));
        for (auto& at : latest_) at = at >= cut ? at - cut : 0;
        for (auto& row : rows_)
            if (row.seen != npos) row.seen < cut ? clear(row) : static_cast<void>(row.seen -= cut);
    }

    void clear(Row& row) {
        entries_ -= row.scores.size();
        row.scores = {};
        row.block_best = {};
        row.seen = npos;
    }

    void forget_until(std::size_t needed) {
        while (entries_ > 0 && entries_ + needed > most_entries) {
            Row* oldest = nullptr;
            for (auto& row : rows_)
                if (row.seen != npos && (oldest == nullptr || row.last_used < oldest->last_used))
                    oldest = &row;
            if (oldest == nullptr) return;
            clear(*oldest);
        }
    }

    std::uint64_t serial_ = 0;
    const Inventory* inventory_ =
        nullptr;  // whose nodes and tasks these are; compared, never followed when stale
    std::vector<std::size_t> candidates_of_;  // by requirement
    std::vector<Candidates> candidates_;
    std::map<Kind, std::size_t> row_ids_;
    std::vector<Row> rows_;
    std::vector<NodeId> log_;          // nodes that changed, in order
    std::vector<std::size_t> latest_;  // by NodeId: its last entry in the log
    std::size_t entries_ = 0;
    std::uint64_t uses_ = 0;
    std::vector<std::pair<std::size_t, std::optional<Score>>> hidden_;
};

}  // namespace GPUSCHED_NAMESPACE::allocation::detail
