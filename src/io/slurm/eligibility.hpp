// SPDX-License-Identifier: Apache-2.0
// The nodes that a Slurm job may use: partitions, features, reservations and named nodes.
#pragma once

#include "io/slurm/values.hpp"

#include <gpusched/core/text.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::slurm {

/// Alternatives, each a list of features that a node must all have.
using Alternatives = std::vector<std::vector<std::string>>;

/// The features that the nodes of a job must have.
struct Constraint {
    Alternatives every{{}};  ///< for all nodes
    struct Some {
        std::int64_t nodes = 0;
        Alternatives features{};
    };
    std::vector<Some> some{};  ///< for a number of them
    bool same_on_all = false;  ///< one alternative must hold for all nodes together
};

/// Reads constraints on features, such as `a100&nvlink`, `[rack1|rack2]`, `big*2&small*1`: `&` and a comma
/// join, `|` separates, parentheses and brackets group, `*n` counts nodes.
class ConstraintReader {
  public:
    static constexpr std::size_t most_alternatives = 64;
    static constexpr int deepest = 8;

    explicit ConstraintReader(std::string_view text) : rest_(text) {}

    /// @return none if the text is malformed, or has too many alternatives
    std::optional<Constraint> read() {
        auto found = alternatives(0);
        if (!found || !rest_.empty()) return std::nullopt;
        out_.every = *std::move(found);
        return std::move(out_);
    }

  private:
    bool take(char c) {
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    std::optional<Alternatives> alternatives(int depth) {
        auto out = joined(depth);
        while (out && take('|')) {
            auto more = joined(depth);
            if (!more) return std::nullopt;
            out->insert(out->end(), std::make_move_iterator(more->begin()),
                        std::make_move_iterator(more->end()));
            if (out->size() > most_alternatives) return std::nullopt;
        }
        return out;
    }
    std::optional<Alternatives> joined(int depth) {
        auto out = counted(depth);
        while (out && (take('&') || take(','))) {
            const auto more = counted(depth);
            if (!more || out->size() * more->size() > most_alternatives) return std::nullopt;
            Alternatives both;
            for (const auto& left : *out)
                for (const auto& right : *more) {
                    both.push_back(left);
                    for (const auto& feature : right)
                        if (!contains(left, feature)) both.back().push_back(feature);
                }
            out = std::move(both);
        }
        return out;
    }
    /// A feature or a group. One with a number of nodes goes to `some` and requires nothing from all nodes.
    std::optional<Alternatives> counted(int depth) {
        auto out = single(depth);
        if (!out || !take('*')) return out;
        std::int64_t nodes = 0;
        if (!take_number(rest_, nodes) || nodes < 1) return std::nullopt;
        out_.some.push_back({nodes, *std::move(out)});
        return Alternatives{{}};
    }
    std::optional<Alternatives> single(int depth) {
        if (depth == deepest) return std::nullopt;
        for (const auto& [open, close] : {std::pair('(', ')'), std::pair('[', ']')})
            if (take(open)) {
                auto out = alternatives(depth + 1);
                if (!out || !take(close)) return std::nullopt;
                if (open == '[' && out->size() > 1) out_.same_on_all = true;
                return out;
            }
        const auto end = std::min(rest_.find_first_of("&|,*()[]"), rest_.size());
        if (end == 0) return std::nullopt;
        Alternatives out{{std::string(rest_.substr(0, end))}};
        rest_.remove_prefix(end);
        return out;
    }

    std::string_view rest_;
    Constraint out_;
};

inline constexpr std::string_view partition_label = "slurm/partition.";
inline constexpr std::string_view feature_label = "slurm/feature.";
inline constexpr std::string_view reservation_label = "slurm/reservation";
inline constexpr std::string_view disk_label = "slurm/tmp-disk-mib";

/// Whether a text may be a name in a snapshot.
inline bool is_name(std::string_view text) { return !text.empty() && text.find('\0') == text.npos; }

/// Adds labels and taints for the properties that jobs can require of a node.
inline void label_node(const NodeRecord& node, NodeSpec& out) {
    for (const auto& name : node.partitions)
        if (is_name(name)) out.labels[std::string(partition_label) + name] = "true";
    for (const auto& name : node.features)
        if (is_name(name)) out.labels[std::string(feature_label) + name] = "true";
    if (node.disk_mib.value_or(0) > 0) out.labels[std::string(disk_label)] = std::to_string(*node.disk_mib);
    if (is_name(node.reservation)) {
        out.labels[std::string(reservation_label)] = node.reservation;
        out.taints.push_back({std::string(reservation_label), node.reservation, "NoSchedule"});
    }
}

/// Turns the requirements of jobs on nodes into node affinity and tolerations.
class Eligibility {
  public:
    /// @param nodes with labels
    Eligibility(const std::vector<NodeSpec>& nodes, Expansion& left, ReportBuilder& report)
        : left_(left), report_(report) {
        for (const auto& node : nodes) {
            names_.insert(node.name);
            for (const auto& [key, value] : node.labels) {
                labels_.insert(key);
                if (key == reservation_label) reservations_.insert(value);
            }
        }
    }

    /// The rules of all tasks of a job; `of_task` adds those of one.
    struct Rules {
        std::vector<NodeTerm> terms{};
        std::vector<Toleration> tolerations{};
        std::vector<Constraint::Some> some{};
        std::vector<std::string> required_nodes{};
    };

    Rules of_job(const JobRecord& job, std::size_t nodes) {
        Rules out;
        NodeTerm all;
        reservation(job, all, out);
        if (job.disk_mib.value_or(0) > 0) {
            all.match_expressions.push_back(
                {std::string(disk_label), MatchOperator::gt, {std::to_string(*job.disk_mib - 1)}});
            report_.exact("Job", "temporary disk");
        }
        auto excluded = hosts(job.excluded_nodes, job, "ExcNodeList");
        std::erase_if(excluded, [&](const std::string& name) { return !names_.contains(name); });
        if (!excluded.empty()) {
            all.match_fields.push_back({"metadata.name", MatchOperator::not_in, std::move(excluded)});
            report_.exact("Job", "excluded nodes");
        }
        out.required_nodes = hosts(job.required_nodes, job, "ReqNodeList");
        if (!out.required_nodes.empty()) report_.exact("Job", "required nodes");
        const auto features = this->features(job, nodes);
        out.some = features.some;
        std::vector<NodeTerm> terms;
        for (const auto& partition : partitions(job))
            for (const auto& alternative : features.every) {
                auto term = all;
                if (!partition.empty()) must_have(partition_label, partition, term);
                for (const auto& feature : alternative) must_have(feature_label, feature, term);
                left_.take(bytes_of(term));
                terms.push_back(std::move(term));
            }
        if (terms.size() > 1 || !terms[0].match_expressions.empty() || !terms[0].match_fields.empty())
            out.terms = std::move(terms);
        return out;
    }

    /// @param i the task's number among those of the job
    static void of_task(const Rules& rules, std::size_t i, Expansion& left, TaskSpec& out) {
        out.tolerations = rules.tolerations;
        out.node_affinity = rules.terms;
        const auto narrow = [&](auto&& add) {
            if (out.node_affinity.empty()) out.node_affinity.emplace_back();
            for (auto& term : out.node_affinity) add(term);
        };
        if (i < rules.required_nodes.size())
            narrow([&](NodeTerm& term) {
                term.match_fields.push_back({"metadata.name", MatchOperator::in, {rules.required_nodes[i]}});
            });
        auto at = static_cast<std::int64_t>(i);
        for (const auto& some : rules.some) {
            if (at >= some.nodes) {
                at -= some.nodes;
                continue;
            }
            if (out.node_affinity.empty()) out.node_affinity.emplace_back();
            std::vector<NodeTerm> both;
            for (const auto& term : out.node_affinity)
                for (const auto& alternative : some.features) {
                    both.push_back(term);
                    for (const auto& feature : alternative) must_have(feature_label, feature, both.back());
                    left.take(bytes_of(both.back()));
                }
            out.node_affinity = std::move(both);
            break;
        }
        // A term without conditions would mean any node here; in a snapshot it holds on no node.
        if (std::ranges::any_of(out.node_affinity, [](const NodeTerm& term) {
                return term.match_expressions.empty() && term.match_fields.empty();
            }))
            out.node_affinity.clear();
    }

  private:
    static void must_have(std::string_view label, const std::string& name, NodeTerm& term) {
        term.match_expressions.push_back({std::string(label) + name, MatchOperator::exists, {}});
    }

    std::vector<std::string> hosts(const std::string& text, const JobRecord& job, const char* what) {
        if (text.empty()) return {};
        auto names = host_list(text, left_);
        if (names) return *std::move(names);
        report_.ignored("Job", what, Errs::too_lax, "is not a list of nodes such as gpu[01-04]",
                        job.id + ": " + text);
        return {};
    }

    void reservation(const JobRecord& job, NodeTerm& term, Rules& out) {
        if (!is_name(job.reservation)) return;
        if (!reservations_.contains(job.reservation)) {
            report_.ignored("Job", "reservation", Errs::too_lax, "no node belongs to this reservation",
                            job.id + ": " + job.reservation);
            return;
        }
        term.match_expressions.push_back(
            {std::string(reservation_label), MatchOperator::in, {job.reservation}});
        out.tolerations.push_back({std::string(reservation_label), "Equal", job.reservation, "NoSchedule"});
        report_.exact("Job", "reservation");
    }

    /// The partitions of the job; one empty name = any node.
    std::vector<std::string> partitions(const JobRecord& job) {
        auto names = words_of(job.partition);
        if (names.size() > 64) names.resize(64);
        const bool known = std::ranges::any_of(names, [&](const std::string& name) {
            return labels_.contains(std::string(partition_label) + name);
        });
        if (known) {
            report_.exact("Job", "partition");
            return names;
        }
        report_.ignored("Job", "partition", Errs::too_lax, "no node belongs to it: any node is accepted",
                        job.id + ": " + (job.partition.empty() ? "none" : job.partition));
        return {""};
    }

    Constraint features(const JobRecord& job, std::size_t nodes) {
        if (job.features.empty()) return {};
        auto read = ConstraintReader(job.features).read();
        if (!read) {
            report_.ignored("Job", "features", Errs::too_lax, "malformed, or with too many alternatives",
                            job.id + ": " + job.features);
            return {};
        }
        if (!read->some.empty())
            report_.approximated("Job", "features of some nodes", Errs::either,
                                 "its first tasks need them, in the order of the constraint",
                                 job.id + ": " + job.features);
        else if (read->same_on_all && nodes > 1)
            report_.approximated("Job", "features in brackets", Errs::too_lax,
                                 "each node has one of them; Slurm requires the same one on all",
                                 job.id + ": " + job.features);
        else
            report_.exact("Job", "features");
        return *std::move(read);
    }

    Expansion& left_;
    ReportBuilder& report_;
    std::set<std::string, std::less<>> names_, labels_, reservations_;
};

}  // namespace gpusched::io::detail::slurm
