// SPDX-License-Identifier: Apache-2.0
// Every follower of a cluster against one built from scratch, after random changes of every kind: nodes and tasks that come,
// change and go, GPUs that fail under running tasks, reservations, what-if that is kept or taken back, copies, followers that lag
// and fall out of the window.
#include "support/instances.hpp"
#include "support/membership_world.hpp"

#include <gpusched/gpusched.hpp>

using namespace gpusched;
using namespace testing_support;

namespace {

// What a user may derive: all that the hooks are about, as data.
struct Mirror {
    struct Node {
        bool there = false;
        NodeSpec spec{};
        std::vector<std::string> tasks{};
        std::int64_t cpu_free = 0, memory_free = 0;
        GpuMask idle = 0;
        bool operator==(const Node&) const = default;
    };
    struct Task {
        bool there = false;
        TaskSpec spec{};
        bool operator==(const Task&) const = default;
    };
    std::vector<Node> nodes_{};
    std::vector<Task> tasks_{};
    std::vector<BudgetSpec> budgets_{};
    std::int64_t now_ = 0;
    int rebuilt_ = 0;

    void rebuild(const Cluster& cluster) {
        nodes_.clear();
        tasks_.clear();
        for (std::size_t n = 0; n < cluster.node_slots(); ++n) node_changed(cluster, make_id<NodeId>(n));
        for (std::size_t t = 0; t < cluster.task_slots(); ++t) task_changed(cluster, make_id<TaskId>(t));
        budgets_changed(cluster);
        now_ = cluster.inventory().now;
        ++rebuilt_;
    }
    void usage_changed(const Cluster& cluster, NodeId node) {
        auto& mine = nodes_[index(node)];
        mine.tasks.clear();
        if (!cluster.contains(node)) return;
        for (const auto task : cluster.tasks_on(node)) mine.tasks.push_back(cluster.name(task));
        std::sort(mine.tasks.begin(), mine.tasks.end());
        mine.cpu_free = cluster.cpu_free_milli(node, Lent::yes);
        mine.memory_free = cluster.memory_free_mib(node);
        mine.idle = cluster.idle_gpus(node);
    }
    void node_changed(const Cluster& cluster, NodeId node) {
        if (nodes_.size() < cluster.node_slots()) nodes_.resize(cluster.node_slots());
        nodes_[index(node)] = {.there = cluster.contains(node)};
        if (cluster.contains(node)) nodes_[index(node)].spec = cluster.node_spec(node);
        usage_changed(cluster, node);
    }
    void task_changed(const Cluster& cluster, TaskId task) {
        if (tasks_.size() < cluster.task_slots()) tasks_.resize(cluster.task_slots());
        tasks_[index(task)] = {.there = cluster.contains(task)};
        if (cluster.contains(task)) tasks_[index(task)].spec = cluster.task_spec(task);
    }
    void budgets_changed(const Cluster& cluster) { budgets_ = cluster.to_spec().budgets; }
    void time_changed(const Cluster& cluster) { now_ = cluster.inventory().now; }
};

// Without hooks: built again whenever something has changed.
struct Names {
    std::vector<std::string> names_{};
    void rebuild(const Cluster& cluster) {
        names_.clear();
        for (const auto task : cluster.tasks())
            if (cluster.is_placed(task)) names_.push_back(cluster.name(task));
        std::sort(names_.begin(), names_.end());
    }
};

fragmentation::Workload workload() {
    fragmentation::Workload out;
    out.shapes.push_back({.cpu_milli = 2000, .gpu_count = 1, .gpu_share_milli = 500, .weight = 3});
    out.shapes.push_back({.cpu_milli = 1000, .gpu_count = 1, .gpu_models = {"A"}, .weight = 4});
    out.shapes.push_back({.cpu_milli = 4000, .gpu_count = 4, .gpu_models = {"B", "C"}, .weight = 2});
    out.shapes.push_back({.cpu_milli = 500});
    return out;
}

template <class M>
using Kept = Followed<fragmentation::Incremental<M>>;
template <class M>
Kept<M> kept(M metric) {
    return Kept<M>(fragmentation::Incremental<M>(std::move(metric)));
}

using Careful =
    allocation::Lexicographic<allocation::Packing, allocation::Homogeneous, allocation::EvictionHistory>;
Careful careful() {
    return Careful(allocation::Packing{}, allocation::Homogeneous{}, allocation::EvictionHistory{});
}

// Everything that follows, each asked only now and then.
class Followers {
  public:
    explicit Followers(Rng& rng, double eagerness) : rng_(rng), eagerness_(eagerness) {}

    void check(const Cluster& c) {
        const auto& inv = c.inventory();
        using namespace fragmentation;
        if (asked()) {
            Mirror fresh;
            fresh.rebuild(c);
            const auto& mine = mirror_.of(c);
            REQUIRE(mine.nodes_ == fresh.nodes_);
            REQUIRE(mine.tasks_ == fresh.tasks_);
            REQUIRE(mine.budgets_ == fresh.budgets_);
            REQUIRE(mine.now_ == fresh.now_);
        }
        if (asked()) {
            Names fresh;
            fresh.rebuild(c);
            REQUIRE(names_.of(c).names_ == fresh.names_);
        }
        const auto measure = [&](auto& follower, const auto& metric) {
            if (asked()) REQUIRE(follower.of(c).result() == evaluate(metric, c));
        };
        measure(fgd_, Fgd(workload_, inv));
        measure(occupancy_, OccupancyMetric{});
        measure(ratio_, AllocationRatioMetric{});
        measure(rate_, FragmentRateMetric({.gpus = 2}));
        measure(slots_, SwitchSlotMetric(inv));
        measure(largest_, LargestJobMetric(inv, {.gpus_per_pod = 2, .cores_per_gpu = 1}));
        measure(by_model_, ReportMetric(inv, asi_shapes, {.by = GroupBy::gpu_model}));
        measure(by_cluster_,
                ReportMetric(inv, asi_shapes, {.by = GroupBy::cluster, .include_cordoned = true}));
        if (asked()) {
            const auto& mine = entropies_.of(c);
            const auto all = job_entropies(c);
            for (std::size_t j = 0; j < all.size(); ++j)
                REQUIRE(mine.entropy_of(make_id<JobId>(j)) == all[j]);
        }
        if (asked()) check_free(c);
        // Decisions about some of the pending tasks.
        std::vector<TaskId> waiting;
        for (const auto task : c.tasks())
            if (!c.is_placed(task)) waiting.push_back(task);
        if (waiting.empty()) return;
        for (int i = 0; i < 2; ++i) {
            const auto task = rng_.pick(std::span(waiting));
            INFO("task " << c.name(task));
            if (asked()) REQUIRE(best_(c, task, rng_) == place(c, task, allocation::BestFit{}));
            if (asked()) REQUIRE(careful_(c, task, rng_) == place(c, task, careful()));
            if (asked()) decide(imp_, c, task, {.policy = preemption::Policy::imp});
            if (asked()) decide(exhaustive_, c, task, {.policy = preemption::Policy::exhaustive});
        }
        decisions_ += 1;
    }

    std::size_t decisions_ = 0, evictions_ = 0;
    [[nodiscard]] int rebuilt() const { return mirror_.last().rebuilt_; }

  private:
    bool asked() { return rng_.chance(eagerness_); }

    template <class Ranker>
    std::optional<allocation::Destination> place(const Cluster& c, TaskId task, const Ranker& ranker) {
        return allocation::place(c, task, ranker, allocation::TightestGpu{}, rng_);
    }
    void decide(preemption::PreemptionIndex& index_, const Cluster& c, TaskId task,
                const preemption::Options& options) {
        const auto expected = preemption::preempt(c, task, options);
        const auto* const found = index_.decide(c, task);
        REQUIRE((found != nullptr) == expected.decision.has_value());
        if (found == nullptr) return;
        REQUIRE(*found == *expected.decision);
        evictions_ += found->victims.size();
    }
    void check_free(const Cluster& c) {
        auto& mine = free_.of(c);
        std::vector<NodeId> expected;
        for (const auto node : c.nodes())
            if (c.inventory().nodes.receives(node)) expected.push_back(node);
        REQUIRE(std::vector(mine.receivers().begin(), mine.receivers().end()) == expected);
        for (const auto task : c.tasks()) {
            std::vector<NodeId> eligible;
            for (const auto node : expected)
                if (c.inventory().eligible(c.inventory().tasks.requirement[index(task)],
                                           c.inventory().nodes.node_class[index(node)]))
                    eligible.push_back(node);
            const auto some = mine.receivers_for(c, task);
            REQUIRE(std::vector(some.begin(), some.end()) == eligible);
        }
        const int idle = static_cast<int>(rng_.between(0, 4));
        const auto cpu = rng_.between(0, 8) * 1000;
        std::vector<NodeId> found, wanted;
        int last = idle;
        mine.visit_whole(idle, cpu, [&](NodeId node) {
            const int has = gpu_count(c.idle_gpus(node, Lent::yes));
            REQUIRE(has >= last);
            last = has;
            if (c.cpu_free_milli(node, Lent::yes) >= cpu) found.push_back(node);
            return false;
        });
        for (const auto node : expected)
            if (gpu_count(c.idle_gpus(node, Lent::yes)) >= idle && c.cpu_free_milli(node, Lent::yes) >= cpu)
                wanted.push_back(node);
        std::sort(found.begin(), found.end());
        REQUIRE(found == wanted);
        const int share = static_cast<int>(rng_.between(1, 900));
        found.clear();
        wanted.clear();
        mine.visit_partial(share, [&](NodeId node) {
            found.push_back(node);
            return false;
        });
        for (const auto node : expected) {
            int most = 0;
            for (int g = 0; g < c.gpu_count(node); ++g)
                if (const int left = c.gpu_free_milli(node, g, Lent::yes); left < whole_gpu_milli)
                    most = std::max(most, left);
            if (most >= share) wanted.push_back(node);
        }
        std::sort(found.begin(), found.end());
        REQUIRE(found == wanted);
    }

    Rng& rng_;
    double eagerness_;
    fragmentation::Workload workload_ = workload();
    const Inventory& nothing_ = nothing();
    static const Inventory& nothing() {
        static const Cluster empty;
        return empty.inventory();
    }
    Followed<Mirror> mirror_;
    Followed<Names> names_;
    Kept<fragmentation::Fgd> fgd_ = kept(fragmentation::Fgd(workload_, nothing_));
    Kept<fragmentation::OccupancyMetric> occupancy_ = kept(fragmentation::OccupancyMetric{});
    Kept<fragmentation::AllocationRatioMetric> ratio_ = kept(fragmentation::AllocationRatioMetric{});
    Kept<fragmentation::FragmentRateMetric> rate_ = kept(fragmentation::FragmentRateMetric({.gpus = 2}));
    Kept<fragmentation::SwitchSlotMetric> slots_ = kept(fragmentation::SwitchSlotMetric(nothing_));
    Kept<fragmentation::LargestJobMetric> largest_ =
        kept(fragmentation::LargestJobMetric(nothing_, {.gpus_per_pod = 2, .cores_per_gpu = 1}));
    Kept<fragmentation::ReportMetric> by_model_ = kept(fragmentation::ReportMetric(
        nothing_, fragmentation::asi_shapes, {.by = fragmentation::GroupBy::gpu_model}));
    Kept<fragmentation::ReportMetric> by_cluster_ =
        kept(fragmentation::ReportMetric(nothing_, fragmentation::asi_shapes,
                                         {.by = fragmentation::GroupBy::cluster, .include_cordoned = true}));
    Followed<fragmentation::JobEntropies> entropies_;
    Followed<consolidation::FreeIndex> free_;
    allocation::RankedPlacement<allocation::BestFit, allocation::TightestGpu> best_;
    allocation::RankedPlacement<Careful, allocation::TightestGpu> careful_{careful()};
    preemption::PreemptionIndex imp_{{.policy = preemption::Policy::imp}};
    preemption::PreemptionIndex exhaustive_{{.policy = preemption::Policy::exhaustive}, 3};
};

// A cluster to which things happen.
class World {
  public:
    World(Rng& rng, RandomClusterOptions options, std::size_t window)
        : rng_(rng), options_(options), window_(window) {
        live_ = Cluster::build(random_cluster(rng_, options));
        live_.keep_events(window_);
        nodes_ = 14;
        tasks_ = 40;
    }
    World(Rng& rng, const ClusterSpec& start, std::size_t window) : rng_(rng), window_(window) {
        live_ = Cluster::build(start);
        live_.keep_events(window_);
        // Names of which half are free.
        nodes_ = 2 * static_cast<std::int64_t>(live_.node_count());
        tasks_ = 2 * static_cast<std::int64_t>(live_.task_count());
    }

    // One change, or one that is refused; or a change that can still be undone.
    void step() {
        if (live_.checkpoint() > 0) settle();
        version_ = live_.events()->version();
        try {
            change();
        } catch (const InvalidInput&) {
            ++refused_;
            REQUIRE(live_.events()->version() == version_);  // what did not happen is no event
        }
        ++steps_;
    }
    [[nodiscard]] std::size_t reservations() const { return held_.size(); }
    void settle() { rng_.chance(0.5) ? live_.commit() : live_.rollback(0); }

    Cluster live_{};
    std::size_t steps_ = 0, refused_ = 0;
    std::array<std::size_t, 15> kinds_{};

  private:
    template <class Ids>
    auto any(const Ids& ids) -> std::optional<std::decay_t<decltype(*ids.begin())>> {
        if (ids.size() == 0) return std::nullopt;
        auto at = rng_.below(ids.size());
        for (const auto id : ids)
            if (at-- == 0) return id;
        return std::nullopt;
    }
    NodeSpec new_node() {
        auto options = options_;
        options.max_tasks = 1;
        return rng_.pick(std::span<const NodeSpec>(random_cluster(rng_, options).nodes));
    }
    TaskSpec new_task() {
        auto options = options_;
        options.pending = 1;
        options.max_nodes = options.min_nodes;
        auto task = rng_.pick(std::span<const TaskSpec>(random_cluster(rng_, options).tasks));
        task.locked = task.standby = false;
        // One that its job lists; seldom one that it may not list.
        const auto job = live_.inventory().job_names.find(task.job);
        const auto roles = job ? live_.job_spec(make_id<JobId>(*job)).subgroups : std::vector<SubgroupSpec>();
        if (!roles.empty())
            task.subgroup = rng_.pick(std::span(roles)).name;
        else if (rng_.chance(0.95))
            task.subgroup.clear();
        task.preemptible = rng_.chance(0.6);
        task.priority += rng_.between(0, 3) * 50;
        return task;
    }
    std::optional<GpuMask> gpus_for(TaskId task, NodeId node) {
        if (find_resource_obstacle(live_, task, node) != Obstacle::none) return std::nullopt;
        auto gpus = gpu_list(candidate_gpus(live_, task, node));
        rng_.shuffle(std::span(gpus));
        const auto count = live_.inventory().tasks.gpu_count[index(task)];
        if (gpus.size() < count) return std::nullopt;
        GpuMask mask = 0;
        for (std::size_t i = 0; i < count; ++i) mask |= gpu_bit(gpus[i]);
        return mask | free_devices_for(live_, task, node);
    }

    void change() {
        const auto kind = rng_.below(kinds_.size());
        const auto node = any(live_.nodes());
        const auto task = any(live_.tasks());
        switch (kind) {
        case 0: {
            auto spec = new_node();
            spec.name = "n" + std::to_string(rng_.between(0, nodes_));
            (void)live_.add_node(spec);
            break;
        }
        case 1: {
            if (!node) return;
            auto spec = rng_.chance(0.2) ? new_node() : live_.node_spec(*node);
            spec.name = live_.name(*node);
            switch (rng_.below(4)) {
            case 0:
                spec.failed_gpus.clear();
                for (int g = 0; g < spec.gpu_count; ++g)
                    if (rng_.chance(0.3)) spec.failed_gpus.push_back(g);
                break;
            case 1:
                spec.schedulable = !spec.schedulable;
                break;
            case 2:
                spec.labels["zone"] = "z" + std::to_string(rng_.below(3));
                break;
            default:
                spec.network = new_node().network;
            }
            live_.update_node(live_.handle(*node), spec);
            break;
        }
        case 2: {
            if (!node || rng_.chance(0.5)) return;
            if (rng_.chance(0.7)) {
                while (!live_.tasks_on(*node).empty()) live_.remove(*live_.tasks_on(*node).begin());
                live_.commit();
                version_ = live_.events()->version();
            }
            live_.remove_node(live_.handle(*node));
            break;
        }
        case 3:
        case 4: {
            auto spec = new_task();
            spec.name = "t" + std::to_string(rng_.between(0, tasks_));
            (void)live_.add_task(spec);
            break;
        }
        case 5: {
            if (!task) return;
            auto spec = live_.task_spec(*task);
            if (rng_.chance(0.5)) {
                auto other = new_task();
                other.name = spec.name;
                other.node = spec.node;
                other.gpus = spec.gpus;
                if (spec.node) {
                    other.gpu_count = spec.gpu_count;
                    other.gpu_share_milli = spec.gpu_share_milli;
                    other.device_count = spec.device_count;
                    other.device_classes = spec.device_classes;
                }
                spec = other;
            } else {
                spec.eviction_count = rng_.between(0, 4);
                spec.start_time = rng_.between(0, 1000);
                spec.priority = rng_.between(0, 5) * 50;
            }
            live_.update_task(live_.handle(*task), spec);
            break;
        }
        case 6:
            if (task) live_.remove_task(live_.handle(*task));
            break;
        case 7:
        case 8: {
            if (!task || !node) return;
            if (const auto gpus = gpus_for(*task, *node))
                live_.bind(live_.handle(*task), live_.handle(*node), *gpus);
            break;
        }
        case 9:
            if (task) live_.unbind(live_.handle(*task));
            break;
        case 10: {
            JobSpec job{"j" + std::to_string(rng_.between(0, 9)), rng_.between(0, 3), std::nullopt};
            if (rng_.chance(0.6)) add_subgroups(rng_, job);
            const auto found = live_.inventory().job_names.find(job.name);
            if (!found)
                (void)live_.add_job(job);
            else if (rng_.chance(0.5))
                live_.update_job(live_.handle(make_id<JobId>(*found)), job);
            else
                live_.remove_job(live_.handle(make_id<JobId>(*found)));
            break;
        }
        case 11:
            live_.set_now(live_.inventory().now + rng_.between(0, 100));
            break;
        case 12: {
            BudgetSpec budget{.name = "b" + std::to_string(rng_.between(0, 3)),
                              .allowed_down = rng_.between(0, 2)};
            if (task) budget.tasks = {live_.name(*task)};
            if (rng_.chance(0.3)) budget.groups = {"g" + std::to_string(rng_.between(0, 3))};
            const auto known = live_.inventory().budget_names.find(budget.name).has_value();
            if (!known)
                live_.add_budget(budget);
            else if (rng_.chance(0.5))
                live_.update_budget(budget);
            else
                live_.remove_budget(budget.name);
            break;
        }
        default: {  // what-if, left open for the moment
            for (auto left = rng_.between(1, 4); left > 0; --left) what_if();
            if (rng_.chance(0.3) && live_.checkpoint() > 0) live_.undo();
            if (rng_.chance(0.5)) settle();
        }
        }
        ++kinds_[kind];
    }

    void what_if() {
        const auto task = any(live_.tasks());
        const auto node = any(live_.nodes());
        if (!task || !node) return;
        if (!held_.empty() && rng_.chance(0.3)) {
            const auto [who, where, gpus] = held_.back();
            if (live_.checkpoint() > 0) live_.commit();  // so that `held_` is what is committed
            held_.pop_back();
            if (!live_.has(who)) return;  // cannot be: room is held for it
            live_.unreserve(who.id, where, gpus);
            live_.commit();
            return;
        }
        const auto gpus = gpus_for(*task, *node);
        if (!gpus || rng_.chance(0.2)) return live_.remove(*task);
        if (rng_.chance(0.2)) {
            live_.reserve(*task, *node, *gpus);
            live_.commit();
            held_.emplace_back(live_.handle(*task), *node, *gpus);
            return;
        }
        live_.assign(*task, *node, *gpus);
    }

    Rng& rng_;
    RandomClusterOptions options_{};
    std::size_t window_;
    std::uint64_t version_ = 0;
    std::int64_t nodes_ = 0, tasks_ = 0;
    std::vector<std::tuple<TaskHandle, NodeId, GpuMask>> held_{};
};

// More events than the window holds, and no reader.
std::size_t skip(World& world, Rng& rng) {
    const auto steps = static_cast<std::size_t>(rng.between(2'000, 4'000));
    for (std::size_t i = 0; i < steps; ++i) world.step();
    return steps;
}

}  // namespace

TEST_CASE("After every change each follower equals one built from scratch") {
    std::size_t steps = 0, refused = 0, decisions = 0, evictions = 0, rebuilt = 0, copies = 0, specs = 0;
    std::array<std::size_t, 15> kinds{};
    const auto wanted = instances<std::size_t>(40'000);
    for (std::uint64_t seed = 1; steps < wanted; ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        const auto eagerness = std::array{1.0, 0.3, 0.05}[seed % 3];
        World world(rng,
                    {.min_nodes = 2,
                     .max_nodes = 8,
                     .pending = 0.3,
                     .grouped = 0.1,
                     .max_request = 8,
                     .extras = seed % 2 == 0 ? 0.2 : 0,
                     .selected = seed % 3 == 1 ? 0.15 : 0},
                    seed % 4 == 0 ? 8 : 256);
        Followers followers(rng, eagerness);
        for (int i = 0; i < 300; ++i) {
            world.step();
            INFO("step " << i);
            followers.check(world.live_);
            if (rng.chance(0.02)) {  // a copy is another cluster, and so is what is assigned to one
                ++copies;
                const auto copy = world.live_;
                followers.check(copy);
                if (rng.chance(0.3)) {
                    world.live_ = copy;
                    REQUIRE(world.live_.events() == nullptr);
                    followers.check(world.live_);
                    world.live_.keep_events(64);
                }
            }
            if (rng.chance(0.05) && world.live_.checkpoint() == 0) {
                ++specs;
                auto spec = world.live_.to_spec();
                bool legal = true;  // a pending task is neither locked nor lends
                for (const auto& task : spec.tasks)
                    legal = legal && (task.node || (!task.locked && !task.standby));
                if (legal && world.reservations() == 0) require_equal(world.live_, Cluster::build(spec));
            }
        }
        steps += world.steps_;
        refused += world.refused_;
        decisions += followers.decisions_;
        evictions += followers.evictions_;
        rebuilt += static_cast<std::size_t>(followers.rebuilt());
        for (std::size_t k = 0; k < kinds.size(); ++k) kinds[k] += world.kinds_[k];
    }
    CAPTURE(steps, refused, decisions, evictions, rebuilt, copies, specs);
    for (const auto kind : kinds) CHECK(kind > steps / 100);
    CHECK(refused < steps / 2);
    CHECK(decisions > steps / 4);
    CHECK(evictions > steps / 100);
    CHECK(rebuilt > steps / 1000);
    CHECK(rebuilt < steps / 5);
    CHECK(copies > 0);
    CHECK(specs > 0);
}

TEST_CASE("On a large cluster followers that lag equal those built from scratch") {
    const auto steps = std::max<std::size_t>(instances<std::size_t>(4'000), 2'000);
    Rng rng(7);
    RandomClusterOptions options;
    options.min_nodes = options.max_nodes = 600;
    options.min_tasks = options.max_tasks = 2'000;
    options.pending = 0.1;
    options.grouped = 0.02;
    World world(rng, random_cluster(rng, options), 64);
    Followers followers(rng, 1);
    followers.check(world.live_);
    for (std::size_t i = 1; i <= steps; ++i) {
        world.step();
        // Seldom enough that they fall out of the window sometimes.
        if (i % 500 != 0 && !rng.chance(0.005)) continue;
        INFO("step " << i);
        followers.check(world.live_);
        if (i % 1'500 == 0) i += skip(world, rng);
    }
    CHECK(followers.rebuilt() > 2);  // and the one it is compared with
    CHECK(world.refused_ < steps / 2);
}
