// SPDX-License-Identifier: Apache-2.0
// Joint allocation: the problem of a cluster, and its model.
#include "model/pod_room.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/milp/joint_allocation.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::milp {

GPUSCHED_EXPORT double spread_entropy(const std::vector<int>& pods) {
    const double total = std::accumulate(pods.begin(), pods.end(), 0.0);
    double entropy = 0;
    for (const int n : pods)
        if (n > 0) entropy -= n / total * std::log(n / total);
    return entropy;
}

namespace joint_detail {

constexpr std::int64_t most_slots = 1'000'000'000;

/// Tasks with equal keys fit on the same nodes, in the same numbers.
/// @param loans whether Standby tasks run, which lend GPUs only to LP tasks
static auto shape_key(const Cluster& cluster, TaskId task, bool loans) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto i = index(task);
    return std::tuple(t.requirement[i], t.extras[i], t.gpu_count[i], t.gpu_share_milli[i],
                      t.gpu_memory_mib[i], t.cpu_milli[i], t.memory_mib[i],
                      inv.task_affinities[t.affinities[i]].guaranteed_level(),
                      loans && cluster.may_borrow(task));
}

static bool any_loans(const Cluster& cluster) {
    const auto& t = cluster.inventory().tasks;
    const auto tasks = cluster.tasks();
    return std::any_of(tasks.begin(), tasks.end(),
                       [&](TaskId task) { return t.is(TaskTrait::lends, task) && cluster.is_placed(task); });
}

/// The pods like `small` that always fit in the place of one pod like `large`, on every node that can host a
/// `large`.
static int in_place(const Cluster& cluster, TaskId small, TaskId large, bool loans) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto s = index(small), l = index(large);
    // Borrowed GPUs host no other pods.
    const bool borrowed = loans && cluster.may_borrow(large) && !cluster.may_borrow(small);
    // Fractions, devices and localities cannot be divided by arithmetic.
    if (borrowed || cluster.is_fraction(small) || t.extras[s] != 0 ||
        (t.gpu_count[s] > 1 && inv.task_affinities[t.affinities[s]].guaranteed_level()))
        return 0;
    std::int64_t most = most_slots;
    const auto divide = [&](std::int64_t whole, std::int64_t part) {
        if (part > 0) most = std::min(most, whole / part);
    };
    divide(cluster.is_fraction(large) ? 0 : t.gpu_count[l], t.gpu_count[s]);
    divide(t.cpu_milli[l], t.cpu_milli[s]);
    divide(t.memory_mib[l], t.memory_mib[s]);
    if (most == 0 || most == most_slots) return 0;
    for (const auto node : cluster.nodes()) {
        if (gpusched::detail::pod_room(cluster, large, node, 1) == 0) continue;
        if (!inv.eligible(small, node)) return 0;
        if (t.gpu_count[s] > 0 &&
            (candidate_gpus(cluster, large, node) & ~candidate_gpus(cluster, small, node)) != 0)
            return 0;
    }
    return static_cast<int>(most);
}

}  // namespace joint_detail

GPUSCHED_EXPORT JointProblem joint_problem(const Cluster& cluster, std::span<const JobOfSample> jobs,
                                           std::optional<Level> level) {
    const auto& inv = cluster.inventory();
    const Level at = level.value_or(inv.deepest_level());
    if (at != node_level) require_range("level", at, 0, std::max(0, inv.named_levels() - 1));
    if (at >= inv.named_levels())
        throw InvalidInput(bad_value("level", std::to_string(at), "a level that the cluster's network has"));
    JointProblem problem;
    std::set<std::string> names;
    for (std::size_t d = 0; d < inv.domain_count(at); ++d) {
        auto name = inv.domain_name(at, make_id<DomainId>(d));
        // A node of unknown position can have the name of a domain.
        while (!name.empty() && !names.insert(name).second) name += " (node)";
        problem.switches.push_back(std::move(name));
    }
    const bool loans = joint_detail::any_loans(cluster);
    Problems problems;
    std::vector<TaskId> samples;  // sample of each shape
    std::map<decltype(joint_detail::shape_key(cluster, TaskId{}, loans)), int> shapes;
    for (const auto& job : jobs) {
        const auto owner = "job " + gpusched::quoted(job.name);
        if (!cluster.contains(job.sample) || cluster.is_placed(job.sample)) {
            problems.add(
                bad_value("sample", "#" + std::to_string(index(job.sample)), "a pending task", owner));
            continue;
        }
        if (gpusched::detail::needs_trial(cluster, job.sample))
            problems.add(
                owner +
                ": its pods are in group constraints (anti-affinity, affinity, groups to avoid, near or "
                "to spread), which joint allocation does not hold; allocate_many does");
        auto mode = job.mode;
        const auto& affinities = inv.task_affinities[inv.tasks.affinities[index(job.sample)]];
        if (const auto& wish = affinities.network_affinity) {
            if (wish->level != at)
                problems.add(bad_value("network_affinity.level", std::to_string(wish->level),
                                       std::to_string(at) + ", the level of the joint allocation", owner));
            if (wish->mode == NetworkMode::required) mode = NetworkMode::required;
        }
        const auto [shape, fresh] = shapes.try_emplace(joint_detail::shape_key(cluster, job.sample, loans),
                                                       static_cast<int>(samples.size()));
        if (fresh) samples.push_back(job.sample);
        problem.jobs.push_back({job.name, job.pods, shape->second, mode});
    }
    problems.throw_if_any();
    for (const auto sample : samples) {
        std::vector<std::int64_t> slots(problem.switches.size(), 0);
        for (const auto node : cluster.nodes()) {
            auto& here = slots[index(inv.domain(at, node))];
            here =
                std::min(joint_detail::most_slots,
                         here + gpusched::detail::pod_room(cluster, sample, node, joint_detail::most_slots));
        }
        auto& shape = problem.shapes.emplace_back();
        shape.gpu_milli = cluster.gpu_milli(sample);
        shape.slots.assign(slots.begin(), slots.end());
        for (const auto other : samples)
            shape.in_place.push_back(other == sample ? 1
                                                     : joint_detail::in_place(cluster, other, sample, loans));
    }
    return problem;
}

GPUSCHED_EXPORT JointModel joint_allocation(const JointProblem& problem) {
    Problems problems;
    const auto J = problem.jobs.size(), S = problem.switches.size(), K = problem.shapes.size();
    for (std::size_t k = 0; k < K; ++k) {
        const auto& shape = problem.shapes[k];
        const auto owner = "shape " + std::to_string(k);
        check_range(problems, "gpu_milli", shape.gpu_milli, 0, 1'000'000'000, owner);
        check_size(problems, "slots", shape.slots.size(), S, ", one per switch", owner);
        if (!shape.in_place.empty())
            check_size(problems, "in_place", shape.in_place.size(), K, ", one per shape", owner);
        for (const int n : shape.slots) check_at_least(problems, "slots", n, 0, owner);
        for (const int n : shape.in_place) check_at_least(problems, "in_place", n, 0, owner);
    }
    double all_gpus = 0, all_pods = 0;
    std::set<std::string> names;
    for (std::size_t j = 0; j < J; ++j) {
        const auto& job = problem.jobs[j];
        const auto owner = "job " + gpusched::quoted(job.name.empty() ? std::to_string(j) : job.name);
        if (!job.name.empty() && !names.insert(job.name).second) problems.add(owner + ": appears twice");
        check_range(problems, "pods", job.pods, 1, 1'000'000, owner);
        if (!check_range(problems, "shape", job.shape, 0, static_cast<int>(K) - 1, owner)) continue;
        all_pods += job.pods;
        all_gpus += static_cast<double>(job.pods) *
                    static_cast<double>(problem.shapes[static_cast<std::size_t>(job.shape)].gpu_milli);
    }
    problems.throw_if_any();

    const auto shape_of = [&](std::size_t j) { return static_cast<std::size_t>(problem.jobs[j].shape); };
    const auto in_place = [&](std::size_t large, std::size_t small) {
        const auto& list = problem.shapes[large].in_place;
        return list.empty() ? int{large == small} : list[small];
    };
    // The most pods of a job on a switch.
    const auto room_of = [&](std::size_t j, std::size_t s) {
        const auto& job = problem.jobs[j];
        const int room = std::min(job.pods, problem.shapes[shape_of(j)].slots[s]);
        return job.mode == NetworkMode::required && room < job.pods ? 0 : room;
    };
    int most = 0;  // most pods of any job on any switch
    for (std::size_t j = 0; j < J; ++j)
        for (std::size_t s = 0; s < S; ++s) most = std::max(most, room_of(j, s));
    ModelBuilder model("joint allocation");
    IndexMap z("z", J, S, most + 1), placed("placed", J);
    const double worth = std::log(std::max<std::size_t>(S, 1)) + 1;
    const auto label = [&](const char* what, std::size_t j, std::size_t s) {
        return std::string(what) + "(" + problem.jobs[j].name + "," + problem.switches[s];
    };
    for (std::size_t j = 0; j < J; ++j) {
        const auto& job = problem.jobs[j];
        placed(j) = model.binary("placed(" + job.name + ")", -worth);
        const double weight = all_gpus > 0
                                  ? static_cast<double>(job.pods) *
                                        static_cast<double>(problem.shapes[shape_of(j)].gpu_milli) / all_gpus
                                  : job.pods / all_pods;
        for (std::size_t s = 0; s < S; ++s) {
            const int room = room_of(j, s);
            const int step = job.mode == NetworkMode::required ? job.pods : 1;
            for (int n = 0; n <= room && room > 0; n += step) {
                const double part = static_cast<double>(n) / job.pods;
                z(j, s, n) = model.binary(label("z", j, s) + "," + std::to_string(n) + ")",
                                          n > 0 ? -weight * part * std::log(part) : 0);
            }
        }
    }
    std::vector<Entry> e;
    for (std::size_t j = 0; j < J; ++j) {
        std::vector<Entry> gang{{placed(j), -static_cast<double>(problem.jobs[j].pods)}};
        for (std::size_t s = 0; s < S; ++s) {
            e.clear();
            for (int n = 0; n <= most; ++n) {
                if (z(j, s, n) < 0) continue;
                e.push_back({z(j, s, n), 1});
                gang.push_back({z(j, s, n), static_cast<double>(n)});
            }
            if (!e.empty()) model.equal("count", label("count", j, s) + ")", e, 1);
        }
        model.equal("gang", "gang(" + problem.jobs[j].name + ")", gang, 0);
    }
    for (std::size_t s = 0; s < S; ++s)
        for (std::size_t k = 0; k < K; ++k) {
            e.clear();
            for (std::size_t j = 0; j < J; ++j) {
                const int each = in_place(shape_of(j), k);
                for (int n = 1; n <= most && each > 0; ++n)
                    if (z(j, s, n) >= 0) e.push_back({z(j, s, n), static_cast<double>(n) * each});
            }
            model.at_most("capacity", "capacity(" + problem.switches[s] + "," + std::to_string(k) + ")", e,
                          problem.shapes[k].slots[s]);
        }
    model.add_index(std::move(z));
    model.add_index(std::move(placed));
    return {model.finish(), problem, worth};
}

GPUSCHED_EXPORT JointAllocation JointModel::decode(std::span<const double> values) const {
    require_values(*this, values);
    const auto& z = index("z");
    JointAllocation result(problem.jobs.size(), std::vector<int>(problem.switches.size(), 0));
    for (int j = 0; j < z.extents[0]; ++j)
        for (int s = 0; s < z.extents[1]; ++s)
            for (int n = 1; n < z.extents[2]; ++n)
                if (z(j, s, n) >= 0 && values[static_cast<std::size_t>(z(j, s, n))] > 0.5)
                    result[static_cast<std::size_t>(j)][static_cast<std::size_t>(s)] = n;
    return result;
}

GPUSCHED_EXPORT std::vector<double> JointModel::encode(const JointAllocation& allocation) const {
    const auto& z = index("z");
    std::vector<double> values(static_cast<std::size_t>(columns()), 0.0);
    require_size("allocation", allocation.size(), problem.jobs.size());
    for (int j = 0; j < z.extents[0]; ++j) {
        const auto& pods = allocation[static_cast<std::size_t>(j)];
        require_size("allocation[job]", pods.size(), problem.switches.size());
        int total = 0;
        for (int s = 0; s < z.extents[1]; ++s) {
            const int n = pods[static_cast<std::size_t>(s)];
            total += n;
            if (n == 0 && z(j, s, 0) < 0) continue;
            if (n < 0 || n >= z.extents[2] || z(j, s, n) < 0)
                throw InvalidInput(
                    bad_value("pods", std::to_string(n), "a count that the switch has slots for"));
            values[static_cast<std::size_t>(z(j, s, n))] = 1;
        }
        if (total != 0 && total != problem.jobs[static_cast<std::size_t>(j)].pods)
            throw InvalidInput(bad_value("pods in all", std::to_string(total), "none or all of the job's"));
        values[static_cast<std::size_t>(index("placed")(j))] = total > 0 ? 1 : 0;
    }
    return values;
}

}  // namespace gpusched::milp
