// SPDX-License-Identifier: Apache-2.0
#include "io/public_devices.hpp"
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/io/anonymize.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::io {

namespace detail {

/// Old names of one kind and what they become. First all are added, then numbered, then looked up.
class Pseudonyms {
  public:
    explicit Pseudonyms(const char* prefix) : prefix_(prefix) {}

    /// First pass: takes note of the name. Second pass: replaces it.
    void operator()(std::string& name) {
        if (name.empty()) return;
        if (numbered_)
            name = new_names_.at(name);
        else
            new_names_.try_emplace(name);
    }
    /// @param rng for a random order; absent = the new names are in the order of the old ones
    void number(std::optional<Rng> rng = {}) {
        std::vector<std::size_t> numbers(new_names_.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
        if (rng) rng->shuffle(std::span(numbers));
        std::size_t i = 0;
        for (auto& [name, replacement] : new_names_) replacement = prefix_ + std::to_string(numbers[i++]);
        numbered_ = true;
    }

  private:
    std::string prefix_;
    struct Before {
        bool operator()(const std::string& a, const std::string& b) const { return comes_before(a, b); }
    };
    std::map<std::string, std::string, Before> new_names_;
    bool numbered_ = false;
};

/// All names of a snapshot by kind.
struct Renaming {
    Pseudonyms nodes{"node-"}, tasks{"task-"}, jobs{"job-"}, domains{"domain-"}, groups{"group-"},
        keys{"key-"}, values{"value-"}, resources{"resource-"}, budgets{"budget-"}, devices{"device-"},
        subgroups{"subgroup-"};
    std::set<std::string> compared{};  // keys whose values are compared as numbers: integers are kept

    void number(Rng rng) {
        for (auto* kind : {&nodes, &tasks, &jobs, &budgets}) kind->number();  // ties go by their order
        std::uint64_t stream = 0;
        for (auto* kind : {&domains, &groups, &keys, &values, &resources, &devices, &subgroups})
            kind->number(rng.split(stream++));
    }
    void labels(Labels& labels) {
        Labels renamed;
        for (const auto& old : labels) {
            std::string key = old.first, value = old.second;
            label(key, value);
            renamed.emplace(std::move(key), std::move(value));
        }
        labels = std::move(renamed);
    }
    void label(std::string& key, std::string& value) {
        rename_value(key, value);
        rename_key(key);
    }
    // What is no integer compares with nothing, whatever its name.
    void rename_value(const std::string& key, std::string& value) {
        if (!compared.contains(key) || !gpusched::detail::label_integer(value)) values(value);
    }
    void rename_class(std::string& name) {
        if (!is_public_device_class(name)) devices(name);
    }
    // The key that singles out nodes and the one that cordons them have a meaning of their own.
    void rename_key(std::string& key) {
        if (key != "kubernetes.io/hostname" && key != gpusched::detail::cordon_taint) keys(key);
    }
    void amounts(Resources& amounts) {
        Resources renamed;
        for (const auto& old : amounts) {
            std::string name = old.first;
            resources(name);
            renamed.emplace(std::move(name), old.second);
        }
        amounts = std::move(renamed);
    }
    void affinity(std::vector<NodeTerm>& terms) {
        for (auto& term : terms) {
            for (auto& match : term.match_expressions) {
                for (auto& value : match.values) rename_value(match.key, value);
                rename_key(match.key);
            }
            for (auto& match : term.match_fields)
                for (auto& value : match.values) nodes(value);
        }
    }
    void find_compared(const ClusterSpec& cluster) {
        for (const auto& task : cluster.tasks)
            for (const auto& term : task.node_affinity)
                for (const auto& match : term.match_expressions)
                    if (match.op == MatchOperator::gt || match.op == MatchOperator::lt)
                        compared.insert(match.key);
    }
    void operator()(ClusterSpec& cluster) {
        for (auto& node : cluster.nodes) {
            nodes(node.name);
            for (auto& domain : node.network) domains(domain);
            labels(node.labels);
            amounts(node.resources);
            for (auto& group : node.devices) rename_class(group.device_class);
            for (auto& taint : node.taints) {
                rename_key(taint.key);
                values(taint.value);
            }
        }
        for (auto& task : cluster.tasks) {
            tasks(task.name);
            jobs(task.job);
            subgroups(task.subgroup);
            if (task.node) nodes(*task.node);
            labels(task.node_selector);
            affinity(task.node_affinity);
            amounts(task.resources);
            for (auto& name : task.device_classes) rename_class(name);
            for (auto& toleration : task.tolerations) {
                rename_key(toleration.key);
                values(toleration.value);
            }
            for (auto& term : task.anti_affinity) groups(term.group);
            for (auto& term : task.affinity) groups(term.group);
            for (auto& name : task.groups) groups(name);
            for (auto& term : task.avoid) groups(term.group);
            for (auto& term : task.near) groups(term.group);
            for (auto& term : task.spread) groups(term.group);
        }
        for (auto& job : cluster.jobs) {
            jobs(job.name);
            for (auto& subgroup : job.subgroups) subgroups(subgroup.name);
        }
        for (auto& budget : cluster.budgets) {
            budgets(budget.name);
            for (auto& task : budget.tasks) tasks(task);
            for (auto& group : budget.groups) groups(group);
        }
        for (auto& key : cluster.label_levels) rename_key(key);
    }
};

}  // namespace detail

GPUSCHED_EXPORT ClusterSpec anonymize(const ClusterSpec& cluster, std::uint64_t seed) {
    auto result = cluster;
    detail::Renaming renaming;
    renaming.find_compared(cluster);
    renaming(result);
    renaming.number(Rng(seed));
    renaming(result);
    return result;
}

}  // namespace gpusched::io
