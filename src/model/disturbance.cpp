// SPDX-License-Identifier: Apache-2.0
// The pods that a plan disturbs, in numbers and words.
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/disturbance.hpp>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace gpusched {

namespace detail {

constexpr const char* no_owner = "none";
constexpr const char* unknown_owner = "unknown";

// The kind of a task's owner, as in `Disturbance::by_owner_kind`.
static std::string owner_kind(const PlanSpec::Task& task) {
    if (!task.owner_kind) return task.job.empty() ? no_owner : unknown_owner;
    return task.owner_kind->empty() ? no_owner : *task.owner_kind;
}

static std::string counted(std::int64_t count, const std::string& noun) {
    return concat(count, " ", noun, count == 1 ? "" : "s");
}

static std::string gpus_text(double gpus) {
    const auto milli = static_cast<std::int64_t>(gpus * 1000 + 0.5);
    auto text = std::to_string(milli / 1000);
    if (milli % 1000 == 0) return text + (milli == 1000 ? " GPU" : " GPUs");
    auto digits = std::to_string(1000 + milli % 1000).substr(1);
    while (digits.back() == '0') digits.pop_back();
    return text + "." + digits + " GPUs";
}

static std::string joined_parts(const std::vector<std::string>& parts) {
    std::string text;
    for (const auto& part : parts) text += (text.empty() ? "" : ", ") + part;
    return text;
}

}  // namespace detail

GPUSCHED_EXPORT std::string_view namespace_of(const PlanSpec::Task& task) {
    const auto slash = task.name.find('/');
    if (slash == std::string::npos) return {};
    const auto with_slash = std::string_view(task.name).substr(0, slash + 1);
    if (!task.job.empty() && !task.job.starts_with(with_slash)) return {};
    return with_slash.substr(0, slash);
}

GPUSCHED_EXPORT std::map<std::string_view, Treatment> treatments(const PlanSpec& plan) {
    std::map<std::string_view, Treatment> out;
    for (const auto& task : plan.evictions) out[task] = Treatment::evict;
    for (const auto& move : plan.moves) {
        auto& how = out.try_emplace(move.task, Treatment::copy).first->second;
        if (move.how == MoveMode::restart) how = Treatment::restart;
    }
    for (const auto& placement : plan.placements) {
        const auto [found, added] = out.try_emplace(placement.task, Treatment::start);
        if (!added && found->second == Treatment::evict) found->second = Treatment::restart;
    }
    return out;
}

GPUSCHED_EXPORT Disturbance disturbance(const PlanSpec& plan) {
    Disturbance out;
    std::set<std::string> owners;
    std::int64_t gpu_milli = 0;
    bool known = true;
    for (const auto& [name, how] : treatments(plan)) {
        if (how == Treatment::start) continue;
        ++out.pods;
        ++(how == Treatment::copy ? out.copied : how == Treatment::restart ? out.restarted : out.evicted);
        const auto* const task = plan.find_task(name);
        known = known && task != nullptr;
        if (task == nullptr) continue;
        ++out.by_namespace[std::string(namespace_of(*task))];
        gpu_milli += task->gpu_milli;
        const auto kind = detail::owner_kind(*task);
        ++out.by_owner_kind[kind];
        if (kind != detail::no_owner) owners.insert(task->job);
    }
    if (known) {
        out.owners = std::ssize(owners);
        out.gpus = static_cast<double>(gpu_milli) / 1000;
    } else {
        out.by_owner_kind.clear();
        out.by_namespace.clear();
    }
    return out;
}

GPUSCHED_EXPORT std::string to_text(const Disturbance& disturbance) {
    const bool of_slurm = disturbance.by_owner_kind.contains(detail::slurm_job);
    if (disturbance.pods == 0) return "disturbs nothing.";
    auto text = "disturbs " + detail::counted(disturbance.pods, of_slurm ? "task" : "pod");
    std::vector<std::pair<std::string, std::int64_t>> kinds(disturbance.by_owner_kind.begin(),
                                                            disturbance.by_owner_kind.end());
    // Pods without an owner come last.
    std::ranges::stable_sort(
        kinds, {}, [](const auto& kind) { return std::pair(kind.first == detail::no_owner, -kind.second); });
    std::vector<std::string> parts;
    for (const auto& [kind, count] : kinds)
        parts.push_back(std::to_string(count) + (kind == detail::no_owner ? " without an owner"
                                                 : kind == detail::unknown_owner
                                                     ? " with an owner of unknown kind"
                                                 : kind.ends_with('s') ? " of " + kind
                                                                       : " of " + kind + "s"));
    const bool all_alike = kinds.size() == 1 && (of_slurm || kinds.front().first == detail::unknown_owner);
    if (!all_alike && !parts.empty()) text += " (" + detail::joined_parts(parts) + ")";
    if (disturbance.owners.value_or(0) > 0)
        text += " of " + detail::counted(*disturbance.owners, of_slurm ? "job" : "owner");
    if (disturbance.by_namespace.size() > 1)
        text += concat(" in ", disturbance.by_namespace.size(), " namespaces");
    if (disturbance.gpus) text += ", " + detail::gpus_text(*disturbance.gpus);
    parts.clear();
    if (disturbance.restarted > 0) parts.push_back(std::to_string(disturbance.restarted) + " restarted");
    if (disturbance.copied > 0) parts.push_back(std::to_string(disturbance.copied) + " copied");
    if (disturbance.evicted > 0) parts.push_back(std::to_string(disturbance.evicted) + " evicted");
    return text + ": " + detail::joined_parts(parts) + ".";
}

GPUSCHED_EXPORT void describe_tasks(PlanSpec& plan, const Cluster& cluster) {
    plan.tasks.clear();
    const auto& t = cluster.inventory().tasks;
    for (const auto& [name, how] : treatments(plan)) {
        const auto found = t.names.find(name);
        if (!found) continue;
        const auto i = *found;
        PlanSpec::Task task{.name = std::string(name)};
        if (t.job[i] != none<JobId>) task.job = cluster.inventory().job_names[index(t.job[i])];
        if (i < t.owner_kind.size() && t.owner_kind[i] != TaskTable::unknown_kind)
            task.owner_kind = cluster.inventory().owner_kinds[t.owner_kind[i]];
        task.gpu_milli = std::int64_t{t.gpu_count[i]} * t.gpu_share_milli[i];
        plan.tasks.push_back(std::move(task));
    }
}

}  // namespace gpusched
