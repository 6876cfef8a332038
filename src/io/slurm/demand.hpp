// SPDX-License-Identifier: Apache-2.0
// Resources of Slurm jobs: requests, allocations, and sums by node.
#pragma once

#include "io/slurm/values.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::io::detail::slurm {

/// The resources of a job on one node.
struct Share {
    std::int64_t cpus = 0, memory_mib = 0;
    std::vector<Gres> gres{};
};

/// Generic resources of a job.
/// @throws Unreadable
inline std::vector<Gres> gres_or_throw(std::string_view text, const JobRecord& job) {
    auto found = gres_of(text);
    if (!found)
        throw Unreadable{job.id + ": expected generic resources such as gpu:h100:8, found " +
                         in_quotes(text)};
    return *std::move(found);
}

/// Removes sums over all types from a list of trackable resources that also has the single types.
inline std::vector<Gres> without_sums(std::vector<Gres> list) {
    std::erase_if(list, [&](const Gres& sum) {
        std::int64_t typed = 0;
        for (const auto& item : list)
            if (item.name == sum.name && !item.type.empty()) typed += item.count;
        return sum.type.empty() && typed >= sum.count && typed > 0;
    });
    return list;
}

/// Part i of n equal parts of a sum; the first ones are larger if there is a remainder.
inline std::int64_t part_of(std::int64_t sum, std::size_t i, std::size_t n) {
    const auto parts = static_cast<std::int64_t>(n);
    return sum / parts + (static_cast<std::int64_t>(i) < sum % parts ? 1 : 0);
}

/// The resources of a running job on each of its nodes: as Slurm reports them, else equal parts of the
/// whole.
/// @throws Unreadable
inline std::vector<Share> running_shares(const JobRecord& job, const std::vector<std::string>& nodes,
                                         Expansion& left, ReportBuilder& report) {
    std::vector<Share> out(nodes.size());
    std::unordered_map<std::string_view, std::size_t> place;
    for (std::size_t i = 0; i < nodes.size(); ++i) place.emplace(nodes[i], i);
    std::int64_t cpus = 0, memory = 0;
    bool gres = false;
    for (std::size_t p = 0; p < job.parts.size(); ++p) {
        const auto& part = job.parts[p];
        const auto list = gres_or_throw(part.gres, job);
        const auto add = [&](std::size_t i) {
            auto& share = out[i];
            left.take(bytes_of(list));
            share.cpus += part.cpus;
            share.memory_mib = std::min(share.memory_mib + part.memory_mib, largest_quantity);
            share.gres.insert(share.gres.end(), list.begin(), list.end());
            cpus += part.cpus;
            memory = std::min(memory + part.memory_mib, largest_quantity);
            gres = gres || !list.empty();
        };
        if (part.nodes.empty()) {
            if (p < out.size()) add(p);
            continue;
        }
        const auto names = host_list(part.nodes, left);
        if (!names)
            throw Unreadable{job.id + ": expected nodes such as gpu[01-04], found " + in_quotes(part.nodes)};
        for (const auto& name : *names)
            if (const auto found = place.find(name); found != place.end()) add(found->second);
    }
    const auto& whole = job.allocated.empty() ? job.requested : job.allocated;
    const auto all_cpus = tres_of(whole, "cpu").value_or(job.cpus.value_or(0));
    const auto all_memory = tres_of(whole, "mem", 'M').value_or(0);
    const auto all_gres = without_sums(gres_of(whole).value_or(std::vector<Gres>{}));
    bool split = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (cpus == 0 && all_cpus > 0) out[i].cpus = part_of(all_cpus, i, out.size()), split = true;
        if (memory == 0 && all_memory > 0)
            out[i].memory_mib = part_of(all_memory, i, out.size()), split = true;
        if (gres) continue;
        for (auto item : all_gres) {
            split = true;
            left.take(bytes_of(item));
            item.count = part_of(item.count, i, out.size());
            out[i].gres.push_back(std::move(item));
        }
    }
    if (split && nodes.size() > 1)
        report.approximated("Job", "allocation of each node", Errs::either,
                            "unknown (scontrol show jobs -d shows it): equal parts of the whole", job.id);
    else
        report.exact("Job", "allocation");
    return out;
}

/// The resources that a pending job requests from each of its nodes.
/// @throws Unreadable
inline Share pending_share(const JobRecord& job, std::size_t nodes, ReportBuilder& report) {
    Share out;
    const auto count = static_cast<std::int64_t>(std::max<std::size_t>(nodes, 1));
    bool parts = false;
    const auto each = [&](std::int64_t sum) {
        parts = parts || (count > 1 && sum % count != 0);
        return sum / count + (sum % count != 0 ? 1 : 0);
    };
    const auto cpus = job.cpus ? *job.cpus : tres_of(job.requested, "cpu").value_or(0);
    out.cpus = std::max(job.cpus_per_node.value_or(0), each(cpus));
    if (job.mib_per_node.value_or(0) > 0)
        out.memory_mib = *job.mib_per_node;
    else if (job.mib_per_cpu.value_or(0) > 0)
        out.memory_mib =
            std::min(*job.mib_per_cpu * std::min<std::int64_t>(out.cpus, 1'000'000), largest_quantity);
    else
        out.memory_mib = each(tres_of(job.requested, "mem", 'M').value_or(0));
    out.gres = gres_or_throw(job.per_node, job);
    const auto add = [&](std::vector<Gres> list, std::int64_t times, bool of_all) {
        for (auto& item : list) {
            if (std::ranges::any_of(out.gres, [&](const Gres& known) {
                    return known.name == item.name &&
                           (known.type.empty() || item.type.empty() || known.type == item.type);
                }))
                continue;
            item.count = std::min(item.count, largest_quantity / 1'000'000) * times;
            if (of_all) item.count = each(item.count);
            out.gres.push_back(std::move(item));
        }
    };
    add(gres_or_throw(job.per_task, job), std::clamp<std::int64_t>(job.tasks.value_or(count), 1, 1'000'000),
        true);
    add(gres_or_throw(job.per_job, job), 1, true);
    add(without_sums(gres_of(job.requested).value_or(std::vector<Gres>{})), 1, true);
    // NumCPUs and ReqTRES may lack the requests per GPU.
    std::int64_t gpus = 0;
    for (const auto& item : out.gres)
        if (item.name == "gpu") gpus += std::min(item.count, std::int64_t{1'000'000});
    const auto with_gpus = [&](std::int64_t has, const std::string& text) {
        std::int64_t most = 0;
        for (const auto& item : gres_or_throw(text, job))
            if (item.name == "gpu") most = std::max(most, item.count);
        return std::max(has, std::min(most, largest_quantity / 1'000'000) * gpus);
    };
    out.cpus = with_gpus(out.cpus, job.cpus_per_gpu);
    out.memory_mib = std::min(with_gpus(out.memory_mib, job.mib_per_gpu), largest_quantity);
    if (parts)
        report.approximated("Job", "request of each node", Errs::too_strict,
                            "a request for all nodes together counts in equal parts, rounded up", job.id);
    else
        report.exact("Job", "request");
    if (!job.per_socket.empty())
        report.approximated("Job", "request by socket", Errs::too_lax,
                            "the sum counts, not how sockets share it", job.id);
    return out;
}

/// Sums of the resources of tasks, by node. Nodes that have less are raised to the sum.
class HeldResources {
  public:
    HeldResources(std::vector<NodeSpec>& nodes, ReportBuilder& report)
        : nodes_(nodes), report_(report), held_(nodes.size()) {}

    /// Adds a task on a node, clipped to the model's amounts.
    void hold(std::size_t n, TaskSpec& task) {
        auto& held = held_[n];
        const auto take = [&](std::int64_t& sum, std::int64_t& amount) {
            if (amount > most_of_a_node - sum) {
                amount = most_of_a_node - sum;
                report_.approximated("Job", "allocations beyond 5 * 10^11", Errs::neither,
                                     "clipped, with all tasks of their node together", task.name);
            }
            sum += amount;
        };
        take(held.cpu_milli, task.cpu_milli);
        take(held.memory_mib, task.memory_mib);
        for (auto& [name, amount] : task.resources) take(held.resources[name], amount);
    }
    [[nodiscard]] const TaskSpec& held(std::size_t n) const { return held_[n]; }

    /// Raises every node that has less than its tasks hold; such a node receives no task.
    void fit() {
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            auto& node = nodes_[n];
            std::string beyond;
            const auto fit = [&](const std::string& name, std::int64_t& has, std::int64_t held) {
                if (held <= has) return;
                beyond += concat(beyond.empty() ? "" : ", ", name, " ", held, " of ", has);
                has = held;
            };
            fit("CPU (thousandths)", node.cpu_milli, held_[n].cpu_milli);
            fit("memory (MiB)", node.memory_mib, held_[n].memory_mib);
            for (const auto& [name, held] : held_[n].resources) {
                auto has = node.resources.contains(name) ? node.resources[name] : 0;
                fit(name, has, held);
                if (has > 0) node.resources[name] = has;
            }
            if (beyond.empty()) continue;
            node.schedulable = false;
            node.taints.push_back(not_ready());
            report_.approximated(
                "Node", "over-committed", Errs::too_strict,
                "its jobs hold more than it has: it gets as much as they hold, and receives no task",
                node.name + ": " + beyond);
        }
    }

  private:
    std::vector<NodeSpec>& nodes_;
    ReportBuilder& report_;
    std::vector<TaskSpec> held_;  // sums, by node
};

}  // namespace gpusched::io::detail::slurm
