// SPDX-License-Identifier: Apache-2.0
// Replaces the names of a snapshot by numbered ones.
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/io/anonymize.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io {

namespace detail {

/// Removes leading digits; false if there are none.
constexpr bool take_digits(std::string_view& text) noexcept {
    const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(end);
    return end > 0;
}

constexpr bool take_prefix(std::string_view& text, std::string_view prefix) noexcept {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

/// Whether it is the profile of a MIG instance such as `1g.10gb` or `1g.10gb+me`. Real profiles have at most
/// three digits per number.
constexpr bool is_mig_profile(std::string_view text) noexcept {
    constexpr std::array<std::string_view, 11> extensions{
        "", "+me", ".me", "-me", "+me.all", ".me.all", "+gfx", ".gfx", "+me.gfx", "-gfx", "-me.all"};
    const auto whole = text.size();
    if (!take_digits(text) || whole - text.size() > 1 || !take_prefix(text, "g.")) return false;
    const auto before = text.size();
    if (!take_digits(text) || before - text.size() > 3 || !take_prefix(text, "gb")) return false;
    return std::ranges::find(extensions, text) != extensions.end();
}

/// Whether it is a compute and memory partition of AMD such as `cpx_nps4`.
constexpr bool is_amd_partition(std::string_view text) noexcept {
    constexpr std::array<std::string_view, 5> compute{"spx", "dpx", "tpx", "qpx", "cpx"};
    if (text.size() != std::string_view("cpx_nps4").size()) return false;
    return std::ranges::find(compute, text.substr(0, 3)) != compute.end() && text.substr(3, 4) == "_nps" &&
           std::string_view("1248").find(text[7]) != text.npos;
}

/// Whether every cluster has this kind of controller. Other kinds may name a product or a customer.
constexpr bool is_public_owner_kind(std::string_view kind) noexcept {
    constexpr std::array<std::string_view, 7> known{"",          "Deployment", "ReplicaSet", "StatefulSet",
                                                    "DaemonSet", "Job",        "Slurm job"};
    return std::ranges::find(known, kind) != known.end();
}

/// Whether a class of devices has a name that is the same in every cluster, since the vendor chose it: MIG
/// profiles, alone, as Slurm's type or as a resource of Kubernetes, partitions of AMD, and whole or shared
/// cards of `nvidia.com/gpu`.
constexpr bool is_public_device_class(std::string_view name) noexcept {
    if (take_prefix(name, "nvidia.com/gpu")) {
        if (take_prefix(name, " (MIG "))
            return name.ends_with(')') && is_mig_profile(name.substr(0, name.size() - 1));
        return name.empty() || name == ".shared" || name == " (shared)";
    }
    if (take_prefix(name, "amd.com/")) return is_amd_partition(name);
    if (take_prefix(name, "nvidia.com/mig-")) {
        if (name.ends_with(".shared")) name.remove_suffix(std::string_view(".shared").size());
    } else {
        take_prefix(name, "gpu:");
    }
    return is_mig_profile(name);
}

/// Old names of one kind and their new names. First all are added, then numbered, then looked up.
class Pseudonyms {
  public:
    explicit Pseudonyms(const char* prefix) : prefix_(prefix) {}

    /// First pass: records the name. Second pass: replaces it.
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
    std::set<std::string> compared{};  // keys with values compared as numbers: their integers are kept

    void number(Rng rng) {
        for (auto* kind : {&nodes, &tasks, &jobs, &budgets}) kind->number();  // their order breaks ties
        std::uint64_t stream = 0;
        for (auto* kind : {&domains, &groups, &keys, &values, &resources, &devices, &subgroups})
            kind->number(rng.split(stream++));
    }
    /// Replaces the keys and values of a map.
    template <class Map, class Rename>
    static void rename_all(Map& map, Rename&& rename) {
        Map renamed;
        while (!map.empty()) {
            auto entry = map.extract(map.begin());
            rename(entry.key(), entry.mapped());
            renamed.insert(std::move(entry));
        }
        map = std::move(renamed);
    }
    void labels(Labels& labels) {
        rename_all(labels, [&](std::string& key, std::string& value) {
            rename_value(key, value);
            rename_key(key);
        });
    }
    // Other values than integers never match a comparison, so they can be renamed.
    void rename_value(const std::string& key, std::string& value) {
        if (!compared.contains(key) || !gpusched::detail::label_integer(value)) values(value);
    }
    void rename_class(std::string& name) {
        if (!is_public_device_class(name)) devices(name);
    }
    // The keys for host names and for cordons have a fixed meaning.
    void rename_key(std::string& key) {
        if (key != "kubernetes.io/hostname" && key != gpusched::detail::cordon_taint) keys(key);
    }
    void amounts(Resources& amounts) {
        rename_all(amounts, [&](std::string& name, auto&) { resources(name); });
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
            if (task.waiting) task.waiting->detail.clear();
            task.note.clear();
            if (task.owner_kind && !is_public_owner_kind(*task.owner_kind)) task.owner_kind = "other";
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
            if (job.waiting) job.waiting->detail.clear();
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
