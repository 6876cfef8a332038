// SPDX-License-Identifier: Apache-2.0
// why on tiny clusters against the naive rules of reference.hpp: the tables, the cause, whether it is impossible, and
// remedies. The oracle asks each constraint by itself and tries every placement.
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/admission/admission.hpp>
#include <gpusched/allocation/allocate.hpp>

using namespace gpusched;
using namespace testing_support;

namespace why_tests {

using reference::State;
using Names = std::vector<std::string>;

const std::string state_prefix = "node.kubernetes.io/";
const std::string cordon_key = state_prefix + "unschedulable";

bool is_state(const Taint& taint) { return taint.key.starts_with(state_prefix); }

/// The constraints that refuse the node, each asked alone, in the order of tables.
Names refusing(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    const auto& n = s.node(node);
    Names found;
    const auto add = [&](bool refuses, const std::string& name) {
        if (refuses) found.push_back(name);
    };
    add(!t.gpu_models.empty() && std::count(t.gpu_models.begin(), t.gpu_models.end(), n.gpu_model) == 0,
        "gpu_model");
    add(std::any_of(t.node_selector.begin(), t.node_selector.end(),
                    [&](const auto& label) {
                        return !n.labels.contains(label.first) || n.labels.at(label.first) != label.second;
                    }),
        "node_selector");
    add(!reference::affinity_holds(t, n), "node_affinity");
    bool taint = false, cordoned = false, not_ready = false, said = false, by_taint = false;
    for (const auto& one : n.taints) {
        by_taint = by_taint || (one.key == cordon_key && one.effect == "NoSchedule");
        if (one.effect == "PreferNoSchedule") continue;
        said = said || one.key == state_prefix + "not-ready" || one.key == state_prefix + "unreachable";
        if (reference::tolerated(t, one)) continue;
        (one.key == cordon_key ? cordoned : is_state(one) ? not_ready : taint) = true;
    }
    if (!n.schedulable && !by_taint) (said ? not_ready : cordoned) = true;
    add(taint, "taint");
    add(cordoned, "cordoned");
    add(not_ready, "not_ready");
    const auto need = t.gpu_count;
    std::int64_t healthy = 0, unheld_failed = 0;
    for (int g = 0; g < n.gpu_count; ++g) {
        if (!reference::has_failed(n, g)) {
            ++healthy;
        } else if (std::none_of(s.copies.begin(), s.copies.end(),
                                [&](const auto& c) { return c.node == node && reference::holds(c, g); })) {
            ++unheld_failed;
        }
    }
    const auto idle = std::ssize(reference::candidates(s, task, node, false));
    const auto fitting = std::ssize(reference::candidates(s, task, node));
    const bool failed = healthy < need && need <= n.gpu_count;
    add(failed, "failed_gpus");
    add(idle < need && (!failed || idle + unheld_failed < need), "gpu");
    const bool memory_counts = need > 0 && t.gpu_memory_mib > 0 && n.gpu_memory_mib;
    add(memory_counts && (*n.gpu_memory_mib < t.gpu_memory_mib || (idle >= need && fitting < need)),
        "gpu_memory");
    if (reference::is_guaranteed(t)) {
        std::map<int, int> places;
        for (int g = 0; g < n.gpu_count; ++g)
            if (const int at = reference::locality(n, reference::wants_numa(t), g); at >= 0) ++places[at];
        bool some = false;
        for (const auto& [at, gpus] : places) some = some || gpus >= need;
        auto spec = *s.spec;
        spec.tasks[task].device_count = 0;
        const State without{&spec, s.copies};
        add(!n.hardware || !some || (fitting >= need && reference::gpu_sets(without, task, node).empty()),
            "hardware");
    }
    add(!reference::enough_devices(s, task, node), "device");
    add(t.cpu_milli > reference::cpu_free_milli(s, node, reference::is_lp(t)), "cpu");
    add(t.memory_mib > reference::memory_free_mib(s, node), "memory");
    for (const auto& [name, amount] : t.resources)
        if (name != "pods") add(amount > reference::resource_free(s, node, name), "resource " + name);
    if (t.resources.contains("pods"))
        add(t.resources.at("pods") > reference::resource_free(s, node, "pods"), "pods");
    const auto alone = [&](const std::string& kind) {
        auto spec = *s.spec;
        auto& own = spec.tasks[task];
        if (kind != "anti_affinity") own.anti_affinity.clear();
        if (kind != "affinity") own.affinity.clear();
        if (kind != "network") own.job.clear(), own.network_affinity.reset();
        return reference::group_obstacle({&spec, s.copies}, task, node) == kind;
    };
    add(alone("anti_affinity"), "anti_affinity");
    add(reference::avoids(s, task, node), "avoid");
    add(reference::crowded(s, task, node), "spread");
    add(reference::lonely(s, task, node), "near");
    add(alone("affinity"), "affinity");
    add(alone("network"), "network");
    return found;
}

/// Tries every way to place the pods one after another; absent after too many steps.
std::optional<bool> can_place(State& s, std::vector<std::size_t> pods, int& steps) {
    if (pods.empty()) return true;
    if (--steps < 0) return std::nullopt;
    bool cut = false;
    for (std::size_t p = 0; p < pods.size(); ++p) {
        auto rest = pods;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(p));
        for (std::size_t n = 0; n < s.spec->nodes.size(); ++n) {
            if (!refusing(s, pods[p], n).empty()) continue;
            for (const auto& gpus : reference::gpu_sets(s, pods[p], n)) {
                s.copies.push_back({pods[p], n, gpus});
                const auto found = can_place(s, rest, steps);
                s.copies.pop_back();
                if (found.value_or(false)) return true;
                cut = cut || !found;
                if (cut) return std::nullopt;
            }
        }
    }
    return false;
}

/// Is there a set of tasks that may leave, without which the pods fit on the opened nodes?
std::optional<bool> can_ever_place(const ClusterSpec& spec, const std::vector<std::size_t>& pods) {
    auto open = spec;
    for (auto& node : open.nodes) {
        node.schedulable = true;
        std::erase_if(node.taints, is_state);
    }
    std::vector<std::size_t> may_leave;
    State fixed{&open};
    const auto all = reference::initial(open);
    for (std::size_t c = 0; c < all.copies.size(); ++c)
        if (const auto& task = all.task(all.copies[c].task); task.locked || task.daemon)
            fixed.copies.push_back(all.copies[c]);
        else
            may_leave.push_back(c);
    const bool needs_others = std::any_of(pods.begin(), pods.end(), [&](std::size_t pod) {
        return !spec.tasks[pod].near.empty() || !spec.tasks[pod].spread.empty();
    });
    if (!needs_others) may_leave.clear();
    if (may_leave.size() > 8) return std::nullopt;
    int steps = 20'000;
    bool cut = false;
    for (std::uint32_t stay = 0; stay < 1u << may_leave.size(); ++stay) {
        auto s = fixed;
        for (std::size_t i = 0; i < may_leave.size(); ++i)
            if ((stay >> i & 1) != 0) s.copies.push_back(all.copies[may_leave[i]]);
        const auto found = can_place(s, pods, steps);
        if (found.value_or(false)) return true;
        cut = cut || !found;
    }
    if (cut) return std::nullopt;
    return false;
}

ClusterSpec random_spec(std::uint64_t seed) {
    Rng rng(seed);
    RandomClusterOptions options = tiny_cluster;
    options.pending = 0.3;
    options.max_tasks = 8;
    options.grouped = 0.2;
    if (rng.chance(0.5)) options.extras = 0.3;
    if (rng.chance(0.5)) options.selected = 0.3;
    auto spec = RandomCluster(rng, options).make();
    for (auto& node : spec.nodes) {
        if (rng.chance(0.1)) {
            node.schedulable = false;
            node.taints.push_back({cordon_key, "", "NoSchedule"});
        }
        if (rng.chance(0.08)) {
            node.taints.push_back(
                {state_prefix + (rng.chance(0.7) ? "not-ready" : "disk-pressure"), "", "NoSchedule"});
            if (rng.chance(0.5)) node.schedulable = false;
        }
    }
    for (auto& task : spec.tasks)
        if (rng.chance(0.05)) task.tolerations.push_back({cordon_key, "Exists", "", ""});
    return spec;
}

Names split(const std::string& text) {
    Names names;
    std::stringstream stream(text);
    for (std::string name; std::getline(stream, name, ',');)
        names.push_back(name.substr(name.find_first_not_of(' ')));
    return names;
}

struct Seen {
    int asked = 0, fits = 0, waiting = 0, impossible = 0, possible = 0, alone = 0, together = 0, gangs = 0,
        topology = 0, fragmented = 0, short_of = 0, uncordoned = 0, added = 0, undecided = 0;
};

class Check {
  public:
    Check(const ClusterSpec& spec, const std::string& name, Seen& seen)
        : spec_(spec), cluster_(Cluster::build(spec)), state_(reference::initial(spec)), seen_(seen),
          why_(admission::why(cluster_, name)) {
        ++seen_.asked;
        for (const auto pod : why_.pods) pods_.push_back(task_index(cluster_.name(pod)));
        INFO(name << ": " << why_.cause);
        REQUIRE(!pods_.empty());
        check_waiting();
        for (const auto& kind : why_.kinds) check_table(kind);
        if (why_.waiting_for) return;
        check_fits();
        if (why_.fits) return;
        check_impossible();
        if (pods_.size() == 1) check_cause();
        check_remedies();
    }

  private:
    std::size_t task_index(const std::string& name) const {
        for (std::size_t t = 0; t < spec_.tasks.size(); ++t)
            if (spec_.tasks[t].name == name) return t;
        throw std::logic_error("no task " + name);
    }

    void check_waiting() {
        const bool incomplete = std::any_of(pods_.begin(), pods_.end(), [&](std::size_t pod) {
            return testing_support::is_incomplete(spec_, spec_.tasks[pod].job);
        });
        CHECK(why_.waiting_for.has_value() == incomplete);
        if (!incomplete) return;
        ++seen_.waiting;
        CHECK(why_.waiting_for == WaitingFor::gang_incomplete);
        CHECK(why_.cause_kind == admission::Cause::waiting);
    }

    void check_table(const admission::WhyKind& kind) {
        const auto pod = task_index(kind.pod);
        std::map<std::string, std::int64_t> first, alone, any;
        std::map<std::string, std::set<std::string>> alone_nodes;
        std::int64_t fit = 0, sum = 0;
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
            const auto names = refusing(state_, pod, n);
            const auto obstacle = find_obstacle(cluster_, cluster_.find_task(kind.pod),
                                                cluster_.find_node(spec_.nodes[n].name));
            CHECK(names.empty() == (obstacle == Obstacle::none));
            if (names.empty()) {
                ++fit;
                continue;
            }
            ++first[names.front()];
            for (const auto& name : names) ++any[name];
            if (names.size() > 1) continue;
            ++alone[names.front()];
            alone_nodes[names.front()].insert(spec_.nodes[n].name);
        }
        CHECK(kind.nodes_fit == fit);
        CHECK(kind.table.size() == any.size());
        for (const auto& row : kind.table) {
            INFO(row.constraint);
            CHECK(row.nodes_first == first[row.constraint]);
            CHECK(row.nodes_alone == alone[row.constraint]);
            sum += row.nodes_first;
            REQUIRE(row.best_node.has_value() == (row.nodes_alone > 0));
            if (!row.best_node) continue;
            CHECK(alone_nodes[row.constraint].contains(*row.best_node));
            if (row.constraint != "gpu" || spec_.tasks[pod].gpu_share_milli < 1000) continue;
            // The first of the nodes with the most idle GPUs.
            std::pair<std::ptrdiff_t, std::string> best{-1, ""};
            for (std::size_t n = 0; n < spec_.nodes.size(); ++n)
                if (alone_nodes["gpu"].contains(spec_.nodes[n].name))
                    if (const auto idle = std::ssize(reference::candidates(state_, pod, n, false));
                        idle > best.first)
                        best = {idle, spec_.nodes[n].name};
            CHECK(*row.best_node == best.second);
        }
        CHECK(sum + fit == std::ssize(spec_.nodes));
        CHECK(kind.places <= kind.pods);
        CHECK((kind.places > 0) == (fit > 0));
    }

    void check_fits() {
        auto s = state_;
        int steps = 20'000;
        const auto can = can_place(s, pods_, steps);
        if (!can) return;
        if (why_.fits) CHECK(*can);
        if (pods_.size() == 1 || !*can) CHECK(why_.fits == *can);
        if (why_.fits) {
            ++seen_.fits;
            CHECK(why_.cause_kind == admission::Cause::none);
            CHECK(why_.remedies.empty());
        } else {
            CHECK(why_.cause_kind != admission::Cause::none);
            CHECK_FALSE(why_.cause.empty());
        }
        if (pods_.size() > 1) ++seen_.gangs;
        if (why_.cause_kind != admission::Cause::topology) return;
        ++seen_.topology;
        auto without = spec_;
        for (auto& task : without.tasks) task.network_affinity.reset();
        State all{&without, state_.copies};
        steps = 20'000;
        CHECK(can_place(all, pods_, steps).value_or(true));
    }

    void check_impossible() {
        const auto can = can_ever_place(spec_, pods_);
        if (!can) return;
        if (!why_.impossible) {
            ++seen_.undecided;
            return;
        }
        // Tasks that the pods need near can also move, which `can_ever_place` does not try.
        if (*can) CHECK_FALSE(*why_.impossible);
        if (*why_.impossible) CHECK_FALSE(admission::admit(cluster_, why_.pods).admitted);
        ++(*can ? seen_.possible : seen_.impossible);
        CHECK((why_.cause_kind == admission::Cause::impossible) == *why_.impossible);
    }

    /// The obstacle of `allocate` that a constraint of `why` stands for.
    static std::string obstacle_of(const std::string& constraint) {
        return constraint == "failed_gpus"                                   ? "gpu"
               : constraint == "pods" || constraint.starts_with("resource ") ? "resource"
                                                                             : constraint;
    }

    void check_cause() {
        std::set<std::size_t> sizes;
        std::set<Names> sets;
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n) sets.insert(refusing(state_, pods_[0], n));
        for (const auto& set : sets) sizes.insert(set.size());
        const auto placed = allocation::allocate(cluster_, why_.pods);
        INFO(placed.reason);
        CHECK(std::any_of(sets.begin(), sets.end(), [&](const Names& set) {
            return set.size() == *sizes.begin() && obstacle_of(set.front()) == enum_name(placed.obstacle);
        }));
        if (why_.cause_kind == admission::Cause::impossible) return;
        CHECK(sets.contains(why_.constraints));            // without them, a node takes the pod
        CHECK(*sizes.begin() == why_.constraints.size());  // and no smaller set helps
        ++(why_.constraints.size() == 1 ? seen_.alone : seen_.together);
        const bool by_gpus = why_.cause_kind == admission::Cause::fragmentation ||
                             why_.cause_kind == admission::Cause::capacity;
        CHECK(by_gpus == (why_.constraints == Names{"gpu"}));
        if (!by_gpus) return;
        const auto& task = spec_.tasks[pods_[0]];
        std::int64_t idle = 0;
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
            if (refusing(state_, pods_[0], n) != Names{"gpu"}) continue;
            if (task.gpu_share_milli == 1000)
                idle += 1000 * std::ssize(reference::candidates(state_, pods_[0], n, false));
            else
                for (int g = 0; g < spec_.nodes[n].gpu_count; ++g)
                    idle += reference::gpu_free_milli(state_, n, g, reference::is_lp(task));
        }
        const bool enough = idle >= task.gpu_count * task.gpu_share_milli;
        CHECK((why_.cause_kind == admission::Cause::fragmentation) == enough);
        ++(enough ? seen_.fragmented : seen_.short_of);
    }

    /// Asks again in a changed snapshot.
    void check_place(const ClusterSpec& changed) {
        auto s = reference::initial(changed);
        int steps = 20'000;
        CHECK(can_place(s, pods_, steps).value_or(true));
    }

    void check_remedies() {
        std::optional<std::int64_t> last = 0;
        for (const auto& remedy : why_.remedies) {
            INFO(remedy.text);
            CHECK((!remedy.cost || (last && *last <= *remedy.cost)));
            last = remedy.cost;
            const auto what = remedy.text.substr(0, remedy.text.find(';'));  // without earlier jobs
            auto changed = spec_;
            if (remedy.kind == admission::RemedyKind::uncordon) {
                for (const auto& name : split(what.substr(9))) {
                    auto& node = changed.nodes[reference::node_index(changed, name)];
                    node.schedulable = true;
                    std::erase_if(node.taints, [](const Taint& taint) { return taint.key == cordon_key; });
                }
                check_place(changed);
                ++seen_.uncordoned;
            } else if (remedy.kind == admission::RemedyKind::add_nodes) {
                const auto count = std::stoi(what.substr(4));
                auto node =
                    changed.nodes[reference::node_index(changed, what.substr(what.find("like ") + 5))];
                node.schedulable = true;
                node.failed_gpus.clear();
                std::erase_if(node.taints, is_state);
                const auto name = node.name;
                for (int i = 0; i < count; ++i) {
                    node.name = name + " (new " + std::to_string(i) + ")";
                    if (node.labels.contains("kubernetes.io/hostname"))
                        node.labels["kubernetes.io/hostname"] = node.name;
                    changed.nodes.push_back(node);
                }
                check_place(changed);
                ++seen_.added;
            }
        }
    }

    const ClusterSpec& spec_;
    Cluster cluster_;
    State state_;
    Seen& seen_;
    admission::Why why_;
    std::vector<std::size_t> pods_;
};

}  // namespace why_tests

TEST_CASE("why agrees with each constraint asked alone and with every placement of tiny clusters") {
    using namespace why_tests;
    Seen seen;
    const auto clusters = instances(400);
    for (int seed = 0; seed < clusters; ++seed) {
        INFO("seed " << seed);
        const auto spec = random_spec(static_cast<std::uint64_t>(seed));
        std::set<std::string> names;
        for (const auto& task : spec.tasks) {
            if (task.node) continue;
            names.insert(task.name);
            if (!task.job.empty()) names.insert(task.job);
        }
        for (const auto& name : names) {
            const auto pods = std::count_if(spec.tasks.begin(), spec.tasks.end(), [&](const TaskSpec& task) {
                return !task.node && (task.job == name || task.name == name);
            });
            if (pods <= 3) Check(spec, name, seen);
        }
    }
    CAPTURE(seen.asked, seen.fits, seen.waiting, seen.impossible, seen.possible, seen.alone, seen.together,
            seen.gangs, seen.topology, seen.fragmented, seen.short_of, seen.uncordoned, seen.added,
            seen.undecided);
    CHECK(seen.asked >= instances(400));
    CHECK(seen.waiting >= instances(10));
    CHECK(seen.impossible >= instances(20));
    CHECK(seen.possible >= instances(50));
    CHECK(seen.alone >= instances(20));
    CHECK(seen.together >= instances(5));
    CHECK(seen.fragmented + seen.short_of >= instances(5));
    CHECK(seen.uncordoned >= 1);
    CHECK(seen.added >= instances(5));
    CHECK(seen.undecided == 0);
}
