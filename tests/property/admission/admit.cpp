// SPDX-License-Identifier: Apache-2.0
// admit on random snapshots with every kind of constraint: the checker accepts every plan, costs and bounds are what they are said
// to be, and a naive search that tries every way finds hardly ever a cheaper one, never one below a bound.
#include "support/admissions.hpp"
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

using namespace gpusched;

namespace {

/// Every way to let pods in, by the naive rules: some tasks are evicted, then others move, one after the other, then pods and evicted
/// tasks are placed. Looks for one that costs less than a limit.
class NaiveSearch {
  public:
    NaiveSearch(const ClusterSpec& spec, std::vector<std::size_t> pods, const admission::Options& options)
        : spec_(spec), pods_(std::move(pods)), options_(options), state_(reference::initial(spec)) {
        for (const auto& copy : state_.copies) {
            home_[copy.task] = copy.node;
            if (!spec.tasks[copy.task].job.empty()) ++running_[spec.tasks[copy.task].job];
        }
        for (std::size_t n = 0; n < spec.nodes.size(); ++n)
            receives_.push_back(spec.nodes[n].schedulable && reference::occupants(state_, n) > 0);
    }

    /// The least cost below `limit`; nothing = there is none. `exhausted` says that it was given up.
    std::optional<std::int64_t> cheapest_below(std::int64_t limit) {
        best_ = limit;
        evict(0, 0);
        return best_ < limit ? std::optional(best_) : std::nullopt;
    }
    bool exhausted = false;

  private:
    const TaskSpec& task(std::size_t t) const { return spec_.tasks[t]; }
    std::int64_t size(std::size_t t) const {
        const auto gpus = task(t).gpu_count * task(t).gpu_share_milli;
        return gpus > 0 ? gpus : std::max<std::int64_t>(100, task(t).cpu_milli / 16);
    }
    std::int64_t move_price(std::size_t t) const {
        return size(t) * options_.prices.move_price_s * task(t).move_cost +
               1000 * options_.prices.task_price_s;
    }
    std::int64_t evict_price(std::size_t t, bool again) const {
        const auto since = task(t).last_checkpoint_time.value_or(task(t).start_time);
        const auto work = options_.prices.work ? std::max<std::int64_t>(0, spec_.now - since) : 0;
        return size(t) * (work + (again ? options_.prices.restart_s : options_.prices.loss_s)) +
               1000 * options_.prices.task_price_s;
    }
    bool movable(std::size_t t) const {
        const auto& x = task(t);
        if (!options_.moves || x.locked || x.daemon || x.standby || x.how == Mobility::none) return false;
        if (x.cpu_local) return false;
        for (const auto& job : spec_.jobs)
            if (job.name == x.job && job.max_disrupted == 0) return false;
        return true;
    }
    bool evictable(std::size_t t) const {
        const auto& x = task(t);
        if (!options_.evictions || !x.preemptible.value_or(x.priority_class == PriorityClass::lp) ||
            x.locked || x.standby || x.daemon)
            return false;
        for (const auto pod : pods_)
            if (x.priority >= task(pod).priority) return false;
        return true;
    }
    /// No member of a gang leaves, the surplus does, or all do.
    bool gangs_hold() const {
        std::map<std::string, std::vector<std::size_t>> gone;
        for (const auto t : evicted_)
            if (!task(t).job.empty()) gone[task(t).job].push_back(t);
        for (const auto& [job, leaving] : gone) {
            if (testing_support::stays_a_gang(spec_, job, leaving)) continue;
            if (std::ssize(leaving) < running_.at(job)) return false;
            for (const auto pod : pods_)
                if (task(pod).job == job) return false;
        }
        return true;
    }
    /// With the evicted tasks down, and the restarting one.
    bool budgets_hold(std::optional<std::size_t> restarts = {}) const {
        for (const auto& budget : spec_.budgets) {
            const auto has = [&](std::size_t t) {
                if (std::find(budget.tasks.begin(), budget.tasks.end(), task(t).name) != budget.tasks.end())
                    return true;
                return std::any_of(budget.groups.begin(), budget.groups.end(), [&](const std::string& group) {
                    return reference::lists(task(t), group) || reference::is_member(task(t), group);
                });
            };
            auto down = std::count_if(evicted_.begin(), evicted_.end(), has);
            if (restarts && !has(*restarts)) continue;
            if (restarts) ++down;
            if (down > (budget.broken ? 0 : budget.allowed_down)) return false;
        }
        return true;
    }

    void evict(std::size_t next, std::int64_t cost) {
        if (exhausted || cost >= best_) return;
        if (next == spec_.tasks.size()) {
            if (!gangs_hold() || !budgets_hold()) return;
            moved_.clear();
            move(cost);
            return;
        }
        evict(next + 1, cost);
        if (home_.count(next) == 0 || !evictable(next)) return;
        const auto at = std::find_if(state_.copies.begin(), state_.copies.end(),
                                     [&](const reference::Copy& c) { return c.task == next; });
        const auto copy = *at;
        state_.copies.erase(at);
        evicted_.push_back(next);
        evict(next + 1, cost + evict_price(next, options_.replace &&
                                                     evict_price(next, true) < evict_price(next, false)));
        evicted_.pop_back();
        state_.copies.push_back(copy);
    }

    void move(std::int64_t cost) {
        if (exhausted || cost >= best_) return;
        if (++steps_ > 40'000) {
            exhausted = true;
            return;
        }
        place(0, cost);
        for (std::size_t i = 0; i < state_.copies.size(); ++i) {
            const auto copy = state_.copies[i];
            if (home_.count(copy.task) == 0 || moved_.count(copy.task) != 0 || !movable(copy.task)) continue;
            if (cost + move_price(copy.task) >= best_) continue;
            if (task(copy.task).how != Mobility::copy && !budgets_hold(copy.task)) continue;
            for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
                if (n == copy.node || !receives_[n] || reference::obstacle(state_, copy.task, n) != "none")
                    continue;
                for (const auto& gpus : sets(copy.task, n)) {
                    moved_.insert(copy.task);
                    state_.copies[i] = {copy.task, n, gpus};
                    move(cost + move_price(copy.task));
                    state_.copies[i] = copy;
                    moved_.erase(copy.task);
                }
            }
        }
    }
    std::vector<std::vector<int>> sets(std::size_t t, std::size_t n) const {
        auto found = reference::gpu_sets(state_, t, n);
        if (found.empty()) found.push_back({});
        return found;
    }

    void place(std::size_t next, std::int64_t cost) {
        if (exhausted || cost >= best_) return;
        if (++steps_ > 40'000) {
            exhausted = true;
            return;
        }
        if (next == pods_.size()) return restart(0, cost, {});
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
            if (reference::obstacle(state_, pods_[next], n) != "none") continue;
            for (const auto& gpus : sets(pods_[next], n)) {
                state_.copies.push_back({pods_[next], n, gpus});
                place(next + 1, cost);
                state_.copies.pop_back();
            }
        }
    }
    // `cost` has the cheaper price of every evicted task.
    void restart(std::size_t next, std::int64_t cost, std::map<std::string, int> gangs) {
        if (exhausted || cost >= best_) return;
        if (next == evicted_.size()) {
            best_ = cost;
            return;
        }
        const auto t = evicted_[next];
        const auto cheaper =
            options_.replace ? std::min(evict_price(t, true), evict_price(t, false)) : evict_price(t, false);
        // Gangs that leave whole come back whole or not at all.
        const auto& job = task(t).job;
        int* choice = nullptr;
        if (!job.empty()) {
            const auto gone = std::count_if(evicted_.begin(), evicted_.end(),
                                            [&](std::size_t e) { return task(e).job == job; });
            if (gone == running_.at(job)) choice = &gangs[job];
        }
        if (choice == nullptr || *choice != 2) {
            if (options_.replace && !task(t).cpu_local)
                for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
                    if (reference::obstacle(state_, t, n) != "none") continue;
                    for (const auto& gpus : sets(t, n)) {
                        auto then = gangs;
                        if (choice != nullptr) then[job] = 1;
                        state_.copies.push_back({t, n, gpus});
                        restart(next + 1, cost - cheaper + evict_price(t, true), then);
                        state_.copies.pop_back();
                    }
                }
        }
        if (choice == nullptr || *choice != 1) {
            if (choice != nullptr) *choice = 2;
            restart(next + 1, cost - cheaper + evict_price(t, false), gangs);
        }
    }

    const ClusterSpec& spec_;
    std::vector<std::size_t> pods_;
    const admission::Options& options_;
    reference::State state_;
    std::map<std::size_t, std::size_t> home_;
    std::map<std::string, std::int64_t> running_;
    std::vector<bool> receives_;
    std::vector<std::size_t> evicted_;
    std::set<std::size_t> moved_;
    std::int64_t best_ = 0, steps_ = 0;
};

struct Case {
    ClusterSpec spec;
    Cluster cluster;
    std::vector<TaskId> pods;
    admission::Options options;
};

Case random_case(std::uint64_t seed) {
    Rng rng(seed);
    auto how = testing_support::tiny_cluster;
    how.max_nodes = 4;
    how.max_tasks = 8;
    how.max_gpus = seed % 3 == 0 ? 4 : 8;
    how.max_request = 4;
    how.max_movable = 5;
    if (seed % 5 == 3) how.extras = 0.2;
    if (seed % 5 == 4) how.budgets = 0.3;
    if (seed % 7 == 6) how.selected = 0.2;
    auto base = testing_support::random_cluster(rng, how);
    for (auto& task : base.tasks) {
        if (rng.chance(0.4)) task.preemptible = true;
        task.move_cost = rng.between(0, 3);
        task.start_time = base.now - rng.between(0, 4000);
        task.last_checkpoint_time.reset();
        if (how.budgets == 0) task.how = Mobility::copy;
    }
    allocation::PodRequest pod{.count = rng.between(1, 2)};
    pod.pod.gpu_count = rng.between(1, 4);
    pod.pod.cpu_milli = rng.between(0, 8) * 500;
    pod.pod.memory_mib = rng.between(0, 4) * 512;
    pod.pod.priority = rng.between(0, 120);
    if (rng.chance(0.2)) pod.pod.priority_class = PriorityClass::lp;
    if (rng.chance(0.1)) pod.pod.anti_affinity.push_back({"spread0", node_level, 1});
    auto with = testing_support::as_listed(allocation::with_job(Cluster::build(base), {"gang", {pod}}));
    Case made{with.cluster.to_spec(), std::move(with.cluster), std::move(with.pods), {}};
    if (rng.chance(0.3)) {
        made.options.prices.move_price_s = made.options.prices.restart_s = made.options.prices.loss_s = 0;
        made.options.prices.task_price_s = 1;
        made.options.prices.work = false;
    }
    made.options.moves = !rng.chance(0.1);
    made.options.evictions = !rng.chance(0.2);
    made.options.replace = !rng.chance(0.2);
    made.options.prices.recall_price_s = 0;
    return made;
}

}  // namespace

TEST_CASE("plans of admission on 6,000 random snapshots") {
    int admitted = 0, moved = 0, evicted = 0, again = 0, both = 0, proven = 0, refused = 0, waves = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(6000); ++seed) {
        const auto c = random_case(seed);
        INFO("seed " << seed);
        const auto made = admission::admit(c.cluster, c.pods, c.options);
        testing_support::require_valid(c.spec, c.cluster, made.plan);
        REQUIRE(made.admitted == made.reason.empty());
        if (!made.admitted) {
            REQUIRE(made.plan == Plan{});
            REQUIRE(made.proven == !made.bound.has_value());
            ++refused;
            continue;
        }
        REQUIRE(made.bound);
        REQUIRE(*made.bound <= made.cost.total());
        REQUIRE(made.proven == (*made.bound == made.cost.total()));
        REQUIRE(made.pods.size() == c.pods.size());
        const auto after = apply(c.cluster, made.plan);
        for (std::size_t p = 0; p < c.pods.size(); ++p) {
            REQUIRE(made.pods[p].task == c.pods[p]);
            REQUIRE(after.node_of(c.pods[p]) == made.pods[p].node);
        }
        for (const auto task : made.lost) REQUIRE(after.node_of(task) == none<NodeId>);
        ++admitted;
        proven += made.proven;
        moved += !made.plan.moves.empty();
        evicted += !made.plan.evictions.empty();
        again += made.plan.evictions.size() > made.lost.size();
        both += !made.plan.moves.empty() && !made.plan.evictions.empty();
        waves += made.plan.waves > 1;
    }
    CAPTURE(admitted, moved, evicted, again, both, proven, refused, waves);
    CHECK(moved > testing_support::instances(200));
    CHECK(evicted > testing_support::instances(200));
    CHECK(again > testing_support::instances(15));
    CHECK(both > testing_support::instances(20));
    CHECK(waves > testing_support::instances(10));
    CHECK(refused > testing_support::instances(200));
    CHECK(proven > admitted * 3 / 4);
}

TEST_CASE("a naive search finds hardly ever a cheaper way, and never one below a bound") {
    int asked = 0, cheaper = 0, given_up = 0, proven = 0;
    std::string which;
    for (std::uint64_t seed = 10'000; seed < 10'000 + testing_support::instances<std::uint64_t>(3000);
         ++seed) {
        const auto c = random_case(seed);
        const auto made = admission::admit(c.cluster, c.pods, c.options);
        if (made.admitted && made.cost.total() == 0) continue;
        INFO("seed " << seed);
        std::vector<std::size_t> pods;
        for (const auto pod : c.pods) pods.push_back(index(pod));
        NaiveSearch naive(c.spec, pods, c.options);
        const auto limit = made.admitted ? made.cost.total() : INT64_MAX / 4;
        const auto found = naive.cheapest_below(limit);
        if (naive.exhausted) ++given_up;
        if (naive.exhausted && !found) continue;
        ++asked;
        proven += made.proven;
        if (!found) continue;
        ++cheaper;
        which += " " + std::to_string(seed);
        CAPTURE(*found, made.cost.total(), made.admitted);
        REQUIRE_FALSE(made.proven);
        REQUIRE(made.bound);
        REQUIRE(*found >= *made.bound);
    }
    CAPTURE(asked, cheaper, given_up, proven, which);
    CHECK(asked > testing_support::instances(600));
    CHECK(proven > asked / 2);
    CHECK(cheaper * 100 <= asked);
}
