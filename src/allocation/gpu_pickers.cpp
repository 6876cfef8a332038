// SPDX-License-Identifier: Apache-2.0
// GPU pickers: compare sets of GPUs by their effect on sockets, NUMA nodes and links.
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/allocation/slowdown.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/detail/small_vector.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/gpu_names.hpp>

#include <boost/container/static_vector.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::allocation {
namespace detail {

/// Returns sets of candidate GPUs; one of them must hold all GPUs of the task. There is one set per
/// guaranteed locality with enough candidates, or one set with all candidates.
static boost::container::static_vector<GpuMask, most_gpu_localities> allowed_gpus(const Cluster& cluster,
                                                                                  TaskId task, NodeId node) {
    const auto candidates = candidate_gpus(cluster, task, node);
    const auto local = guaranteed_localities(cluster, task, node);
    if (local.unknown) return {};
    if (local.masks.empty()) return {candidates};
    boost::container::static_vector<GpuMask, most_gpu_localities> sets;
    for (const auto mask : local.masks) {
        const auto here = static_cast<GpuMask>(mask & candidates);
        // The vector's capacity is enough: no more localities have GPUs.
        if (here != 0 && gpu_count(here) >= cluster.inventory().tasks.gpu_count[index(task)])
            sets.push_back(here);
    }
    return sets;
}

static GpuMask tightest_of(const Cluster& cluster, TaskId task, NodeId node, GpuMask candidates) {
    GpuMask best = 0;
    int least = whole_gpu_milli + 1;
    for_each_gpu(candidates, [&](int g) {
        const int left = cluster.gpu_free_milli(node, g, cluster.lent_to(task));
        if (left < least) best = gpu_bit(g), least = left;
    });
    return best;
}
static GpuMask tightest_gpu(const Cluster& cluster, TaskId task, NodeId node) {
    return tightest_of(cluster, task, node, candidate_gpus(cluster, task, node));
}

/// The effect of a choice of GPUs on the machine. Less is better.
struct Effect {
    int sockets = 0, numa_nodes = 0;         // how many hold GPUs of the choice
    int socket_blocks = 0, numa_blocks = 0;  // minus the sum of squares of the GPUs that stay idle in each
};

/// GPUs per locality of one machine.
struct Localities {
    const std::vector<GpuMask>&socket, &numa;
};

static Effect effect_of(const Localities& machine, GpuMask idle, GpuMask chosen) {
    Effect effect;
    const auto count = [&](const std::vector<GpuMask>& localities, int& crossed, int& blocks) {
        for (const auto mask : localities) {
            crossed += (mask & chosen) != 0 ? 1 : 0;
            const int left = gpu_count(static_cast<GpuMask>(mask & idle & ~chosen));
            blocks -= left * left;
        }
    };
    count(machine.socket, effect.sockets, effect.socket_blocks);
    count(machine.numa, effect.numa_nodes, effect.numa_blocks);
    return effect;
}

/// Returns the allowed set of whole GPUs of a machine with the least `key(Effect, set, GPUs that stay idle)`.
template <class Key>
GpuMask best_set(const Cluster& cluster, TaskId task, NodeId node, const Localities& machine, Key&& key) {
    const int wanted = cluster.inventory().tasks.gpu_count[index(task)];
    const auto idle = cluster.idle_gpus(node, cluster.lent_to(task));
    const auto judge = [&](GpuMask chosen) {
        return key(effect_of(machine, idle, chosen), chosen, idle & ~chosen);
    };
    GpuMask best = 0;
    auto least = key(Effect{}, GpuMask{0}, GpuMask{0});
    for (const auto set : allowed_gpus(cluster, task, node))
        for_each_promising_gpu_set(set, wanted, judge, [&](GpuMask chosen) {
            const auto now = judge(chosen);
            if (best == 0 || now < least) best = chosen, least = now;
        });
    return best;
}

/// The same on the machine that the snapshot describes, for `key(Effect)`; the lowest GPUs if it describes
/// none.
template <class Key>
GpuMask best_set(const Cluster& cluster, TaskId task, NodeId node, Key&& key) {
    const auto& inv = cluster.inventory();
    const auto id = inv.nodes.hardware[index(node)];
    if (id == NodeTable::no_hardware) {
        const auto allowed = allowed_gpus(cluster, task, node);
        return allowed.empty() ? GpuMask{0} : lowest_gpus(allowed.front(), inv.tasks.gpu_count[index(task)]);
    }
    return best_set(cluster, task, node, Localities{inv.hardware[id].socket, inv.hardware[id].numa},
                    [&](const Effect& effect, GpuMask, GpuMask) { return key(effect); });
}

/// The graph of a node's machine, if there is one.
static const topology::HardwareGraph* graph_of(const MachineGraphs& machines, const Inventory& inventory,
                                               NodeId node) {
    if (const auto own = machines.by_node.find(inventory.nodes.names[index(node)]);
        own != machines.by_node.end())
        return &own->second;
    const auto model = inventory.nodes.gpu_model[index(node)];
    if (model == none<GpuModelId>) return nullptr;
    const auto found = machines.by_gpu_model.find(inventory.gpu_models[index(model)]);
    return found == machines.by_gpu_model.end() ? nullptr : &found->second;
}

/// Returns an error message if the graph lacks healthy GPUs of the node, otherwise an empty string.
static std::string lacking_gpus(const topology::HardwareGraph& graph, const Inventory& inventory,
                                NodeId node) {
    const auto& nodes = inventory.nodes;
    const auto healthy = first_gpus(nodes.gpu_count[index(node)]) & ~nodes.failed_gpus[index(node)];
    const auto lacks = healthy & ~graph.gpus();
    if (lacks == 0) return {};
    return "node " + gpusched::quoted(nodes.names[index(node)]) + ": the graph of its machine lacks GPU " +
           std::to_string(std::countr_zero(lacks));
}

/// Returns the sum over the pairs of a set, in MB/s: whole numbers add up without rounding. Pairs of unknown
/// bandwidth do not count.
static std::int64_t total_bandwidth(const topology::HardwareGraph& graph, GpuMask gpus) {
    constexpr double most = 1e6;  // GB/s, far beyond any link
    std::int64_t total = 0;
    for_each_gpu(gpus, [&](int a) {
        for_each_gpu(static_cast<GpuMask>(gpus & ~first_gpus(a + 1)), [&](int b) {
            if (const auto gb_s = graph.bandwidth(a, b); std::isfinite(gb_s))
                total += std::llround(std::min(gb_s, most) * 1000);
        });
    });
    return total;
}

static int total_distance(const topology::HardwareGraph& graph, GpuMask gpus) {
    constexpr int no_path = 1 << 20;
    int total = 0;
    for_each_gpu(gpus, [&](int a) {
        for_each_gpu(static_cast<GpuMask>(gpus & ~first_gpus(a + 1)),
                     [&](int b) { total += graph.distance(a, b).value_or(no_path); });
    });
    return total;
}

}  // namespace detail

GPUSCHED_EXPORT GpuMask TightestGpu::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    if (cluster.is_fraction(task)) return detail::tightest_gpu(cluster, task, node);
    GpuMask tightest = 0;
    for (const auto set : detail::allowed_gpus(cluster, task, node))
        if (tightest == 0 || gpu_count(set) < gpu_count(tightest)) tightest = set;
    return tightest == 0 ? GpuMask{0}
                         : lowest_gpus(tightest, cluster.inventory().tasks.gpu_count[index(task)]);
}

GPUSCHED_EXPORT GpuMask FewestCrossings::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    if (cluster.is_fraction(task)) return detail::tightest_gpu(cluster, task, node);
    return detail::best_set(cluster, task, node, [](const detail::Effect& e) {
        return std::tuple(e.sockets, e.numa_nodes, e.socket_blocks, e.numa_blocks);
    });
}

GPUSCHED_EXPORT GpuMask LeastHarm::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    if (cluster.is_fraction(task)) return detail::tightest_gpu(cluster, task, node);
    return detail::best_set(cluster, task, node, [](const detail::Effect& e) {
        return std::tuple(e.socket_blocks, e.numa_blocks, e.sockets, e.numa_nodes);
    });
}

GPUSCHED_EXPORT GpuMask ByWish::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    if (cluster.is_fraction(task)) return detail::tightest_gpu(cluster, task, node);
    const auto& inv = cluster.inventory();
    const auto& wishes = inv.task_affinities[inv.tasks.affinities[index(task)]].hardware_affinity;
    if (wishes.empty()) return LeastHarm{}(cluster, task, node);
    if (std::any_of(wishes.begin(), wishes.end(),
                    [](const auto& wish) { return wish.level == HardwareLevel::numa; }))
        return FewestCrossings{}(cluster, task, node);
    return detail::best_set(cluster, task, node, [](const detail::Effect& e) {
        return std::tuple(e.sockets, e.socket_blocks, e.numa_blocks, e.numa_nodes);
    });
}

GPUSCHED_EXPORT ByLinks::ByLinks(const Inventory& inventory, MachineGraphs machines) {
    Problems problems;
    std::vector<std::string> known;
    for (std::size_t i = 0; i < inventory.gpu_models.size(); ++i) known.push_back(inventory.gpu_models[i]);
    for (auto& [name, graph] : std::exchange(machines.by_gpu_model, {})) {
        const auto models = matching_gpu_models(name, known);
        if (models.size() > 1)
            problems.add(gpusched::detail::ambiguous_gpu_model("by_gpu_model", name, models, {}));
        else if (models.empty() || !machines.by_gpu_model.emplace(models.front(), graph).second)
            problems.add(bad_value("by_gpu_model", gpusched::quoted(name),
                                   models.empty() ? "a GPU model of the cluster" : "each model once"));
    }
    machines_ = std::make_shared<const MachineGraphs>(std::move(machines));
    for (const auto& [name, graph] : machines_->by_node)
        if (!inventory.nodes.names.find(name))
            problems.add(bad_value("by_node", gpusched::quoted(name), "a node of the cluster"));
    for (const auto node : inventory.living_nodes())
        if (const auto* graph = detail::graph_of(*machines_, inventory, node))
            if (auto lacks = detail::lacking_gpus(*graph, inventory, node); !lacks.empty())
                problems.add(std::move(lacks));
    problems.throw_if_any();
}

GPUSCHED_EXPORT GpuMask ByLinks::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    if (cluster.is_fraction(task)) return detail::tightest_gpu(cluster, task, node);
    const auto* const graph = detail::graph_of(*machines_, cluster.inventory(), node);
    if (graph == nullptr) return FewestCrossings{}(cluster, task, node);
    if (auto lacks = detail::lacking_gpus(*graph, cluster.inventory(), node); !lacks.empty())
        throw InvalidInput(lacks);
    const auto& masks = graph->masks();
    return detail::best_set(cluster, task, node, detail::Localities{masks.socket, masks.numa},
                            [&](const detail::Effect& e, GpuMask chosen, GpuMask left) {
                                return std::tuple(e.sockets, e.numa_nodes,
                                                  -graph->bottleneck_bandwidth(chosen),
                                                  detail::total_distance(*graph, chosen), e.socket_blocks,
                                                  e.numa_blocks, -detail::total_bandwidth(*graph, left));
                            });
}

GPUSCHED_EXPORT GpuMask RandomGpus::operator()(const Cluster& cluster, TaskId task, NodeId node,
                                               Rng& rng) const {
    const auto allowed = detail::allowed_gpus(cluster, task, node);
    if (allowed.empty()) return 0;
    auto set = rng.pick(std::span(allowed.data(), allowed.size()));
    const int wanted = cluster.inventory().tasks.gpu_count[index(task)];
    for (int extra = gpu_count(set) - wanted; extra > 0; --extra) {  // remove the surplus
        auto nth = rng.below(static_cast<std::uint64_t>(gpu_count(set)));
        GpuMask struck = set;
        for (; nth > 0; --nth) struck = static_cast<GpuMask>(struck & (struck - 1));
        set = static_cast<GpuMask>(set & ~(struck & -struck));
    }
    return set;
}

GPUSCHED_EXPORT GpuMask FgdGpus::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    if (!cluster.is_fraction(task)) return TightestGpu{}(cluster, task, node);
    GpuMask best = 0;
    std::int64_t most = 0;
    for_each_gpu(candidate_gpus(cluster, task, node), [&](int g) {
        const auto score = detail::fgd_score(*metric, metric->delta(cluster, task, node, gpu_bit(g)));
        if (best == 0 || score > most) best = gpu_bit(g), most = score;
    });
    return best;
}

GPUSCHED_EXPORT GpuMask LeastFillLossGpus::operator()(const Cluster& cluster, TaskId task,
                                                      NodeId node) const {
    if (!cluster.is_fraction(task)) return TightestGpu{}(cluster, task, node);
    return measure->best(cluster, task, node, candidate_gpus(cluster, task, node)).gpus;
}

GPUSCHED_EXPORT GpuMask OfflineLimitGpus::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    if (!cluster.is_fraction(task)) return TightestGpu{}(cluster, task, node);
    const auto within = detail::within_offline_limit(cluster, task, node, limit_milli);
    return within != 0 ? detail::tightest_of(cluster, task, node, within)
                       : detail::tightest_gpu(cluster, task, node);
}

}  // namespace gpusched::allocation
