// SPDX-License-Identifier: Apache-2.0
// Random snapshots with every kind of constraint on odd topologies. Always valid; placed by the naive rules of
// reference.hpp, so that nothing under test decides what is tested.
#pragma once

#include "support/catch.hpp"
#include "support/reference.hpp"
#include "support/subgroups.hpp"

namespace testing_support {

/// How large and how wild a random cluster is.
struct RandomClusterOptions {
    int min_nodes = 2, max_nodes = 10;
    int min_tasks = 1, max_tasks = 24;
    int max_gpus = 16;       ///< per node
    double pending = 0.05;   ///< share of tasks that are not placed even if they could be
    double messy = 0.05;     ///< share of tasks placed without regard to anything but resources
    double immovable = 0.2;  ///< share of locked tasks
    double grouped = 0.15;   ///< share of tasks in each kind of group
    double picky = 0.3;      ///< share of tasks that accept certain GPU models only
    int max_request = 16;    ///< most GPUs of a task, and twice its cores
    int max_movable = 1000;  ///< beyond that tasks are locked
    double budgets = 0;      ///< share of tasks that do not move by copies; above 0 with disruption budgets
    double extras = 0;    ///< share of nodes and tasks with each of named resources, devices, node affinity
    double selected = 0;  ///< share of tasks in each of groups that others avoid, want near or spread
};

/// For exhaustive search: few tasks with room to move.
inline constexpr RandomClusterOptions tiny_cluster{.min_nodes = 2,
                                                   .max_nodes = 5,
                                                   .min_tasks = 2,
                                                   .max_tasks = 9,
                                                   .max_gpus = 4,
                                                   .pending = 0,
                                                   .messy = 0.02,
                                                   .immovable = 0.1,
                                                   .grouped = 0.08,
                                                   .picky = 0.15,
                                                   .max_request = 3,
                                                   .max_movable = 6};

class RandomCluster {
  public:
    RandomCluster(gpusched::Rng& rng, const RandomClusterOptions& options) : rng_(rng), options_(options) {}

    gpusched::ClusterSpec make() {
        spec_.now = rng_.between(0, 100'000);
        const auto nodes = rng_.between(options_.min_nodes, options_.max_nodes);
        const auto tasks = static_cast<int>(rng_.between(options_.min_tasks, options_.max_tasks));
        depth_ = static_cast<int>(rng_.between(0, 3));
        if (options_.selected > 0) spec_.label_levels = {"zone", "rack", "nobody has this"};
        for (int n = 0; n < nodes; ++n) spec_.nodes.push_back(node("n" + std::to_string(n)));
        for (int j = 0; j < tasks / 3; ++j)
            if (rng_.chance(0.6)) spec_.jobs.push_back(job("j" + std::to_string(j)));
        for (int t = 0; t < tasks; ++t) spec_.tasks.push_back(task("t" + std::to_string(t), tasks));
        place_all();
        disturb();
        for (std::int64_t b = options_.budgets > 0 ? rng_.between(0, 3) : 0; b > 0; --b)
            spec_.budgets.push_back(budget("b" + std::to_string(b)));
        auto own = rng_.split(static_cast<std::uint64_t>(spec_.now));
        add_subgroups(own, spec_, 0.3);
        return std::move(spec_);
    }

  private:
    template <class T, std::size_t N>
    const T& one_of(const std::array<T, N>& values) {
        return rng_.pick(std::span<const T, N>(values));
    }
    std::string numbered(const char* prefix, int count) {
        return prefix + std::to_string(rng_.between(0, count - 1));
    }

    gpusched::NodeSpec node(const std::string& name) {
        static const std::array<std::string, 6> models{"A", "A", "A", "B", "B", "C"};
        gpusched::NodeSpec n;
        n.name = name;
        static const std::array<std::int64_t, 10> counts{0, 1, 2, 2, 3, 4, 4, 8, 8, 16};
        n.gpu_count = std::min<std::int64_t>(one_of(counts), options_.max_gpus);
        if (n.gpu_count > 0) n.gpu_model = one_of(models);
        n.cpu_milli = rng_.between(1, 16) * 1000 + rng_.between(0, 2) * 250;
        n.memory_mib = rng_.between(1, 16) * 1024;
        if (rng_.chance(0.3)) n.gpu_memory_mib = rng_.between(8, 40) * 1024;
        n.eviction_count = n.cpu_milli / 250 % 4;  // without a draw: other tests keep their clusters
        if (rng_.chance(0.4)) n.labels["zone"] = numbered("z", 2);
        if (rng_.chance(0.2)) n.labels["disk"] = "ssd";
        network(n);
        if (rng_.chance(0.5)) hardware(n);
        if (options_.extras > 0) extras(n);
        if (options_.selected > 0) {
            if (rng_.chance(0.6)) n.labels["zone"] = numbered("z", 3);
            if (rng_.chance(0.8)) n.labels["rack"] = numbered("r", 4);
        }
        return n;
    }

    // Most nodes have enough of what some tasks ask for.
    void extras(gpusched::NodeSpec& n) {
        if (rng_.chance(0.8)) n.labels["kubernetes.io/hostname"] = rng_.chance(0.9) ? n.name : "n0";
        if (rng_.chance(0.6)) n.labels["generation"] = rng_.chance(0.9) ? numbered("", 6) : "six";
        for (const char* name : {"pods", "rdma/hca"})
            if (rng_.chance(0.75)) n.resources[name] = rng_.between(0, 8);
        for (const char* device_class : {"mig-1g", "mig-2g", "shared"})
            if (rng_.chance(0.55)) {
                gpusched::DeviceSpec devices{.device_class = device_class, .count = rng_.between(1, 4)};
                if (rng_.chance(0.5))
                    for (std::int64_t i = 0; i < devices.count; ++i)
                        devices.parents.push_back(rng_.chance(0.2) ? -1
                                                                   : static_cast<int>(n.gpu_count + i / 2));
                n.devices.push_back(devices);
            }
        if (rng_.chance(0.1)) n.devices.push_back({.device_class = "mig-1g", .count = 1});
    }
    void extras(gpusched::TaskSpec& t) {
        using gpusched::MatchOperator;
        for (const char* name : {"pods", "rdma/hca"})
            if (rng_.chance(options_.extras)) t.resources[name] = rng_.between(0, 4);
        if (rng_.chance(options_.extras)) {
            t.device_count = rng_.between(1, 2);
            t.device_classes = {one_of(std::array<std::string, 3>{"mig-1g", "mig-2g", "shared"})};
            if (rng_.chance(0.4) && t.device_classes[0] != "mig-2g") t.device_classes.push_back("mig-2g");
        }
        if (rng_.chance(options_.extras / 4)) t.node_selector["kubernetes.io/hostname"] = numbered("n", 6);
        if (!rng_.chance(options_.extras)) return;
        const auto terms = rng_.between(1, 3);
        for (int i = 0; i < terms; ++i) {
            auto& term = t.node_affinity.emplace_back();
            const auto conditions = rng_.chance(0.05) ? 0 : rng_.between(1, 2);
            for (int c = 0; c < conditions; ++c) {
                static const std::array<MatchOperator, 6> ops{
                    MatchOperator::in,     MatchOperator::not_in,
                    MatchOperator::exists, MatchOperator::does_not_exist,
                    MatchOperator::gt,     MatchOperator::lt};
                const auto op = one_of(ops);
                const bool numbers = op == MatchOperator::gt || op == MatchOperator::lt;
                const bool values = op == MatchOperator::in || op == MatchOperator::not_in;
                if (values && rng_.chance(0.25)) {
                    term.match_fields.push_back({"metadata.name", op, {numbered("n", 6)}});
                } else if (rng_.chance(0.2)) {
                    term.match_expressions.push_back({"kubernetes.io/hostname", op, {}});
                    if (values) term.match_expressions.back().values = {numbered("n", 6), numbered("n", 6)};
                    if (numbers) term.match_expressions.back().values = {"1"};
                } else {
                    term.match_expressions.push_back(
                        {numbers || rng_.chance(0.3) ? "generation" : "zone", op, {}});
                    auto& match = term.match_expressions.back();
                    if (values) match.values = {match.key == "zone" ? numbered("z", 2) : numbered("", 6)};
                    if (numbers) match.values = {numbered("", 6)};
                }
            }
        }
    }

    // A path of the common depth, cut short for some nodes; names carry their parents', as in a tree.
    void network(gpusched::NodeSpec& n) {
        std::string path;
        for (int level = 0; level < depth_; ++level) {
            if (rng_.chance(0.08)) return;
            path += (level == 0 ? "" : "-") + numbered(level == 0   ? "c"
                                                       : level == 1 ? "a"
                                                                    : "s",
                                                       2 + level % 2);
            n.network.push_back(path);
        }
    }

    void hardware(gpusched::NodeSpec& n) {
        static const std::array<std::string, 3> presets{"rtx4090x8", "a100x8", "h100x8"};
        if (n.gpu_count == 8 && rng_.chance(0.7)) {
            n.hardware = gpusched::hardware_preset(one_of(presets));
            return;
        }
        gpusched::Hardware h;
        const auto numa_nodes = rng_.between(1, 4);
        for (int i = 0; i < numa_nodes; ++i) h.numa_nodes.push_back({i / 2, 16, 0});
        for (int g = 0; g < n.gpu_count; ++g)
            h.numa_nodes[rng_.below(h.numa_nodes.size())].gpus |= gpusched::gpu_bit(g);
        for (auto& numa : h.numa_nodes) numa.cores = 20;  // at least the node's 16.5 cores
        n.hardware = h;
    }

    gpusched::JobSpec job(const std::string& name) {
        gpusched::JobSpec j;
        j.name = name;
        j.min_members = rng_.between(0, 3);
        if (rng_.chance(0.4)) j.max_disrupted = rng_.between(0, 2);
        return j;
    }

    gpusched::BudgetSpec budget(const std::string& name) {
        gpusched::BudgetSpec b{.name = name, .allowed_down = rng_.between(0, 2)};
        const auto share = rng_.uniform();
        for (const auto& task : spec_.tasks)
            if (rng_.chance(share)) b.tasks.push_back(task.name);
        if (rng_.chance(0.3)) b.groups.push_back(numbered("spread", 2));
        if (rng_.chance(0.1)) b.groups.push_back(numbered("near", 2));
        if (rng_.chance(0.3)) b.groups.push_back(numbered("group", 4));
        b.broken = rng_.chance(0.1);
        return b;
    }

    gpusched::Level any_level() {
        return static_cast<gpusched::Level>(rng_.between(-1, std::max(0, depth_ - 1)));
    }

    // Of anti-affinity and affinity.
    gpusched::Level limit_level() {
        if (options_.selected == 0) return any_level();
        return rng_.chance(0.6) ? any_level() : any_selection_level();
    }

    // Of any kind: labels that nodes have, more often than one that none has.
    gpusched::Level any_selection_level() {
        if (rng_.chance(0.3)) return any_level();
        return gpusched::first_label_level + (rng_.chance(0.04) ? 2 : static_cast<int>(rng_.between(0, 1)));
    }
    void selection(gpusched::TaskSpec& t) {
        const auto group = [&] { return numbered("group", 4); };
        for (int i = 0; i < 3; ++i)
            if (rng_.chance(2 * options_.selected)) t.groups.push_back(group());
        const auto terms = [&] { return !rng_.chance(options_.selected) ? 0 : rng_.chance(0.2) ? 2 : 1; };
        for (auto i = terms(); i > 0; --i) t.avoid.push_back({group(), any_selection_level()});
        for (auto i = terms(); i > 0; --i) t.near.push_back({group(), any_selection_level()});
        for (auto i = terms(); i > 0; --i)
            t.spread.push_back({.group = !t.groups.empty() && rng_.chance(0.8) ? t.groups[0] : group(),
                                .level = any_selection_level(),
                                .max_skew = rng_.between(1, 2),
                                .min_domains = rng_.chance(0.3) ? rng_.between(1, 4) : 1,
                                .honor_node_affinity = rng_.chance(0.7),
                                .honor_taints = rng_.chance(0.4)});
    }

    gpusched::TaskSpec task(const std::string& name, int tasks) {
        using namespace gpusched;
        TaskSpec t;
        t.name = name;
        if (rng_.chance(0.5)) t.job = numbered("j", std::max(1, tasks / 3));
        request(t);
        static const std::array<PriorityClass, 5> classes{PriorityClass::other, PriorityClass::other,
                                                          PriorityClass::hp, PriorityClass::lp,
                                                          PriorityClass::lp};
        t.priority_class = one_of(classes);
        t.priority = rng_.between(-5, 100);
        t.locked = rng_.chance(options_.immovable);
        t.daemon = rng_.chance(0.05);
        t.standby = t.priority_class == PriorityClass::hp && rng_.chance(0.3);
        if (rng_.chance(0.1)) t.preemptible = rng_.chance(0.5);
        if (rng_.chance(options_.picky)) {
            t.gpu_models =
                rng_.chance(0.5) ? std::vector<std::string>{"A"} : std::vector<std::string>{"B", "A"};
            if (rng_.chance(0.2)) t.gpu_models.push_back("never seen");
        }
        if (rng_.chance(0.08)) t.node_selector["zone"] = numbered("z", 2);
        if (rng_.chance(0.03)) t.node_selector["disk"] = "ssd";
        tolerations(t);
        groups(t);
        if (t.gpu_count >= 2 ? rng_.chance(0.3) : rng_.chance(0.05)) {
            const auto levels = rng_.chance(0.2) ? 2 : 1;
            for (int i = 0; i < levels; ++i)
                t.hardware_affinity.push_back(
                    {rng_.chance(0.5) ? HardwareLevel::numa : HardwareLevel::socket,
                     rng_.chance(0.7) ? HardwareQos::guaranteed : HardwareQos::best_effort});
        }
        t.cpu_local = rng_.chance(0.02);
        if (rng_.chance(0.02)) t.cores = std::vector{0, 1};
        t.move_cost = rng_.between(0, 5);
        t.start_time = rng_.between(-1000, 1000);
        if (rng_.chance(0.3)) t.last_checkpoint_time = t.start_time + rng_.between(0, 500);
        t.checkpoint_interval = rng_.between(0, 3600);
        t.eviction_count = rng_.between(0, 3);
        if (options_.extras > 0) extras(t);
        if (options_.selected > 0) selection(t);
        if (options_.budgets > 0 && rng_.chance(options_.budgets))
            t.how =
                one_of(std::array{Mobility::restart, Mobility::restart, Mobility::suspend, Mobility::none});
        return t;
    }

    void request(gpusched::TaskSpec& t) {
        if (rng_.chance(0.04)) return;  // asks for nothing at all
        t.cpu_milli = rng_.between(0, std::min(8, options_.max_request)) * 500;
        t.memory_mib = rng_.between(0, 6) * 512;
        const auto kind = rng_.uniform();
        if (kind < 0.2) return;
        t.gpu_count = 1;
        if (kind < 0.45) {
            static const std::array<std::int64_t, 7> shares{100, 250, 300, 500, 600, 750, 999};
            t.gpu_share_milli = one_of(shares);
        } else {
            static const std::array<std::int64_t, 9> counts{1, 1, 1, 2, 2, 3, 4, 8, 16};
            t.gpu_count =
                std::min<std::int64_t>(one_of(counts), std::min(options_.max_gpus, options_.max_request));
        }
        if (rng_.chance(0.25)) t.gpu_memory_mib = rng_.between(1, 16) * 1024;
    }

    void tolerations(gpusched::TaskSpec& t) {
        if (rng_.chance(0.15)) t.tolerations.push_back({"dedicated", "Equal", numbered("team", 2), ""});
        if (rng_.chance(0.05)) t.tolerations.push_back({"dedicated", "Exists", "", "NoSchedule"});
        if (rng_.chance(0.03)) t.tolerations.push_back({"", "Exists", "", ""});
    }

    void groups(gpusched::TaskSpec& t) {
        if (rng_.chance(options_.grouped)) {
            const auto group = numbered("spread", 2);
            t.anti_affinity.push_back({group, limit_level(), static_cast<int>(rng_.between(1, 3))});
            if (rng_.chance(0.3))
                t.anti_affinity.push_back({group, limit_level(), static_cast<int>(rng_.between(1, 4))});
            if (rng_.chance(0.1)) t.anti_affinity.push_back({"spread0", gpusched::node_level, 2});
        }
        if (rng_.chance(options_.grouped / 3)) t.affinity.push_back({numbered("near", 2), limit_level()});
        if (!t.job.empty() || rng_.chance(0.2))
            if (rng_.chance(options_.grouped))
                t.network_affinity = gpusched::NetworkAffinity{
                    any_level(),
                    rng_.chance(0.7) ? gpusched::NetworkMode::required : gpusched::NetworkMode::preferred};
    }

    // Standby tasks first, so that LP tasks find claims to overlap.
    void place_all() {
        std::vector<std::size_t> order(spec_.tasks.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_partition(order.begin(), order.end(),
                              [&](std::size_t t) { return spec_.tasks[t].standby; });
        reference::State state{&spec_};
        std::vector<std::size_t> nodes(spec_.nodes.size());
        std::iota(nodes.begin(), nodes.end(), std::size_t{0});
        int movable = 0;
        for (const auto t : order) {
            auto& task = spec_.tasks[t];
            rng_.shuffle(std::span(nodes));
            const bool messy = rng_.chance(options_.messy);
            if (!rng_.chance(options_.pending))
                for (const auto n : nodes)
                    if (try_place(state, t, n, messy)) break;
            if (!task.node)
                task.locked = task.standby = false;
            else if (!task.locked && !task.standby && !task.daemon && ++movable > options_.max_movable)
                task.locked = true;
        }
    }

    bool try_place(reference::State& state, std::size_t t, std::size_t n, bool messy) {
        auto& task = spec_.tasks[t];
        if (messy ? !fits(state, t, n) : reference::obstacle(state, t, n) != "none") return false;
        auto open = reference::candidates(state, t, n);
        if (reference::is_guaranteed(task) && !messy) {
            // One locality that has enough, at random.
            std::vector<std::vector<int>> local;
            for (const int g : open) {
                const int place = reference::locality(spec_.nodes[n], reference::wants_numa(task), g);
                std::vector<int> same;
                for (const int h : open)
                    if (reference::locality(spec_.nodes[n], reference::wants_numa(task), h) == place)
                        same.push_back(h);
                if (static_cast<std::int64_t>(same.size()) >= task.gpu_count) local.push_back(same);
            }
            open = rng_.pick(std::span(local));
        }
        rng_.shuffle(std::span(open));
        open.resize(static_cast<std::size_t>(task.gpu_count));
        std::sort(open.begin(), open.end());
        if (task.device_count > 0) {
            const auto sets = reference::device_sets(state, t, n);
            const auto& devices = rng_.pick(std::span(sets));
            open.insert(open.end(), devices.begin(), devices.end());
        }
        task.node = spec_.nodes[n].name;
        task.gpus = open;
        state.copies.push_back({t, n, open});
        return true;
    }

    static bool fits(const reference::State& s, std::size_t t, std::size_t n) {
        const auto& task = s.task(t);
        return task.cpu_milli <= reference::cpu_free_milli(s, n, reference::is_lp(task)) &&
               task.memory_mib <= reference::memory_free_mib(s, n) &&
               static_cast<std::int64_t>(reference::candidates(s, t, n).size()) >= task.gpu_count &&
               reference::enough_resources(s, t, n) && reference::enough_devices(s, t, n);
    }

    // What happened after the tasks were placed.
    void disturb() {
        for (auto& node : spec_.nodes) {
            if (rng_.chance(0.07)) node.schedulable = false;
            if (rng_.chance(0.1))
                for (int g = 0; g < node.gpu_count; ++g)
                    if (rng_.chance(0.4)) node.failed_gpus.push_back(g);
            if (options_.extras > 0 && rng_.chance(0.2)) {
                int devices = 0;
                for (const auto& group : node.devices) devices += static_cast<int>(group.count);
                for (int d = 0; d < devices; ++d)
                    if (rng_.chance(0.3)) node.failed_gpus.push_back(static_cast<int>(node.gpu_count) + d);
            }
            static const std::array<std::string, 3> effects{"NoSchedule", "NoExecute", "PreferNoSchedule"};
            if (rng_.chance(0.12)) node.taints.push_back({"dedicated", numbered("team", 2), one_of(effects)});
            if (rng_.chance(0.02)) node.taints.push_back({"maintenance", "", one_of(effects)});
        }
    }

    gpusched::Rng& rng_;
    RandomClusterOptions options_;
    gpusched::ClusterSpec spec_{};
    int depth_ = 0;
};

inline gpusched::ClusterSpec random_cluster(gpusched::Rng& rng, const RandomClusterOptions& options = {}) {
    return RandomCluster(rng, options).make();
}

}  // namespace testing_support
