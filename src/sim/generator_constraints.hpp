// SPDX-License-Identifier: Apache-2.0
// The generator's constraints: devices and labels of nodes, tasks that request the devices, and constraints
// of jobs. All constraints hold in the generated cluster.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/spec.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::sim::detail {

inline constexpr const char* zone_label = "topology.kubernetes.io/zone";
inline constexpr const char* rack_label = "topology.example.com/rack";
inline constexpr const char* hostname_label = "kubernetes.io/hostname";
inline constexpr const char* product_label = "nvidia.com/gpu.product";
inline constexpr const char* rdma_resource = "rdma/hca";

/// Shares of preset "constrained" for options that are absent.
inline constexpr ConstraintShares usual_shares{.mig_fraction = 0.1,
                                               .shared_fraction = 0.1,
                                               .large_fraction = 0.03,
                                               .rdma_fraction = 0.3,
                                               .named_node_fraction = 0.05,
                                               .spread_fraction = 0.3,
                                               .avoid_fraction = 0.3,
                                               .near_fraction = 0.1,
                                               .budget_fraction = 0.3,
                                               .restart_fraction = 0.2,
                                               .suspend_fraction = 0.05,
                                               .fixed_fraction = 0.05,
                                               .gang_fraction = 0.3};

/// Returns the shares with values for all fields: for absent ones the preset's.
inline ConstraintShares effective_shares(const GeneratorOptions& options) {
    auto shares = options.constraints;
    visit_fields(std::type_identity<ConstraintShares>{}, [&](const char*, auto share, auto...) {
        if (!(shares.*share)) shares.*share = options.preset == "constrained" ? *(usual_shares.*share) : 0.0;
    });
    return shares;
}

/// Adds labels and devices to nodes. Call `next_switch` before the first node of each access switch.
class NodeConstraints {
  public:
    NodeConstraints(const ConstraintShares& shares, Rng rng) : shares_(shares), rng_(rng) {}

    void next_switch() {
        ++switch_;
        in_switch_ = 0;
    }

    void apply(NodeSpec& node) {
        const auto within_switch = std::to_string(in_switch_++ / 8);
        node.labels = {{zone_label, "zone-" + std::to_string(switch_ % 3)},
                       {rack_label, "rack-" + std::to_string(switch_) + "-" + within_switch},
                       {hostname_label, node.name},
                       {product_label, node.gpu_model}};
        if (node.gpu_count == 8) {
            if (rng_.chance(*shares_.large_fraction)) {
                node.gpu_count *= 4;
                node.cpu_milli *= 4;
                node.memory_mib *= 4;
            } else if (rng_.chance(*shares_.mig_fraction)) {
                split_cards(node);
            }
        } else if ((node.gpu_count == 2 || node.gpu_count == 4) && rng_.chance(*shares_.shared_fraction)) {
            const auto card = static_cast<int>(--node.gpu_count);
            node.devices = {{"nvidia.com/gpu.shared", 4, std::vector<int>(4, card), 0}};
        }
        if (node.gpu_count >= 6 && *shares_.rdma_fraction > 0)
            node.resources[rdma_resource] = node.gpu_count / 2;
    }

  private:
    // Splits one card into 7 instances of the smallest profile, and one into 3 of the next.
    static void split_cards(NodeSpec& node) {
        node.gpu_count -= 2;
        const auto card = static_cast<int>(node.gpu_count);
        node.devices = {{"nvidia.com/mig-1g.10gb", 7, std::vector<int>(7, card), 10'240},
                        {"nvidia.com/mig-2g.20gb", 3, std::vector<int>(3, card + 1), 20'480}};
    }

    const ConstraintShares& shares_;
    Rng rng_;
    std::size_t switch_ = std::numeric_limits<std::size_t>::max();  // before the first switch
    int in_switch_ = 0;
};

/// A task that requests devices of a node.
struct DeviceTask {
    std::uint32_t node;
    GpuMask devices;
    std::vector<std::string> classes;
    std::int64_t cpu_milli, memory_mib;
};

/// Draws tasks that request the devices of nodes, next to the running tasks. Gives each device a task with
/// probability 0.8 times `load`, as far as CPU and memory allow.
inline std::vector<DeviceTask> draw_device_tasks(const ClusterSpec& spec, double load, Rng& rng) {
    std::unordered_map<std::string_view, std::pair<std::int64_t, std::int64_t>> used;  // CPU, memory
    for (const auto& task : spec.tasks) {
        auto& [cpu, memory] = used[*task.node];
        cpu += task.cpu_milli;
        memory += task.memory_mib;
    }
    std::vector<DeviceTask> out;
    for (std::uint32_t n = 0; n < spec.nodes.size(); ++n) {
        const auto& node = spec.nodes[n];
        auto& [used_cpu, used_memory] = used[node.name];
        int device = static_cast<int>(node.gpu_count);
        for (const auto& group : node.devices)
            for (std::int64_t i = 0; i < group.count; ++i, ++device) {
                if (!rng.chance(std::min(0.97, 0.8 * load))) continue;
                DeviceTask task{n, gpu_bit(device), {group.device_class}, 0, 0};
                task.cpu_milli = 1000 * rng.between(1, 3);
                task.memory_mib = task.cpu_milli / 1000 * 4096;
                if (task.classes[0].ends_with("1g.10gb") && rng.chance(0.25))
                    task.classes.emplace_back("nvidia.com/mig-2g.20gb");
                // A tenth of the tasks also take the next device of the class.
                if (i + 1 < group.count && rng.chance(0.1)) {
                    task.devices |= gpu_bit(device + 1);
                    ++i;
                    ++device;
                }
                if (used_cpu + task.cpu_milli > node.cpu_milli ||
                    used_memory + task.memory_mib > node.memory_mib)
                    continue;
                used_cpu += task.cpu_milli;
                used_memory += task.memory_mib;
                out.push_back(std::move(task));
            }
    }
    return out;
}

/// Adds constraints to the jobs of a cluster in which all tasks run. The tasks of a job must be contiguous.
class JobConstraints {
  public:
    JobConstraints(const ConstraintShares& shares, ClusterSpec& spec, Rng rng)
        : shares_(shares), spec_(spec), rng_(rng) {
        for (std::uint32_t n = 0; n < spec_.nodes.size(); ++n) {
            const auto& node = spec_.nodes[n];
            number_.emplace(node.name, n);
            const auto found = node.resources.find(rdma_resource);
            rdma_free_.push_back(found == node.resources.end() ? 0 : found->second);
            for (const auto level : levels) domains_of_[{node.gpu_model, level}].insert(domain(n, level));
            for (const auto level : levels) domains_of_[{"", level}].insert(domain(n, level));
        }
        spec_.label_levels = {zone_label, rack_label};
    }

    void apply() {
        for (std::size_t first = 0, last = 0; first < spec_.tasks.size(); first = last) {
            while (last < spec_.tasks.size() && spec_.tasks[last].job == spec_.tasks[first].job) ++last;
            job_ = {first, last, {}};
            for (std::size_t i = first; i < last; ++i) job_.nodes.push_back(number_.at(*spec_.tasks[i].node));
            constrain();
            if (job_.size() > 1) remember();
        }
    }

  private:
    static constexpr Level zone = first_label_level, rack = first_label_level + 1;
    static constexpr std::array levels{zone, rack, node_level};
    struct Job {
        std::size_t first = 0, last = 0;   // its tasks
        std::vector<std::uint32_t> nodes;  // of each task
        [[nodiscard]] std::size_t size() const { return last - first; }
    };

    [[nodiscard]] const std::string& domain(std::uint32_t node, Level level) const {
        const auto& n = spec_.nodes[node];
        return level == node_level          ? n.name
               : level >= first_label_level ? n.labels.at(level == zone ? zone_label : rack_label)
                                            : n.network[static_cast<std::size_t>(level)];
    }
    [[nodiscard]] std::map<std::string_view, int> members_by_domain(const Job& job, Level level) const {
        std::map<std::string_view, int> members;
        for (const auto node : job.nodes) ++members[domain(node, level)];
        return members;
    }
    [[nodiscard]] std::span<TaskSpec> tasks(const Job& job) {
        return std::span(spec_.tasks).subspan(job.first, job.size());
    }
    [[nodiscard]] const std::string& name(const Job& job) const { return spec_.tasks[job.first].job; }

    // Makes all tasks of the job members of a group named after the job.
    const std::string& group_of(const Job& job) {
        for (auto& task : tasks(job)) task.groups = {task.job};
        return name(job);
    }

    void constrain() {
        const bool several = job_.size() > 1;
        if (rng_.chance(*shares_.fixed_fraction))
            set_how(Mobility::none);
        else if (rng_.chance(*shares_.restart_fraction))
            set_how(Mobility::restart);
        else if (rng_.chance(*shares_.suspend_fraction))
            set_how(Mobility::suspend);
        if (rng_.chance(*shares_.rdma_fraction)) ask_for_rdma();
        const bool spread = job_.size() > 2 && rng_.chance(*shares_.spread_fraction) && spread_out();
        if (several && rng_.chance(*shares_.avoid_fraction)) avoid();
        if (rng_.chance(*shares_.near_fraction)) stay_near();
        if (several && rng_.chance(*shares_.budget_fraction)) add_budget();
        if (several && rng_.chance(*shares_.gang_fraction)) add_gang();
        // A spread counts the nodes that the affinity allows: its skew is that of all nodes of the model.
        if (!spread && rng_.chance(*shares_.named_node_fraction)) name_nodes();
    }

    void set_how(Mobility how) {
        for (auto& task : tasks(job_)) task.how = how;
    }

    void ask_for_rdma() {
        const auto gpus = spec_.tasks[job_.first].gpu_count;
        if (gpus == 0 || spec_.tasks[job_.first].gpu_share_milli < 1000) return;
        const auto wanted = std::max<std::int64_t>(1, gpus / 2);
        std::size_t served = 0;
        for (; served < job_.size() && rdma_free_[job_.nodes[served]] >= wanted; ++served)
            rdma_free_[job_.nodes[served]] -= wanted;
        if (served == job_.size()) {
            for (auto& task : tasks(job_)) task.resources[rdma_resource] = wanted;
        } else {
            while (served-- > 0) rdma_free_[job_.nodes[served]] += wanted;
        }
    }

    // Adds a spread with the smallest skew that the placements have, over the nodes that have the model.
    bool spread_out() {
        const auto level = levels[static_cast<std::size_t>(rng_.below(levels.size()))];
        const auto& models = spec_.tasks[job_.first].gpu_models;
        const auto model = models.empty() ? std::string() : models.front();
        const auto members = members_by_domain(job_, level);
        const auto domains = domains_of_.at({model, level}).size();
        if (domains < 2) return false;
        const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
        const auto [fewest, most] = std::minmax_element(members.begin(), members.end(), less);
        const auto skew = std::max(1, most->second - (domains > members.size() ? 0 : fewest->second));
        const bool honor_taints = rng_.chance(0.5);
        const auto& group = group_of(job_);
        for (auto& task : tasks(job_)) {
            if (!model.empty()) task.node_selector[product_label] = model;
            task.spread = {{group, level, skew, 1, true, honor_taints}};
        }
        return true;
    }

    // Makes the job avoid its own members, in racks or on nodes, and sometimes those of the previous job on
    // nodes.
    void avoid() {
        const bool wide = rng_.chance(0.5), others = rng_.chance(0.3);
        for (const auto level : {rack, node_level}) {
            if ((level == rack && !wide) || members_by_domain(job_, level).size() < job_.size()) continue;
            const auto& group = group_of(job_);
            for (auto& task : tasks(job_)) task.avoid.push_back({group, level});
            break;
        }
        if (!others || seen_.empty()) return;
        const auto& before = seen_.back();
        const auto shares_a_node = [&](std::uint32_t node) {
            return std::ranges::find(before.nodes, node) != before.nodes.end();
        };
        if (std::ranges::any_of(job_.nodes, shares_a_node)) return;
        const auto& group = group_of(before);
        for (auto& task : tasks(job_)) task.avoid.push_back({group, node_level});
    }

    // Adds an affinity to a job with members in the domain of every task: the narrowest level, then the
    // latest job.
    void stay_near() {
        static constexpr std::array<Level, 4> narrow_first{rack, 2, 1, zone};
        for (const auto level : narrow_first)
            for (auto other = seen_.rbegin(); other != seen_.rend(); ++other) {
                const auto members = members_by_domain(*other, level);
                const auto near = [&](std::uint32_t node) { return members.contains(domain(node, level)); };
                if (!std::ranges::all_of(job_.nodes, near)) continue;
                const auto& group = group_of(*other);
                for (auto& task : tasks(job_)) task.near = {{group, level}};
                return;
            }
    }

    void add_budget() {
        BudgetSpec budget{.name = "budget-" + name(job_)};
        if (rng_.chance(0.5))
            budget.groups = {group_of(job_)};
        else
            for (const auto& task : tasks(job_)) budget.tasks.push_back(task.name);
        const auto quarter = std::max<std::int64_t>(1, static_cast<std::int64_t>(job_.size()) / 4);
        budget.allowed_down = rng_.chance(0.2) ? 0 : quarter;
        budget.broken = rng_.chance(0.05);
        spec_.budgets.push_back(std::move(budget));
    }

    void add_gang() {
        const auto members = static_cast<std::int64_t>(job_.size());
        const auto least = rng_.chance(0.5) ? members : (3 * members + 3) / 4;
        JobSpec job{.name = name(job_), .min_members = least};
        if (rng_.chance(0.5)) job.max_disrupted = std::max<std::int64_t>(1, members / 2);
        // Uses a separate stream, so that all other choices are the same with or without it.
        if (members > 2 && rng_.split(job_.first).chance(0.5)) {
            job.subgroups = {{"leader", 1}, {"worker", least - 1}};
            for (auto& task : tasks(job_))
                task.subgroup = &task == &spec_.tasks[job_.first] ? "leader" : "worker";
        }
        spec_.jobs.push_back(std::move(job));
    }

    void name_nodes() {
        const bool in = rng_.chance(0.5), by_field = rng_.chance(0.25);
        std::set<std::uint32_t> nodes;
        if (in) nodes.insert(job_.nodes.begin(), job_.nodes.end());
        for (auto others = rng_.between(2, 6); others > 0; --others) {
            const auto node = static_cast<std::uint32_t>(rng_.below(spec_.nodes.size()));
            const bool own = std::ranges::find(job_.nodes, node) != job_.nodes.end();
            const auto& home = spec_.nodes[job_.nodes.front()];
            if (!own && (!in || spec_.nodes[node].gpu_model == home.gpu_model)) nodes.insert(node);
        }
        if (nodes.empty()) return;  // all drawn nodes host the job
        NodeMatch match{
            by_field ? "metadata.name" : hostname_label, in ? MatchOperator::in : MatchOperator::not_in, {}};
        for (const auto node : nodes) match.values.push_back(spec_.nodes[node].name);
        NodeTerm term;
        (by_field ? term.match_fields : term.match_expressions).push_back(std::move(match));
        for (auto& task : tasks(job_)) task.node_affinity = {term};
    }

    void remember() {
        static constexpr std::size_t most_seen = 16;
        if (seen_.size() == most_seen) seen_.erase(seen_.begin());
        seen_.push_back(job_);
    }

    const ConstraintShares& shares_;
    ClusterSpec& spec_;
    Rng rng_;
    std::unordered_map<std::string_view, std::uint32_t> number_;  // node index by name
    std::vector<std::int64_t> rdma_free_;                         // by node
    // By GPU model; "" = any.
    std::map<std::pair<std::string, Level>, std::set<std::string_view>> domains_of_;
    Job job_;
    std::vector<Job> seen_;  // the latest jobs with several tasks
};

}  // namespace gpusched::sim::detail
