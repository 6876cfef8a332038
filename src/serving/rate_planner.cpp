// SPDX-License-Identifier: Apache-2.0
// Search for the best plan of a rental instance: attempts rentals with different loads of replicas, simulates
// them, and keeps the best.
#include "serving/calibrator.hpp"
#include "serving/rental_instance.hpp"

#include <gpusched/core/rng.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// The latencies of plans of one instance: simulated with the arrivals of the plan, or measured.
class PlanLatencies {
  public:
    /// @param instance  must outlive this object
    explicit PlanLatencies(const RentalInstance& instance) : instance_(instance) {}

    /// Simulates a plan and sets its latencies. With targets it simulates several times and keeps the longest
    /// latencies, since one of many plans could meet the targets by chance.
    /// @return whether all targets are met every time; false if the time does not suffice
    bool simulate(ServingPlan& plan) const {
        if (!instance_.has_rates() || plan.rate <= 0) return true;
        for (std::uint64_t seed = 0; seed < (instance_.any_targets() ? simulations : 1); ++seed) {
            // Without targets the plan is valid already, and its one simulation ends soon.
            if (instance_.any_targets() && instance_.stopped()) return false;
            auto once = simulated_latencies(plan, seed);
            for (std::size_t i = 0; seed > 0 && i < once.size(); ++i)
                for (const auto& field : latency_percentiles) {
                    auto& longest = once[i].*field.planned;
                    longest = std::max(longest, plan.latencies[i].*field.planned);
                }
            plan.latencies = std::move(once);
            if (std::any_of(plan.latencies.begin(), plan.latencies.end(),
                            [](const PlannedLatency& latency) { return !latency.met; }))
                return false;
        }
        return true;
    }

    /// The requests of a simulation: more if a kind with targets is rare, since its percentiles need enough
    /// requests.
    [[nodiscard]] int simulated_requests() const {
        double least = 1;  // part of the rarest kind with targets in all requests
        for (std::size_t w = 0; w < instance_.kinds().size(); ++w)
            if (const double part = instance_.considered().problem.workloads[w].requests / instance_.total();
                part > 0 && !instance_.kinds()[w].targets.empty())
                least = std::min(least, part);
        const double enough = std::min(std::ceil(rare_requests / 0.8 / least), 1.0 * most_simulated);
        bool varied = false;
        for (std::size_t w = 0; w < instance_.kinds().size(); ++w)
            varied = varied || !instance_.workload(w).lengths.empty();
        return std::max(
            {instance_.options().simulated_requests, static_cast<int>(enough), varied ? varied_requests : 0});
    }

    /// The index of the deployment of replicas among those considered.
    [[nodiscard]] std::size_t index_of(const PlannedReplicas& replicas) const {
        const auto& considered = instance_.considered();
        std::size_t c = 0;
        while (considered.problem.configurations[c].model != replicas.model ||
               considered.deployments[c].name != replicas.deployment.name)
            ++c;
        return c;
    }

  private:
    /// The latencies of each kind in one simulation of a plan.
    [[nodiscard]] std::vector<PlannedLatency> simulated_latencies(const ServingPlan& plan,
                                                                  std::uint64_t seed) const {
        const auto& kinds = instance_.kinds();
        const auto& workloads = instance_.considered().problem.workloads;
        LatencyOptions o{.rate = plan.rate, .requests = simulated_requests(), .seed = seed, .warm_up = 0.2};
        o.estimate = instance_.options().estimate;
        std::vector<ReplicaTimes*> times;
        for (const auto& r : plan.replicas) times.push_back(&instance_.replica_times(index_of(r)));
        const auto found = detail::simulate(instance_.request(), plan.replicas, o, times);
        std::vector<PlannedLatency> latencies;
        for (const auto& kind : found.kinds) {
            std::size_t w = 0;
            while (workloads[w].model != kind.model || workloads[w].name != kind.workload) ++w;
            PlannedLatency latency{kind.model, kind.workload,
                                   workloads[w].requests / instance_.total() * plan.rate};
            for (const auto& field : latency_percentiles)
                if (const auto& all = field.time == TokenTime::first  ? kind.ttft
                                      : field.time == TokenTime::each ? kind.tpot
                                                                      : kind.latency;
                    !all.empty() && is_reported(field, w))
                    latency.*field.planned = percentile_of(all, field.percent);
            std::vector<const PlannedReplicas*> serving;
            for (const auto& r : plan.replicas)
                if (r.model == kind.model && r.share[kinds[w].workload] > 0) serving.push_back(&r);
            for (const auto* r : serving) {
                if (kind.latency.empty()) set_idle(latency, *r, w);
                const auto source = simulated_source(r->source[kinds[w].workload]);
                latency.ttft_source = latency.tpot_source =
                    r == serving.front() ? source : std::max(latency.ttft_source, source);
            }
            for (const auto measure : {TokenTime::first, TokenTime::each})
                set_measured(latency, serving, w, measure);
            for (const auto& target : kinds[w].targets) {
                const auto& value = latency.*target.planned;
                latency.met = latency.met && (!value || *value <= target.seconds * (1 + 1e-9));
            }
            latencies.push_back(std::move(latency));
        }
        return latencies;
    }

    /// Sets measured latencies if TTFT (else TPOT) has targets and was measured on all replicas of the kind,
    /// which serve only this kind. Percentiles with targets get the longest latency at the loads of the
    /// replicas; the others become unknown.
    void set_measured(PlannedLatency& latency, const std::vector<const PlannedReplicas*>& serving,
                      std::size_t w, TokenTime measure) const {
        const auto& kind = instance_.kinds()[w];
        if (serving.empty() ||
            std::none_of(kind.targets.begin(), kind.targets.end(),
                         [&](const LatencyTarget& target) { return target.time == measure; }))
            return;
        double longest = 0;
        for (const auto* r : serving) {
            if (std::count_if(r->share.begin(), r->share.end(), [](double share) { return share > 0; }) > 1)
                return;
            const double load = r->share[kind.workload] * latency.rate / r->count;
            const auto value =
                latency_at(instance_.measured_rows(instance_.considered(), index_of(*r), w), measure, load);
            if (!value) return;
            longest = std::max(longest, *value);
        }
        (measure == TokenTime::first ? latency.ttft_source : latency.tpot_source) = Source::measured;
        for (const auto& field : latency_percentiles)
            if (field.time == measure) latency.*field.planned = {};
        for (const auto& target : kind.targets) {
            if (target.time != measure) continue;
            // A solver can overfill replicas within its tolerance.
            const bool rounded = longest > target.seconds && longest <= target.seconds * (1 + 1e-5);
            latency.*target.planned = rounded ? target.seconds : longest;
        }
    }

    /// Whether a plan reports a percentile of a kind.
    [[nodiscard]] bool is_reported(const LatencyPercentile& field, std::size_t w) const {
        const auto& targets = instance_.kinds()[w].targets;
        return !field.on_request ||
               std::any_of(targets.begin(), targets.end(),
                           [&](const LatencyTarget& target) { return target.planned == field.planned; });
    }

    /// Sets the latencies of an idle replica, for a kind so rare that none of its requests was simulated.
    void set_idle(PlannedLatency& latency, const PlannedReplicas& replicas, std::size_t w) const {
        const auto t = instance_.times(instance_.considered(), index_of(replicas), w);
        for (const auto& field : latency_percentiles) {
            if ((field.time == TokenTime::each && !t.mix().has_steps()) || !is_reported(field, w)) continue;
            auto& value = latency.*field.planned;
            value = std::max(value.value_or(0), t.idle(field));
        }
    }

    static constexpr int varied_requests = 20'000;  ///< percentiles of different lengths vary more
    static constexpr double rare_requests = 250;    ///< simulated requests of the rarest kind with targets
    /// Most requests of a simulation, unless the options set more.
    static constexpr int most_simulated = 300'000;
    static constexpr std::uint64_t simulations = 3;  ///< simulations of a plan with targets
    const RentalInstance& instance_;
};

/// Local search for a cheaper plan that meets the targets.
///
/// The rental program adds up the capacities of kinds served alone by replicas with Poisson arrivals. Replicas
/// that take turns, or serve several kinds, can keep the targets at several times this load. So the search
/// simulates each change: fewer replicas of a row of the plan, and kinds of requests that move to another row
/// or to new replicas of another deployment.
class PlanImprover {
  public:
    PlanImprover(const RentalInstance& instance, const PlanLatencies& latencies)
        : instance_(instance), latencies_(latencies), problem_(instance.problem_of({})) {
        const auto& offers = problem_.offers;
        for (std::size_t c = 0; c < instance.considered().deployments.size(); ++c) {
            const auto configuration = instance.problem_of({c}).configurations.front();
            double price = 0;
            for (std::size_t n = 0; n < offers.size(); ++n)
                price += configuration.gpus[n] * lowest_price(offers[n]) / offers[n].gpus;
            configurations_.push_back(configuration);
            prices_.push_back(price);
        }
    }

    /// Improves a plan that meets the targets, but may exceed the budget or the available GPUs.
    /// @return the best plan within both that costs less than `below`; none if there is none
    std::optional<ServingPlan> run(const ServingPlan& plan, double below) {
        rows_.clear();
        for (const auto& r : plan.replicas) {
            Row row{latencies_.index_of(r), r.count, std::vector<double>(instance_.kinds().size(), 0.0)};
            for (std::size_t w = 0; w < row.share.size(); ++w)
                if (instance_.considered().problem.workloads[w].model == r.model)
                    row.share[w] = r.share[instance_.kinds()[w].workload];
            rows_.push_back(std::move(row));
        }
        cost_ = rented(rows_).second;
        const auto fits = [&] { return cost_.excess <= 0 && cost_.rent < below * (1 - 1e-9); };
        std::optional<ServingPlan> best;
        if (fits()) best = plan;
        while (step()) {
            if (!found_) continue;
            if (fits()) best = std::move(*found_);
            found_.reset();
        }
        return best;
    }

  private:
    /// Replicas of one deployment, and the share of each kind that they serve together.
    struct Row {
        std::size_t deployment;
        int count;
        std::vector<double> share;
    };
    using Rows = std::vector<Row>;
    /// The value of a plan; less is better, lexicographically.
    struct Cost {
        double excess = 0;  ///< pieces and $/h beyond the limits
        double rent = 0;    ///< $/h
        double used = 0;    ///< $/h of the GPUs that replicas use
        [[nodiscard]] bool less(const Cost& other) const {
            const auto below = [](double a, double b) { return a < b - 1e-9 * std::max(1.0, b); };
            if (below(excess, other.excess) || below(other.excess, excess))
                return below(excess, other.excess);
            if (below(rent, other.rent) || below(other.rent, rent)) return below(rent, other.rent);
            return below(used, other.used);
        }
    };

    /// The cheapest rental for these replicas.
    [[nodiscard]] std::pair<RentalSolution, Cost> rented(const Rows& rows) const {
        RentalSolution s;
        s.status = milp::Status::feasible;
        s.multiple = 1;
        Cost cost;
        for (const auto& row : rows) {
            s.replicas.push_back(row.count);
            s.share.push_back(row.share);
            cost.used += row.count * prices_[row.deployment];
        }
        for (std::size_t n = 0; n < problem_.offers.size(); ++n) {
            const auto& offer = problem_.offers[n];
            std::int64_t gpus = 0;
            for (const auto& row : rows)
                gpus += std::int64_t{row.count} * configurations_[row.deployment].gpus[n];
            auto pieces = (gpus + offer.gpus - 1) / offer.gpus;
            if (pieces > 0) pieces = std::max<std::int64_t>(pieces, offer.minimum);
            const bool spot_first = offer.spot_price < offer.price;
            const auto first =
                std::min<std::int64_t>(pieces, spot_first ? offer.spot_available : offer.available);
            const auto second =
                std::min<std::int64_t>(pieces - first, spot_first ? offer.available : offer.spot_available);
            s.usual.push_back(static_cast<int>(spot_first ? second : first));
            s.spot.push_back(static_cast<int>(spot_first ? first : second));
            const auto missing = pieces - first - second;
            cost.excess += static_cast<double>(missing);
            s.cost += offer.price * s.usual.back() + offer.spot_price * s.spot.back();
            cost.rent += offer.price * static_cast<double>(missing);
        }
        cost.rent += s.cost;
        cost.excess += std::max(0.0, cost.rent - problem_.budget * (1 + 1e-9));
        return {std::move(s), cost};
    }

    /// Tries all changes until one is a better plan. @return whether the search can go on
    bool step() {
        std::vector<std::size_t> order(rows_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto price = [&](std::size_t r) { return rows_[r].count * prices_[rows_[r].deployment]; };
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return price(a) > price(b); });
        repeat_ = false;
        for (const auto r : order) {
            if (must_stop()) return false;
            auto fewer = rows_;
            fewer[r].count = 0;
            if (accepted(std::move(fewer))) return true;
        }
        for (const auto r : order)
            for (const auto& moved : parts(rows_[r])) {
                if (must_stop()) return false;
                if (moved_elsewhere(r, moved)) return true;
            }
        return repeat_;
    }

    /// The kinds of a row, together and, if there are several, each alone.
    [[nodiscard]] static std::vector<std::vector<double>> parts(const Row& row) {
        std::vector<std::vector<double>> all{row.share};
        for (std::size_t w = 0; w < row.share.size(); ++w) {
            if (row.share[w] <= 0 || row.share[w] == std::accumulate(row.share.begin(), row.share.end(), 0.0))
                continue;
            all.emplace_back(row.share.size(), 0.0);
            all.back()[w] = row.share[w];
        }
        return all;
    }

    /// Tries to move a part of row r to every other row, and to new replicas of every deployment.
    bool moved_elsewhere(std::size_t r, const std::vector<double>& part) {
        const auto moved_to = [&](std::size_t s, Rows rows) {
            for (std::size_t w = 0; w < part.size(); ++w) {
                rows[r].share[w] -= part[w];
                rows[s].share[w] += part[w];
            }
            rows[r].count = rows[s].count = 0;
            if (std::none_of(rows[r].share.begin(), rows[r].share.end(), [](double x) { return x > 0; }))
                rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(r));
            return accepted(std::move(rows));
        };
        for (std::size_t s = 0; s < rows_.size(); ++s)
            if (s != r && moved_to(s, rows_)) return true;
        for (std::size_t c = 0; c < configurations_.size(); ++c) {
            auto rows = rows_;
            rows.push_back({c, 0, std::vector<double>(part.size(), 0.0)});
            if (moved_to(rows_.size(), std::move(rows))) return true;
        }
        return false;
    }

    /// Takes the rows as the plan if they are better and meet the targets. Rows with a count of 0 get the
    /// fewest replicas that do.
    bool accepted(Rows rows) {
        if (must_stop()) return false;
        std::vector<std::size_t> open;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            if (rows[r].count > 0) continue;
            open.push_back(r);
            rows[r].count = least_count(rows[r]);
            if (rows[r].count == 0) return false;  // cannot serve the kinds
        }
        // The fewest replicas by load first, since they cost no simulation.
        if (!rented(rows).second.less(cost_)) return false;
        for (const auto r : open) {
            rows[r].count = fewest(rows[r], rows[r].count);
            if (rows[r].count == 0 || !rented(rows).second.less(cost_)) return false;
        }
        if (must_stop()) return false;
        simulated_ += 3.0 * latencies_.simulated_requests();
        auto [solution, cost] = rented(rows);
        std::vector<std::size_t> deployments;
        for (const auto& row : rows) deployments.push_back(row.deployment);
        const auto problem = instance_.problem_of(deployments);
        auto plan = instance_.planned(problem, solution, deployments);
        if (!latencies_.simulate(plan)) {
            if (instance_.stopped()) return false;
            // One more replica in the rows that were simulated alone.
            for (const auto r : open) fewest_[{rows[r].deployment, rows[r].share}] = rows[r].count + 1;
            repeat_ = true;
            return false;
        }
        for (std::size_t r = 0; r < rows.size(); ++r)
            for (std::size_t w = 0; w < rows[r].share.size(); ++w)
                if (const double capacity = instance_.capacity(rows[r].deployment, w); rows[r].share[w] > 0)
                    plan.capacity = std::max(plan.capacity, problem_.workloads[w].requests *
                                                                rows[r].share[w] / rows[r].count / capacity);
        plan.separate = std::all_of(rows.begin(), rows.end(), [](const Row& row) {
            return std::count_if(row.share.begin(), row.share.end(), [](double x) { return x > 0; }) <= 1;
        });
        rows_ = std::move(rows);
        cost_ = cost;
        found_ = std::move(plan);
        return true;
    }

    /// The fewest replicas of a row by its utilization limit; 0 if they cannot serve its kinds within the
    /// targets, or are more than any plan rents.
    [[nodiscard]] int least_count(const Row& row) const {
        double load = 0;
        for (std::size_t w = 0; w < row.share.size(); ++w) {
            if (row.share[w] <= 0) continue;
            if (instance_.capacity(row.deployment, w) <= 0) return 0;
            load +=
                row.share[w] * problem_.workloads[w].requests / configurations_[row.deployment].throughput[w];
        }
        const double count = std::max(1.0, std::ceil(load * (1 - 1e-9)));
        return count <= 1e6 ? static_cast<int>(count) : 0;
    }

    /// The fewest replicas of a row that meet the targets of its kinds, from `least` on; 0 if that would cost
    /// more than the present plan, or if the search must stop.
    int fewest(const Row& row, int least) {
        const std::pair key(row.deployment, row.share);
        if (const auto known = fewest_.find(key); known != fewest_.end()) return known->second;
        const double most = prices_[row.deployment] > 0 ? cost_.used / prices_[row.deployment] : 1e6;
        int low = least - 1, high = least;
        while (!meets(row, high)) {
            if (must_stop()) return 0;
            low = high;
            high = low + std::max(1, low / 2);
            if (high > most) return fewest_[key] = 0;
        }
        while (high - low > 1) {
            const int middle = low + (high - low) / 2;
            (meets(row, middle) ? high : low) = middle;
            if (must_stop()) return 0;
        }
        return fewest_[key] = high;
    }

    /// Whether `count` replicas of a row meet the targets of its kinds in several simulations of this row
    /// alone. Measured latencies count only in the simulation of the plan. False if the search must stop.
    bool meets(const Row& row, int count) {
        std::vector<std::size_t> kinds;
        std::vector<Arrivals::Kind> arriving;
        double all = 0;
        for (std::size_t w = 0; w < row.share.size(); ++w)
            if (const double rate = row.share[w] * problem_.workloads[w].requests; rate > 0) {
                kinds.push_back(w);
                arriving.push_back({&instance_.workload(w), rate, std::min(1.0, row.share[w])});
                all += rate;
            }
        if (kinds.empty()) return true;
        auto& times = instance_.replica_times(row.deployment);
        const auto requests =
            static_cast<int>(std::max(100.0, latencies_.simulated_requests() * all / instance_.total()));
        for (std::uint64_t seed = 0; seed < simulations_alone; ++seed) {
            if (must_stop()) return false;
            simulated_ += requests;
            Rng rng(1000 + seed);
            Arrivals arrivals(arriving, all, rng);
            std::vector<std::vector<Job>> queues(static_cast<std::size_t>(count));
            double now = 0;
            for (int i = 0; i < requests; ++i) {
                const auto arrival = arrivals.next();
                now = arrival.time;
                queues[static_cast<std::size_t>(i % count)].push_back(
                    {now, times.draw(kinds[arrival.kind], rng, arrival.lengths)});
            }
            std::vector<LatencySamples> samples(problem_.workloads.size());
            for (const auto& jobs : queues) {
                if (must_stop()) return false;
                const auto found = BatchingReplica(times.all()).run(jobs);
                for (std::size_t j = 0; j < jobs.size(); ++j) {
                    if (jobs[j].arrival < 0.2 * now) continue;
                    const auto kind = jobs[j].kind;
                    samples[times.workload_of(kind)].add(found[j], times.all()[kind].steps);
                }
            }
            for (const auto w : kinds) {
                const auto unmeasured =
                    measured_targets(instance_.measured_rows(instance_.considered(), row.deployment, w),
                                     instance_.kinds()[w].targets)
                        .unmeasured;
                if (!samples[w].meet(unmeasured)) return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool must_stop() const { return simulated_ > most_simulated || instance_.stopped(); }

    static constexpr double most_simulated = 2e7;          ///< requests in all simulations
    static constexpr std::uint64_t simulations_alone = 4;  ///< simulations of a row
    const RentalInstance& instance_;
    const PlanLatencies& latencies_;
    RentalProblem problem_;                               ///< offers, workloads and budget
    std::vector<ServingConfiguration> configurations_{};  ///< [c], at their utilization limit
    std::vector<double> prices_{};                        ///< [c]: lower bound on the $/h of a replica
    std::map<std::pair<std::size_t, std::vector<double>>, int> fewest_{};
    Rows rows_{};
    Cost cost_{};
    std::optional<ServingPlan> found_{};
    bool repeat_ = false;
    double simulated_ = 0;  ///< requests so far
};

/// One search for the best plan of an instance.
class RatePlanner {
  public:
    RatePlanner(const RentalInstance& instance, double slack)
        : instance_(instance), latencies_(instance), slack_(slack) {}

    RentalOutcome run() {
        const auto& search_options = instance_.options().search;
        const auto goal = instance_.goal();
        auto bound = instance_.solve(instance_.problem(1, false, false), goal);
        const int left_out = instance_.considered().left_out;
        if (bound.has_plan() && left_out > 0) {
            const double beyond = instance_.bound_beyond(bound.bound);
            bound.bound =
                goal == RentalGoal::cost ? std::min(bound.bound, beyond) : std::max(bound.bound, beyond);
        } else if (!bound.has_plan() && (left_out > 0 || goal == RentalGoal::rate)) {
            // No bound is known, since 0 is none for a rate, and the solver ignores what was left out.
            const bool none = bound.status == milp::Status::infeasible && left_out == 0;
            bound.bound = goal == RentalGoal::cost || none ? 0 : std::numeric_limits<double>::infinity();
        }
        ServingPlan best;
        best.status = bound.status;
        best.solver = bound.solver;
        best.message = bound.message;
        if (bound.has_plan() || bound.status != milp::Status::infeasible) {
            search(goal, bound.has_plan() && goal == RentalGoal::cost ? bound.bound : 0);
            if (best_)
                best = std::move(*best_);
            else if (const auto stopped = instance_.stopped()) {
                best.status = *stopped;
                best.message =
                    std::string(*stopped == milp::Status::cancelled ? "the caller" : "the time limit") +
                    " ended the search before it found a plan";
            } else if (bound.has_plan()) {
                best.status = milp::Status::failed;
                best.message = "no plan was found that meets the targets in its simulation";
            }
        }
        best.left_out = left_out;
        best.deployments = instance_.possible();
        best.rented.resize(instance_.request().gpus.size(), 0);
        best.calibration = Calibrator(instance_.request(), instance_.options().estimate).report();
        (goal == RentalGoal::rate ? best.rate_bound : best.cost_bound) =
            goal == RentalGoal::rate ? bound.bound * instance_.total() : bound.bound;
        if (goal == RentalGoal::rate && !instance_.has_rates()) {
            best.rate_bound = 0;
            best.bound = bound.bound > 0 ? 1 / bound.bound : 0;
        }
        if (best.has_plan()) {
            const double gap = std::max({search_options.solve.mip_gap, search_options.tolerance, 1e-6});
            best.optimal = goal == RentalGoal::cost ? best.cost - best.cost_bound <= gap * best.cost
                           : instance_.has_rates()  ? best.rate_bound - best.rate <= gap * best.rate
                                                    : best.makespan - best.bound <= gap * best.makespan;
            best.status =
                best.optimal ? milp::Status::optimal : instance_.stopped().value_or(milp::Status::feasible);
            if (cheapest_ && best.cost > *cheapest_ * (1 + gap))
                best.message = "fewest starts within slack";
            else if (!best.optimal && best.message.empty())
                best.message = instance_.any_targets()
                                   ? "the bound ignores queueing; a cheaper plan may meet the targets"
                               : best.left_out > 0
                                   ? "the bound includes the " + std::to_string(best.left_out) +
                                         " deployments that were left out (max_deployments)"
                                   : "the solver stopped before it proved the plan optimal";
        }
        if (best.has_plan() && goal == RentalGoal::cost && instance_.has_rates() &&
            !instance_.any_targets() && instance_.options().estimate.error == EstimateError::none)
            best.cost_high = cost_at_the_high_end(best);
        const bool refused = best.status == milp::Status::infeasible ||
                             (bound.has_plan() && best.status == milp::Status::failed);
        return {std::move(best), cheapest_, refused};
    }

  private:
    /// The $/h of the deployments of a plan if each serves the low end of its error band; none without an
    /// answer.
    [[nodiscard]] std::optional<double> cost_at_the_high_end(const ServingPlan& plan) const {
        std::vector<std::size_t> deployments;
        for (const auto& r : plan.replicas)
            if (const auto c = latencies_.index_of(r);
                std::find(deployments.begin(), deployments.end(), c) == deployments.end())
                deployments.push_back(c);
        auto p = instance_.problem_of(deployments);
        p.budget = std::numeric_limits<double>::infinity();
        const auto& considered = instance_.considered();
        for (std::size_t i = 0; i < deployments.size(); ++i)
            for (std::size_t w = 0; w < instance_.kinds().size(); ++w) {
                if (considered.sources[deployments[i]][w] == Source::measured) continue;
                double low = 1;
                for (const auto& stage : considered.deployments[deployments[i]].stages)
                    low = std::min(low, instance_.estimator(instance_.kinds()[w].model)
                                            .errors(static_cast<std::size_t>(stage.gpu))
                                            .requests_per_s.low);
                p.configurations[i].throughput[w] *= low;
            }
        const auto s = instance_.solve(p, RentalGoal::cost);
        return s.has_plan() ? std::optional(s.cost) : std::nullopt;
    }

    /// The outcome of a rental that fills replicas to some part of their capacity.
    enum class Outcome : std::uint8_t {
        kept,       ///< the plan meets the targets
        missed,     ///< the simulation of the plan misses a target: fill less
        no_rental,  ///< GPUs or budget do not suffice: fill more; also if there is no time left
    };

    /// Runs the searches below.
    /// @param least lower bound on the $/h
    void search(RentalGoal goal, double least) {
        if (!instance_.any_targets()) {
            attempt(goal, 1, false);
        } else {
            for (const bool separate : {false, true}) {
                if (separate && !instance_.any_shared()) continue;
                if (goal == RentalGoal::cost && best_ && best_->cost <= least * (1 + 1e-6)) break;
                fill(goal, separate);
                if (goal == RentalGoal::cost) spend_less(least, separate);
            }
            if (goal == RentalGoal::cost && (!best_ || best_->cost > least * (1 + 1e-6))) one_deployment();
            if (goal == RentalGoal::cost && (!best_ || best_->cost > least * (1 + 1e-6))) improve();
        }
        if (goal == RentalGoal::cost && best_ && instance_.any_running()) start_few();
    }

    /// Searches the fullest replicas that meet the targets, by bisection. Fuller replicas need fewer GPUs and
    /// wait longer.
    void fill(RentalGoal goal, bool separate) {
        double low = least_part, high = 1;
        const auto whole = attempt(goal, 1, separate);
        if (whole == Outcome::no_rental) return;  // emptier replicas need more GPUs
        if (whole == Outcome::kept) {
            if (goal != RentalGoal::rate) return;  // `spend_less` tries fuller replicas
            low = 1, high = instance_.most_part();
        }
        for (int i = 0; i < 5 && high > low * 1.01; ++i) {
            const double middle = (low + high) / 2;
            (attempt(goal, middle, separate) == Outcome::missed ? high : low) = middle;
        }
    }

    /// Searches cheaper plans down to `least`, by bisection on the budget. For each budget it uses the part
    /// of the capacity of the plan with the highest rate, because its requests wait least.
    void spend_less(double least, bool separate) {
        double low = least;
        double high = best_ ? best_->cost : std::min(instance_.request().budget, instance_.all_money());
        for (int i = 0; i < 7; ++i) {
            if (instance_.stopped()) return;
            const bool first = !best_ && i == 0;  // the largest budget
            const double middle = first ? high : (low + high) / 2;
            if (!first && high - low <= 1e-6 * high) return;
            auto p = instance_.problem(1, separate);
            p.budget = middle;
            const auto most = instance_.solve(p, RentalGoal::rate);
            const double part = most.has_plan() ? (1 + 1e-6) / most.multiple : 0;
            const double before = best_ ? best_->cost : std::numeric_limits<double>::infinity();
            const bool kept = part > 0 && part <= instance_.most_part() * (1 + 1e-6) &&
                              attempt(RentalGoal::cost, part, separate) == Outcome::kept;
            if (first && !kept) return;
            if (kept)
                high = std::min(middle, best_->cost < before ? best_->cost : middle);
            else
                low = middle;
        }
    }

    /// Tries replicas of a single deployment that serve all kinds, starting from the fewest possible. The
    /// program adds up the capacities of kinds served alone, so it can prefer deployments that do worse in
    /// the simulation.
    void one_deployment() {
        if (instance_.request().models.size() != 1) return;
        struct Candidate {
            std::size_t deployment;
            double fewest;  ///< fewest replicas that can serve the rates
            double price;   ///< lower bound on the $/h of a replica
        };
        std::vector<Candidate> candidates;
        const auto whole = instance_.problem(1, false);
        for (std::size_t c = 0; c < whole.configurations.size(); ++c) {
            Candidate one{c, instance_.load(c, std::numeric_limits<double>::infinity()), 0};
            for (std::size_t n = 0; n < whole.offers.size(); ++n)
                one.price +=
                    whole.configurations[c].gpus[n] * lowest_price(whole.offers[n]) / whole.offers[n].gpus;
            one.fewest = std::max(1.0, std::ceil(one.fewest - 1e-9));
            if (std::isfinite(one.fewest)) candidates.push_back(one);
        }
        const auto cost = [](const Candidate& one) { return one.fewest * one.price; };
        std::stable_sort(candidates.begin(), candidates.end(),
                         [&](const Candidate& a, const Candidate& b) { return cost(a) < cost(b); });
        for (const auto& one : candidates)
            for (double replicas = one.fewest; replicas < one.fewest + counts_tried; ++replicas) {
                if (best_ && replicas * one.price >= best_->cost * (1 - 1e-9)) break;
                double low = least_part, high = instance_.most_part() * (1 + 1e-6);
                for (int i = 0; i < 40; ++i) {
                    const double middle = (low + high) / 2;
                    (instance_.load(one.deployment, middle) <= replicas ? high : low) = middle;
                }
                if (attempt(RentalGoal::cost, high, false, one.deployment) != Outcome::missed) break;
            }
    }

    /// Tries to improve the best plan by local search. Without a plan, it starts from one without limits on
    /// budget and GPUs.
    void improve() {
        std::optional<ServingPlan> start = best_;
        for (double part = 1; !start && part > least_part && !instance_.stopped(); part *= 0.8)
            for (const bool separate : {true, false}) {
                if (start || (separate && !instance_.any_shared())) continue;
                auto p = instance_.problem(part, separate);
                p.budget = std::numeric_limits<double>::infinity();
                for (auto& offer : p.offers) offer.available = std::max(offer.available, plenty);
                const auto s = instance_.solve(p, RentalGoal::cost);
                if (!s.has_plan()) return;  // some kind is not served at all
                auto plan = instance_.planned(p, s, instance_.deployments_of(separate));
                if (latencies_.simulate(plan)) start = std::move(plan);
            }
        if (!start) return;
        const double below = best_ ? best_->cost : std::numeric_limits<double>::infinity();
        auto better = PlanImprover(instance_, latencies_).run(*start, below);
        if (!better) return;
        best_ = std::move(better);
        starts_ = instance_.starts(best_->replicas);
    }

    /// Keeps the plan with the fewest starts, then the lowest cost, of the plans that cost at most `slack`
    /// more than the cheapest.
    void start_few() {
        cheapest_ = best_->cost;
        const double capacity = best_->capacity;
        const double money = std::min(instance_.request().budget, best_->cost * (1 + slack_) * (1 + 1e-9));
        for (const bool separate : {best_->separate, !best_->separate}) {
            if (separate && !instance_.any_shared()) continue;
            auto p = instance_.problem(capacity, separate);
            p.budget = money;
            const auto few = instance_.solve(p, RentalGoal::starts);
            // `low` starts do not suffice; `starts_` do.
            int low = few.has_plan() ? few.starts - 1 : starts_;
            while (starts_ - low > 1 && !instance_.stopped()) {
                const int middle = low == few.starts - 1 ? few.starts : (low + starts_) / 2;
                p.max_starts = middle;
                const auto cheap = solve_frugally(p, RentalGoal::cost);
                auto changed = cheap.has_plan()
                                   ? instance_.planned(p, cheap, instance_.deployments_of(separate))
                                   : ServingPlan{};
                if (cheap.has_plan() && latencies_.simulate(changed)) {
                    changed.capacity = capacity;
                    changed.separate = separate;
                    best_ = std::move(changed);
                    starts_ = cheap.starts;
                } else {
                    low = middle;
                }
            }
        }
    }

    /// Solves one rental, and keeps its plan if it meets the targets and is the best so far.
    /// @param only the only deployment to use; absent = all
    Outcome attempt(RentalGoal goal, double part, bool separate, std::optional<std::size_t> only = {}) {
        if (instance_.stopped()) return Outcome::no_rental;
        auto p = instance_.problem(part, separate);
        for (std::size_t c = 0; only && c < p.configurations.size(); ++c)
            if (c != *only)
                std::fill(p.configurations[c].throughput.begin(), p.configurations[c].throughput.end(), 0.0);
        const auto s = solve_frugally(p, goal);
        if (!s.has_plan()) return Outcome::no_rental;
        auto plan = instance_.planned(p, s, instance_.deployments_of(separate));
        if (!latencies_.simulate(plan)) return Outcome::missed;
        plan.capacity = part;
        plan.separate = separate;
        const bool better = !best_ ||
                            (goal == RentalGoal::rate ? plan.rate > best_->rate : plan.cost < best_->cost) ||
                            (!instance_.has_rates() && plan.makespan < best_->makespan);
        if (better) {
            best_ = std::move(plan);
            starts_ = s.starts;
        }
        return Outcome::kept;
    }

    /// Solves for the goal, for a rate also for its least cost, and if free GPUs are rented, for the fewest
    /// of them.
    [[nodiscard]] RentalSolution solve_frugally(RentalProblem p, RentalGoal goal) const {
        auto s = instance_.solve(p, goal);
        if (!s.has_plan()) return s;
        const auto improve = [&](RentalGoal next) {
            p.budget = s.cost * (1 + 1e-9);
            const auto better = instance_.solve(p, next);
            if (!better.has_plan() || better.cost > s.cost * (1 + 1e-9)) return;
            s.replicas = better.replicas, s.share = better.share, s.usual = better.usual,
            s.spot = better.spot;
            s.cost = better.cost, s.starts = better.starts;
        };
        if (goal == RentalGoal::rate) {
            for (auto& workload : p.workloads) workload.requests *= s.multiple;
            improve(RentalGoal::cost);
        }
        for (std::size_t n = 0; n < p.offers.size(); ++n)
            if ((s.usual[n] > 0 && p.offers[n].price <= 0) ||
                (s.spot[n] > 0 && p.offers[n].spot_price <= 0)) {
                improve(RentalGoal::gpus);
                break;
            }
        return s;
    }

    static constexpr double least_part = 0.2;  ///< smallest part of the capacity that is tried
    static constexpr int plenty = 1'000'000;   ///< pieces without a limit
    static constexpr int counts_tried = 6;     ///< numbers of replicas of a single deployment that are tried
    const RentalInstance& instance_;
    PlanLatencies latencies_;
    double slack_;
    std::optional<ServingPlan> best_{};
    std::optional<double> cheapest_{};
    int starts_ = 0;  ///< starts of the best plan
};

RentalOutcome plan_rental(const RentalInstance& instance, double slack) {
    return RatePlanner(instance, slack).run();
}

}  // namespace gpusched::serving::detail
