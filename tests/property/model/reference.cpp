// SPDX-License-Identifier: Apache-2.0
// The cluster against the naive rules: after any sequence of changes both must give the same answers.
#include "support/random_cluster.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace {

std::vector<int> to_list(GpuMask mask) {
    std::vector<int> list;
    for_each_gpu(mask, [&](int g) { list.push_back(g); });
    return list;
}

GpuMask to_mask(const std::vector<int>& list) {
    GpuMask mask = 0;
    for (const int g : list) mask |= gpu_bit(g);
    return mask;
}

/// Everything that can be read from a cluster, iteration orders included.
std::string observe(const Cluster& c) {
    std::ostringstream out;
    for (const auto n : c.nodes()) {
        out << c.occupants(n) << ' ' << c.memory_free_mib(n) << ':';
        for (const auto lent : {Lent::no, Lent::yes}) {
            out << c.cpu_free_milli(n, lent) << ' ' << c.idle_gpus(n, lent) << ' '
                << c.gpu_free_total_milli(n, lent) << ' ';
            for (int g = 0; g < c.gpu_count(n); ++g) out << c.gpu_free_milli(n, g, lent) << ' ';
        }
        for (int g = 0; g < c.gpu_count(n); ++g) out << c.gpu_memory_free_mib(n, g) << ' ';
        for (std::uint32_t r = 0; r < c.inventory().resource_names.size(); ++r)
            out << c.resource_free(n, r) << ' ';
        out << c.free_devices(n) << ' ';
        for (const auto t : c.tasks_on(n)) out << index(t) << '/' << c.gpus_of(t) << ' ';
        out << '\n';
    }
    const auto& inv = c.inventory();
    for (std::uint32_t s = 0; s < inv.group_sets.size(); ++s) {
        out << c.group_domains(s) << ':';
        const auto kind = inv.group_sets[s].kind;
        for (const auto n : c.nodes()) {
            const auto domain = inv.domain_at(inv.group_sets[s].level, n);
            if (domain == none<DomainId>) continue;
            out << c.group_count(s, domain) << ' ';
            if (kind == GroupKind::avoid) out << c.avoiders(s, domain) << ' ';
        }
        if (kind == GroupKind::spread) out << c.fewest_members(s) << ' ';
    }
    for (const auto t : c.tasks())
        for (const auto n : c.nodes()) out << static_cast<int>(find_obstacle(c, t, n));
    return out.str();
}

/// A cluster and the naive state that mirrors it.
struct Pair {
    ClusterSpec spec;
    Cluster cluster;
    std::vector<reference::Copy> reserved{};
    std::vector<reference::Copy> placed{};  // by task; node = SIZE_MAX: pending

    Pair(Rng& rng, std::uint64_t seed)
        : spec(testing_support::random_cluster(
              rng, {.extras = seed % 2 == 0 ? 0 : 0.3, .selected = seed % 3 == 0 ? 0 : 0.2})),
          cluster(Cluster::build(spec)) {
        placed.assign(spec.tasks.size(), {0, SIZE_MAX, {}});
        for (std::size_t t = 0; t < placed.size(); ++t) placed[t].task = t;
        for (const auto& c : reference::initial(spec).copies) placed[c.task] = c;
    }

    reference::State state() const {
        reference::State s{&spec};
        for (const auto& c : placed)
            if (c.node != SIZE_MAX) s.copies.push_back(c);
        s.copies.insert(s.copies.end(), reserved.begin(), reserved.end());
        return s;
    }

    bool has_reservation(std::size_t task) const {
        return std::any_of(reserved.begin(), reserved.end(), [&](const auto& c) { return c.task == task; });
    }

    // One random change that keeps resources within capacity; everything else may be violated.
    void change(Rng& rng) {
        const auto t = static_cast<std::size_t>(rng.below(spec.tasks.size()));
        const auto n = static_cast<std::size_t>(rng.below(spec.nodes.size()));
        const auto task = make_id<TaskId>(t);
        const auto node = make_id<NodeId>(n);
        switch (rng.below(8)) {
        case 0:
            cluster.remove(task);
            placed[t] = {t, SIZE_MAX, {}};
            return;
        case 1:
            if (reserved.empty()) return;
            {
                const auto which = static_cast<std::ptrdiff_t>(rng.below(reserved.size()));
                const auto c = reserved[static_cast<std::size_t>(which)];
                reserved.erase(reserved.begin() + which);
                cluster.unreserve(make_id<TaskId>(c.task), make_id<NodeId>(c.node), to_mask(c.gpus));
            }
            return;
        default:
            break;
        }
        const bool reserve = rng.chance(0.3);
        if (reserve && has_reservation(t)) return;
        auto s = state();
        if (!reserve)
            std::erase_if(s.copies, [&](const auto& c) { return c.task == t && !has_reservation(t); });
        if (reference::resource_obstacle(s, t, n) != "none") return;
        const auto sets = reference::gpu_sets(s, t, n);
        const auto gpus = sets[static_cast<std::size_t>(rng.below(sets.size()))];
        if (reserve) {
            cluster.reserve(task, node, to_mask(gpus));
            reserved.push_back({t, n, gpus});
        } else {
            cluster.assign(task, node, to_mask(gpus));
            placed[t] = {t, n, gpus};
        }
    }

    // @return how many questions were answered
    std::size_t compare(Rng& rng) const {
        const auto s = state();
        std::size_t questions = 0;
        for (const auto node : cluster.nodes()) {
            const auto n = index(node);
            int occupants = 0;
            for (const auto& c : placed) occupants += c.node == n && !spec.tasks[c.task].daemon ? 1 : 0;
            REQUIRE(cluster.occupants(node) == occupants);
            REQUIRE(cluster.memory_free_mib(node) == reference::memory_free_mib(s, n));
            for (const bool borrow : {false, true}) {
                const auto lent = borrow ? Lent::yes : Lent::no;
                REQUIRE(cluster.cpu_free_milli(node, lent) == reference::cpu_free_milli(s, n, borrow));
                std::int64_t sum = 0;
                GpuMask idle = 0;
                for (int g = 0; g < cluster.gpu_count(node); ++g) {
                    const auto free = reference::gpu_free_milli(s, n, g, borrow);
                    REQUIRE(cluster.gpu_free_milli(node, g, lent) == free);
                    sum += free;
                    if (free == 1000) idle |= gpu_bit(g);
                    if (spec.nodes[n].gpu_memory_mib)
                        REQUIRE(cluster.gpu_memory_free_mib(node, g) ==
                                reference::gpu_memory_free_mib(s, n, g));
                }
                REQUIRE(cluster.gpu_free_total_milli(node, lent) == sum);
                REQUIRE(cluster.idle_gpus(node, lent) == idle);
            }
            const auto& inv = cluster.inventory();
            for (std::uint32_t r = 0; r < inv.resource_names.size(); ++r)
                REQUIRE(cluster.resource_free(node, r) ==
                        reference::resource_free(s, n, inv.resource_names[r]));
            std::vector<int> devices;
            for (std::uint32_t d = 0; d < inv.device_classes.size(); ++d)
                for (const int device : reference::free_devices(s, n, inv.device_classes[d]))
                    devices.push_back(device);
            std::sort(devices.begin(), devices.end());
            REQUIRE(to_list(cluster.free_devices(node)) == devices);
            std::vector<std::size_t> listed, expected;
            for (const auto t : cluster.tasks_on(node)) listed.push_back(index(t));
            for (const auto& c : placed)
                if (c.node == n) expected.push_back(c.task);
            std::sort(listed.begin(), listed.end());
            REQUIRE(listed == expected);
        }
        for (const auto task : cluster.tasks()) {
            const auto t = index(task);
            REQUIRE(cluster.is_placed(task) == (placed[t].node != SIZE_MAX));
            if (cluster.is_placed(task)) {
                REQUIRE(index(cluster.node_of(task)) == placed[t].node);
                REQUIRE(to_list(cluster.gpus_of(task)) == placed[t].gpus);
            }
            if (has_reservation(t)) continue;  // its own second copy is the caller's business
            for (const auto node : cluster.nodes()) {
                const auto n = index(node);
                INFO("task " << spec.tasks[t].name << " on node " << spec.nodes[n].name);
                REQUIRE(std::string(enum_name(find_obstacle(cluster, task, node))) ==
                        reference::obstacle(s, t, n));
                REQUIRE(std::string(enum_name(find_eligibility_obstacle(cluster, task, node))) ==
                        reference::eligibility(spec.tasks[t], spec.nodes[n]));
                REQUIRE(std::string(enum_name(find_resource_obstacle(cluster, task, node))) ==
                        reference::resource_obstacle(s, t, n));
                REQUIRE(std::string(enum_name(find_group_obstacle(cluster, task, node))) ==
                        reference::group_obstacle(s, t, n));
                REQUIRE(to_list(candidate_gpus(cluster, task, node)) == reference::candidates(s, t, n));
                const auto sets = reference::gpu_sets(s, t, n);
                for (int i = 0; i < 4; ++i) {
                    auto mask = rng() & (first_gpus(cluster.gpu_count(node)) | cluster.devices(node));
                    if (!sets.empty() && i > 0)
                        mask = to_mask(sets[static_cast<std::size_t>(rng.below(sets.size()))]);
                    if (i > 1 && cluster.gpu_count(node) > 0)
                        mask ^= gpu_bit(
                            static_cast<int>(rng.below(static_cast<std::uint64_t>(cluster.gpu_count(node)))));
                    REQUIRE(gpus_fit(cluster, task, node, mask) ==
                            (std::find(sets.begin(), sets.end(), to_list(mask)) != sets.end()));
                    ++questions;
                }
            }
        }
        return questions;
    }
};

}  // namespace

TEST_CASE("cluster and feasibility agree with the naive rules after random changes") {
    std::size_t questions = 0;
    for (std::uint64_t seed = 0; seed < 250; ++seed) {
        Rng rng(seed);
        Pair pair(rng, seed);
        INFO("seed " << seed);
        questions += pair.compare(rng);
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 12; ++i) pair.change(rng);
            questions += pair.compare(rng);
        }
    }
    REQUIRE(questions > 100'000);
}

TEST_CASE("undo brings everything back exactly") {
    for (std::uint64_t seed = 1000; seed < 1250; ++seed) {
        Rng rng(seed);
        Pair pair(rng, seed);
        INFO("seed " << seed);
        std::vector<std::pair<Cluster::Checkpoint, std::string>> history;
        for (int i = 0; i < 25; ++i) {
            history.emplace_back(pair.cluster.checkpoint(), observe(pair.cluster));
            pair.change(rng);
        }
        // Back step by step or in leaps, and through a copy as well: a copy takes the history with it.
        auto copy = pair.cluster;
        while (!history.empty()) {
            pair.cluster.rollback(history.back().first);
            REQUIRE(observe(pair.cluster) == history.back().second);
            for (auto leap = rng.below(3) + 1; leap > 0 && !history.empty(); --leap) history.pop_back();
        }
        copy.rollback(0);
        pair.cluster.rollback(0);
        REQUIRE(observe(copy) == observe(pair.cluster));
        REQUIRE(copy.same_placement(pair.cluster));
    }
}

TEST_CASE("a snapshot written as data and built again answers the same") {
    for (std::uint64_t seed = 2000; seed < 2200; ++seed) {
        Rng rng(seed);
        Pair pair(rng, seed);
        INFO("seed " << seed);
        for (int i = 0; i < 20; ++i) pair.change(rng);
        for (const auto& c : pair.reserved)
            pair.cluster.unreserve(make_id<TaskId>(c.task), make_id<NodeId>(c.node), to_mask(c.gpus));
        // Standby and locked tasks must be somewhere in a valid snapshot.
        auto spec = pair.cluster.to_spec();
        for (auto& task : spec.tasks)
            if (!task.node) task.locked = task.standby = false;
        const auto once = Cluster::build(spec);
        const auto twice = Cluster::build(once.to_spec());
        REQUIRE(observe(once) == observe(twice));
        pair.spec = spec;
        pair.reserved.clear();
        pair.cluster = once;
        pair.compare(rng);
    }
}
