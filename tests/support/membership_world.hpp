// SPDX-License-Identifier: Apache-2.0
// A cluster with random changes, next to the data that it should hold. After each change it equals a new build.
#pragma once

#include "support/catch.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/model/model.hpp>

namespace testing_support {

using namespace gpusched;

/// The same data in one order, whatever slots things are in.
inline ClusterSpec normal(ClusterSpec spec) {
    const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
    std::sort(spec.nodes.begin(), spec.nodes.end(), by_name);
    std::sort(spec.tasks.begin(), spec.tasks.end(), by_name);
    std::sort(spec.jobs.begin(), spec.jobs.end(), by_name);
    std::sort(spec.budgets.begin(), spec.budgets.end(), by_name);
    for (auto& task : spec.tasks) std::sort(task.gpu_models.begin(), task.gpu_models.end());
    return spec;
}

inline void require_equal_nodes(const Cluster& live, NodeId a, const Cluster& built, NodeId b) {
    INFO("node " << live.name(a));
    REQUIRE(live.occupants(a) == built.occupants(b));
    REQUIRE(live.memory_free_mib(a) == built.memory_free_mib(b));
    for (const auto lent : {Lent::no, Lent::yes}) {
        REQUIRE(live.cpu_free_milli(a, lent) == built.cpu_free_milli(b, lent));
        REQUIRE(live.idle_gpus(a, lent) == built.idle_gpus(b, lent));
        for (int g = 0; g < live.gpu_count(a); ++g)
            REQUIRE(live.gpu_free_milli(a, g, lent) == built.gpu_free_milli(b, g, lent));
    }
    for (int g = 0; g < live.gpu_count(a); ++g)
        REQUIRE(live.gpu_memory_free_mib(a, g) == built.gpu_memory_free_mib(b, g));
    REQUIRE(live.devices(a) == built.devices(b));
    REQUIRE(live.free_devices(a) == built.free_devices(b));
    const auto& resources = built.inventory().resource_names;
    for (std::uint32_t r = 0; r < resources.size(); ++r)
        REQUIRE(live.resource_free(a, *live.inventory().resource_names.find(resources[r])) ==
                built.resource_free(b, r));
    std::vector<std::string> here, there;
    for (const auto task : live.tasks_on(a)) here.push_back(live.name(task));
    for (const auto task : built.tasks_on(b)) there.push_back(built.name(task));
    std::sort(here.begin(), here.end());
    std::sort(there.begin(), there.end());
    REQUIRE(here == there);
}

inline std::vector<BudgetSpec> budgets_of(const Cluster& cluster, TaskId task) {
    ClusterSpec found;
    for (const auto budget : cluster.inventory().budgets_of(task))
        found.budgets.push_back(cluster.budget_spec(budget));
    return normal(found).budgets;
}

/// Everything that can be asked has one answer, by name.
inline void require_equal(const Cluster& live, const Cluster& built) {
    REQUIRE(normal(live.to_spec()) == normal(built.to_spec()));
    REQUIRE(live.node_count() == built.node_count());
    REQUIRE(live.task_count() == built.task_count());
    REQUIRE(live.inventory().network_levels() == built.inventory().network_levels());
    std::vector<std::pair<NodeId, NodeId>> nodes;
    for (const auto node : live.nodes()) nodes.emplace_back(node, built.find_node(live.name(node)));
    REQUIRE(nodes.size() == live.node_count());
    for (const auto& [a, b] : nodes) require_equal_nodes(live, a, built, b);
    const auto levels = std::min(live.inventory().named_levels(), built.inventory().named_levels());
    for (Level level = 0; level < levels; ++level)
        for (const auto& [a, b] : nodes) {
            const auto domain = live.inventory().domain(level, a);
            REQUIRE(live.inventory().domain_name(level, domain) ==
                    built.inventory().domain_name(level, built.inventory().domain(level, b)));
            for (const auto& [c, d] : nodes)
                REQUIRE((domain == live.inventory().domain(level, c)) ==
                        (built.inventory().domain(level, b) == built.inventory().domain(level, d)));
        }
    for (const auto task : live.tasks()) {
        const auto same = built.find_task(live.name(task));
        REQUIRE(live.is_movable(task) == built.is_movable(same));
        REQUIRE(live.inventory().tasks.how(task) == built.inventory().tasks.how(same));
        REQUIRE(budgets_of(live, task) == budgets_of(built, same));
        for (const auto& [a, b] : nodes) {
            INFO("task " << live.name(task) << " on node " << live.name(a));
            REQUIRE(find_obstacle(live, task, a) == find_obstacle(built, same, b));
            REQUIRE(candidate_gpus(live, task, a) == candidate_gpus(built, same, b));
        }
    }
}

template <class Item>
Item* item(std::vector<Item>& items, const std::string& name) {
    const auto found =
        std::find_if(items.begin(), items.end(), [&](const Item& i) { return i.name == name; });
    return found == items.end() ? nullptr : &*found;
}

/// A live cluster, and the data that it should hold.
class MembershipWorld {
  public:
    MembershipWorld(Rng& rng, bool from_snapshot) : rng_(rng) {
        if (rng_.chance(0.5)) options_.extras = 0.2;
        options_.budgets = rng_.chance(0.5) ? 0.3 : 0;
        options_.selected = rng_.chance(0.5) ? 0.15 : 0;
        if (from_snapshot)
            data_ = normal(random_cluster(rng_, options_));
        else if (options_.selected > 0 && rng_.chance(0.5))
            data_.label_levels = label_levels();  // otherwise they come one by one
        live_ = Cluster::build(data_);
        remember_assigned(live_);
        // What only tasks name is not listed in `data_`, and goes with them.
    }

    void step() {
        what_if();
        auto next = data_;
        const auto act = draw(next);
        if (!act) return;
        std::optional<Cluster> built;
        std::string refusal;
        try {
            built = Cluster::build(next);
        } catch (const InvalidInput& error) {
            refusal = error.what();
        }
        const auto before = live_.to_spec();
        std::string refused;
        try {
            act();
        } catch (const InvalidInput& error) {
            refused = error.what();
        }
        INFO(what_ << "; build: " << refusal << "; live: " << refused);
        ++steps_;
        REQUIRE(refusal.empty() == refused.empty());
        if (built) {
            data_ = std::move(next);
            require_equal(live_, *built);
            remember_assigned(*built);
        } else {
            ++refusals_;
            REQUIRE(live_.to_spec() == before);
            require_equal(live_, Cluster::build(data_));
        }
        if (rng_.chance(0.02)) {  // a copy goes its own way
            const auto copy = live_;
            kept_ = copy;
        }
    }

    std::size_t steps_ = 0, refusals_ = 0;
    Cluster live_{};
    Cluster kept_{};

  private:
    using Act = std::function<void()>;

    // From now on tasks hold the GPUs that they were assigned.
    void remember_assigned(const Cluster& built) {
        for (auto& task : data_.tasks)
            if (std::exchange(task.assign_gpus, false))
                task.gpus = gpu_list(built.gpus_of(built.find_task(task.name)));
    }

    // Changes that are taken back leave no trace.
    void what_if() {
        const auto start = live_.checkpoint();
        for (auto left = rng_.between(0, 3); left > 0 && live_.task_count() > 0 && live_.node_count() > 0;
             --left) {
            const auto task = live_.find_task(any(data_.tasks).name);
            const auto node = live_.find_node(any(data_.nodes).name);
            if (find_resource_obstacle(live_, task, node) != Obstacle::none) continue;
            const auto gpus = lowest_gpus(candidate_gpus(live_, task, node),
                                          live_.inventory().tasks.gpu_count[index(task)]) |
                              free_devices_for(live_, task, node);
            if (rng_.chance(0.5))
                live_.reserve(task, node, gpus);
            else
                live_.assign(task, node, gpus);
        }
        if (live_.checkpoint() > start && rng_.chance(0.3)) {
            const auto count = live_.node_count();
            REQUIRE_THROWS_AS(live_.set_now(1), InvalidInput);
            REQUIRE(live_.node_count() == count);
        }
        live_.rollback(start);
    }

    template <class Item>
    const Item& any(const std::vector<Item>& items) {
        return items[static_cast<std::size_t>(rng_.below(items.size()))];
    }

    NodeSpec new_node() {
        auto options = options_;
        options.max_tasks = 1;
        return any(random_cluster(rng_, options).nodes);
    }
    TaskSpec new_task() {
        auto options = options_;
        options.pending = 1;
        options.grouped = 0.4;
        auto task = any(random_cluster(rng_, options).tasks);
        task.locked = task.standby = false;
        return task;
    }

    // A placement that is often, but not always, possible.
    void place(TaskSpec& task) {
        task.node.reset();
        task.gpus.clear();
        task.assign_gpus = false;
        if (data_.nodes.empty() || rng_.chance(0.3)) return;
        const auto& node = any(data_.nodes);
        task.node = rng_.chance(0.02) ? "nowhere" : node.name;
        std::vector<int> all;
        for (int g = 0; g < node.gpu_count; ++g) all.push_back(g);
        rng_.shuffle(std::span(all));
        all.resize(std::min<std::size_t>(all.size(), static_cast<std::size_t>(task.gpu_count)));
        std::sort(all.begin(), all.end());
        task.gpus = all;
        if (task.device_count > 0 && rng_.chance(0.9)) {  // the first of some class, free or not
            int first = static_cast<int>(node.gpu_count);
            std::vector<std::vector<int>> sets;
            for (const auto& group : node.devices) {
                const auto spare = group.count - task.device_count;
                const auto at = first + static_cast<int>(spare > 0 ? rng_.between(0, spare) : 0);
                if (spare >= 0) sets.emplace_back();
                for (int d = 0; spare >= 0 && d < task.device_count; ++d) sets.back().push_back(at + d);
                first += static_cast<int>(group.count);
            }
            if (!sets.empty()) {
                const auto& chosen = any(sets);
                task.gpus.insert(task.gpus.end(), chosen.begin(), chosen.end());
            }
        }
        if (rng_.chance(0.1)) task.assign_gpus = true, task.gpus.clear();
        task.locked = rng_.chance(0.1);
        task.standby = task.priority_class == PriorityClass::hp && rng_.chance(0.2);
    }

    // One that its job lists, or none; seldom one that it may not list.
    void choose_subgroup(TaskSpec& task) {
        task.subgroup = rng_.chance(0.02) ? "a" : "";
        for (const auto& job : data_.jobs)
            if (job.name == task.job && !job.subgroups.empty() && rng_.chance(0.8))
                task.subgroup = any(job.subgroups).name;
    }

    // As random_cluster has them.
    static std::vector<std::string> label_levels() { return {"zone", "rack", "nobody has this"}; }

    Act draw(ClusterSpec& next) {
        if (options_.selected > 0 && data_.label_levels.size() < 3 && rng_.chance(0.1)) {
            const auto key = label_levels()[data_.label_levels.size()];
            what_ = "add label level " + key;
            next.label_levels.push_back(key);
            return [this, key] {
                const auto level = live_.add_label_level(key);
                REQUIRE(live_.add_label_level(key) == level);
            };
        }
        switch (rng_.below(options_.budgets > 0 ? 15 : 12)) {
        case 0: {
            auto node = new_node();
            node.name = "n" + std::to_string(rng_.below(14));
            what_ = "add node " + node.name;
            next.nodes.push_back(node);
            return [this, node] { (void)live_.add_node(node); };
        }
        case 1: {
            if (data_.nodes.empty()) return {};
            auto node = rng_.chance(0.5) ? new_node() : any(data_.nodes);
            node.name = any(data_.nodes).name;
            if (rng_.chance(0.5)) {  // its cards fail and are repaired
                node = *item(next.nodes, node.name);
                node.failed_gpus.clear();
                auto devices = node.gpu_count;
                for (const auto& group : node.devices) devices += group.count;
                for (int g = 0; g < devices; ++g)
                    if (rng_.chance(0.3)) node.failed_gpus.push_back(g);
            }
            what_ = "update node " + node.name;
            *item(next.nodes, node.name) = node;
            return [this, node] { live_.update_node(live_.handle(live_.find_node(node.name)), node); };
        }
        case 2: {
            if (data_.nodes.empty()) return {};
            const auto name = any(data_.nodes).name;
            what_ = "remove node " + name;
            std::erase_if(next.nodes, [&](const NodeSpec& n) { return n.name == name; });
            return [this, name] { live_.remove_node(live_.handle(live_.find_node(name))); };
        }
        case 3:
        case 4:
        case 5: {
            auto task = new_task();
            task.name = "t" + std::to_string(rng_.below(30));
            place(task);
            choose_subgroup(task);
            what_ = "add task " + task.name;
            next.tasks.push_back(task);
            return [this, task] { (void)live_.add_task(task); };
        }
        case 6: {
            if (data_.tasks.empty()) return {};
            const auto& old = any(data_.tasks);
            auto task = new_task();
            task.name = old.name;
            task.node = old.node;
            task.gpus = old.gpus;
            if (rng_.chance(0.6)) {
                task.gpu_count = old.gpu_count;
                task.gpu_share_milli = old.gpu_share_milli;
                task.device_count = old.device_count;
                task.device_classes = old.device_classes;
            }
            choose_subgroup(task);
            what_ = "update task " + task.name;
            *item(next.tasks, task.name) = task;
            return [this, task] { live_.update_task(live_.handle(live_.find_task(task.name)), task); };
        }
        case 7:
        case 8: {
            if (data_.tasks.empty()) return {};
            const auto name = any(data_.tasks).name;
            what_ = "remove task " + name;
            std::erase_if(next.tasks, [&](const TaskSpec& t) { return t.name == name; });
            for (auto& budget : next.budgets) std::erase(budget.tasks, name);
            return [this, name] { live_.remove_task(live_.handle(live_.find_task(name))); };
        }
        case 9: {
            if (data_.tasks.empty() || data_.nodes.empty()) return {};
            auto& task = *item(next.tasks, any(data_.tasks).name);
            const bool locked = task.locked, standby = task.standby;
            place(task);
            task.locked = locked;
            task.standby = standby;
            if (task.node == "nowhere") task.node.reset();
            if (std::exchange(task.assign_gpus, false) && task.gpu_count > 0) task.node.reset();
            what_ = (task.node ? "bind task " : "unbind task ") + task.name;
            if (!task.node) {
                task.gpus.clear();
                return [this, name = task.name] { live_.unbind(live_.handle(live_.find_task(name))); };
            }
            GpuMask mask = 0;
            for (const int g : task.gpus) mask |= gpu_bit(g);
            return [this, task, mask] {
                live_.bind(live_.handle(live_.find_task(task.name)),
                           live_.handle(live_.find_node(*task.node)), mask);
            };
        }
        case 10: {
            JobSpec job{"j" + std::to_string(rng_.below(9)), rng_.between(-1, 3), std::nullopt};
            if (rng_.chance(0.5)) job.max_disrupted = rng_.between(0, 2);
            if (rng_.chance(0.7)) add_subgroups(rng_, job);
            if (rng_.chance(0.3)) std::reverse(job.subgroups.begin(), job.subgroups.end());
            if (!job.subgroups.empty() && rng_.chance(0.2)) job.subgroups.pop_back();
            if (rng_.chance(0.05)) job.min_members = 0;  // not always enough
            if (auto* old = item(next.jobs, job.name); old != nullptr && rng_.chance(0.7)) {
                *old = job;
                what_ = "update job " + job.name;
                return [this, job] {
                    live_.update_job(
                        live_.handle(make_id<JobId>(*live_.inventory().job_names.find(job.name))), job);
                };
            }
            what_ = "add job " + job.name;
            next.jobs.push_back(job);
            return [this, job] { (void)live_.add_job(job); };
        }
        case 12: {
            if (data_.budgets.empty()) return {};
            const auto name = any(data_.budgets).name;
            what_ = "remove budget " + name;
            std::erase_if(next.budgets, [&](const BudgetSpec& b) { return b.name == name; });
            return [this, name] { live_.remove_budget(name); };
        }
        case 13:
        case 14: {
            BudgetSpec budget{.name = "b" + std::to_string(rng_.below(5)),
                              .allowed_down = rng_.between(-1, 3)};
            for (const auto& task : data_.tasks)
                if (rng_.chance(0.2)) budget.tasks.push_back(task.name);
            if (rng_.chance(0.02)) budget.tasks.push_back("nobody");
            if (rng_.chance(0.3)) budget.groups.push_back("spread" + std::to_string(rng_.below(2)));
            if (rng_.chance(0.3)) budget.groups.push_back("group" + std::to_string(rng_.below(4)));
            budget.broken = rng_.chance(0.2);
            if (auto* old = item(next.budgets, budget.name); old != nullptr && rng_.chance(0.8)) {
                if (rng_.chance(0.5)) {  // only how many may be down
                    budget.tasks = old->tasks;
                    budget.groups = old->groups;
                }
                *old = budget;
                what_ = "update budget " + budget.name;
                return [this, budget] { live_.update_budget(budget); };
            }
            what_ = "add budget " + budget.name;
            next.budgets.push_back(budget);
            return [this, budget] { live_.add_budget(budget); };
        }
        default: {
            if (data_.jobs.empty()) return {};
            const auto name = any(data_.jobs).name;
            const bool used = std::any_of(data_.tasks.begin(), data_.tasks.end(),
                                          [&](const TaskSpec& t) { return t.job == name; });
            if (used) return {};
            what_ = "remove job " + name;
            std::erase_if(next.jobs, [&](const JobSpec& j) { return j.name == name; });
            return [this, name] {
                live_.remove_job(live_.handle(make_id<JobId>(*live_.inventory().job_names.find(name))));
            };
        }
        }
    }

    Rng& rng_;
    RandomClusterOptions options_{};
    ClusterSpec data_{};
    std::string what_;
};

}  // namespace testing_support
