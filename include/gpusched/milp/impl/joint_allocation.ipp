#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/milp/joint_allocation.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace GPUSCHED_NAMESPACE::milp {

GPUSCHED_INLINE double spread_entropy(const std::vector<int>& pods) {
    const double total = std::accumulate(pods.begin(), pods.end(), 0.0);
    double entropy = 0;
    for (const int n : pods)
        if (n > 0) entropy -= n / total * std::log(n / total);
    return entropy;
}

GPUSCHED_INLINE std::vector<SwitchRoom> switch_rooms(const Cluster& cluster, std::optional<Level> level) {
    const auto& inventory = cluster.inventory();
    const Level at = level.value_or(inventory.deepest_level());
    if (at != node_level) require_range("level", at, 0, std::max(0, inventory.named_levels() - 1));
    if (at >= inventory.named_levels())
        throw InvalidInput(bad_value("level", std::to_string(at), "a level that the cluster's network has"));
    std::vector<SwitchRoom> rooms(inventory.domain_count(at));
    for (std::size_t d = 0; d < rooms.size(); ++d)
        rooms[d].name = inventory.domain_name(at, make_id<DomainId>(d));
    for (const auto node : cluster.nodes()) {
        if (!inventory.nodes.receives(node)) continue;
        rooms[index(inventory.domain(at, node))].idle.push_back(gpu_count(cluster.idle_gpus(node)));
    }
    return rooms;
}

GPUSCHED_INLINE JointModel joint_allocation(const JointProblem& problem) {
    Problems problems;
    double all_gpus = 0;
    std::set<int> shapes;
    std::set<std::string> names;
    for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
        const auto& job = problem.jobs[j];
        const auto owner = "job " + gpusched::quoted(job.name.empty() ? std::to_string(j) : job.name);
        if (!job.name.empty() && !names.insert(job.name).second) problems.add(owner + ": appears twice");
        check_range(problems, "pods", job.pods, 1, 1'000'000, owner);
        check_range(problems, "gpus", job.gpus, 1, 1'000'000, owner);
        all_gpus += static_cast<double>(job.pods) * job.gpus;
        shapes.insert(job.gpus);
    }
    for (const auto& room : problem.switches)
        for (const int idle : room.idle)
            check_at_least(problems, "idle", idle, 0, "switch " + gpusched::quoted(room.name));
    problems.throw_if_any();

    const auto J = static_cast<int>(problem.jobs.size()), S = static_cast<int>(problem.switches.size());
    const auto slots = [&](int s, int shape) {
        std::int64_t sum = 0;
        for (const int idle : problem.switches[static_cast<std::size_t>(s)].idle) sum += idle / shape;
        return static_cast<int>(std::min<std::int64_t>(sum, 1'000'000'000));
    };
    const auto job_at = [&](int j) -> const SwitchJob& { return problem.jobs[static_cast<std::size_t>(j)]; };
    int most = 0;  // pods that any job can have on any switch
    for (const auto& job : problem.jobs)
        for (int s = 0; s < S; ++s) most = std::max(most, std::min(job.pods, slots(s, job.gpus)));
    ModelBuilder model("joint allocation");
    IndexMap z("z", {J, S, most + 1}), placed("placed", {J});
    const double worth = std::log(std::max(S, 1)) + 1;
    const auto label = [&](const char* what, int j, int s) {
        return std::string(what) + "(" + job_at(j).name + "," +
               problem.switches[static_cast<std::size_t>(s)].name;
    };
    for (int j = 0; j < J; ++j) {
        const auto& job = job_at(j);
        placed(j) = model.binary("placed(" + job.name + ")", -worth);
        const double weight = static_cast<double>(job.pods) * job.gpus / all_gpus;
        for (int s = 0; s < S; ++s) {
            const int room = std::min(job.pods, slots(s, job.gpus));
            for (int n = 0; n <= room && room > 0; ++n) {
                const double part = static_cast<double>(n) / job.pods;
                z(j, s, n) = model.binary(label("z", j, s) + "," + std::to_string(n) + ")",
                                          n > 0 ? -weight * part * std::log(part) : 0);
            }
        }
    }
    std::vector<Entry> e;
    for (int j = 0; j < J; ++j) {
        std::vector<Entry> gang{{placed(j), -static_cast<double>(job_at(j).pods)}};
        for (int s = 0; s < S; ++s) {
            e.clear();
            for (int n = 0; n <= most; ++n) {
                if (z(j, s, n) < 0) continue;
                e.push_back({z(j, s, n), 1});
                gang.push_back({z(j, s, n), static_cast<double>(n)});
            }
            if (!e.empty()) model.equal("count", label("count", j, s) + ")", e, 1);
        }
        model.equal("gang", "gang(" + job_at(j).name + ")", gang, 0);
    }
    for (int s = 0; s < S; ++s)
        for (const int shape : shapes) {
            e.clear();
            for (int j = 0; j < J; ++j)
                for (int n = 1; n <= most; ++n)
                    if (z(j, s, n) >= 0)
                        e.push_back({z(j, s, n), static_cast<double>(n) * (job_at(j).gpus / shape)});
            model.at_most("capacity",
                          "capacity(" + problem.switches[static_cast<std::size_t>(s)].name + "," +
                              std::to_string(shape) + ")",
                          e, slots(s, shape));
        }
    model.add_index(std::move(z));
    model.add_index(std::move(placed));
    return {model.finish(), problem, worth};
}

GPUSCHED_INLINE JointAllocation JointModel::decode(std::span<const double> values) const {
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

GPUSCHED_INLINE std::vector<double> JointModel::encode(const JointAllocation& allocation) const {
    const auto& z = index("z");
    std::vector<double> values(static_cast<std::size_t>(columns()), 0.0);
    if (allocation.size() != problem.jobs.size())
        throw InvalidInput(bad_value("entries of allocation", std::to_string(allocation.size()),
                                     std::to_string(problem.jobs.size())));
    for (int j = 0; j < z.extents[0]; ++j) {
        const auto& pods = allocation[static_cast<std::size_t>(j)];
        if (pods.size() != problem.switches.size())
            throw InvalidInput(bad_value("entries of allocation[job]", std::to_string(pods.size()),
                                         std::to_string(problem.switches.size())));
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

}  // namespace GPUSCHED_NAMESPACE::milp
