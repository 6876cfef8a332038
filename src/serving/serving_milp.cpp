// SPDX-License-Identifier: Apache-2.0
// Models of the serving problem: four forms, the bound, the routing, and conversion of allocations.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/serving_milp.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving {

namespace detail {

/// The common parts of all forms: names, seconds, and the rows of budget and GPUs.
struct ServingBuilder {
    const ServingProblem& problem;
    milp::ModelBuilder model;
    std::vector<double> costs = configuration_costs(problem);
    std::vector<int> most = most_replicas(problem);
    std::vector<std::vector<double>> seconds;
    std::vector<int> first_copy{0};
    std::vector<milp::Entry> entries;
    std::size_t C = problem.configurations.size();
    std::size_t W = problem.workloads.size();
    std::size_t N = problem.gpus.size();

    ServingBuilder(const ServingProblem& p, const char* name) : problem(p), model(name) {
        for (const auto& c : p.configurations) {
            seconds.emplace_back();
            for (std::size_t w = 0; w < c.throughput.size(); ++w)
                seconds.back().push_back(c.throughput[w] > 0 ? p.workloads[w].requests / c.throughput[w]
                                                             : 0.0);
        }
    }
    /// Numbers the copies of all configurations, for forms with columns for each copy.
    void number_copies(const char* form) {
        constexpr int limit = 10'000'000;
        double all = 0;
        for (const int count : most) all += count;
        if (all > limit)
            throw InvalidInput(bad_value("replicas that could be rented", number_text(all),
                                         "at most " + std::to_string(limit) + " with form " +
                                             gpusched::quoted(form) + "; 'rates' has no limit"));
        for (const int count : most) first_copy.push_back(first_copy.back() + count);
    }
    /// A name as a part of a longer name; its own commas are escaped.
    [[nodiscard]] static std::string part(const std::string& name) {
        std::string text;
        for (const char letter : name) {
            if (letter == ',' || letter == '\\') text += '\\';
            text += letter;
        }
        return text;
    }
    [[nodiscard]] std::string config(std::size_t c) const { return part(problem.configurations[c].name); }
    [[nodiscard]] std::string copy(std::size_t c, int k) const { return config(c) + "," + std::to_string(k); }
    [[nodiscard]] std::string workload(std::size_t w) const {
        const auto& workload = problem.workloads[w];
        return workload.model.empty() ? part(workload.name)
                                      : part(workload.model) + "," + part(workload.name);
    }
    [[nodiscard]] static std::string call(const char* what, const std::string& a) {
        return std::string(what) + "(" + a + ")";
    }
    [[nodiscard]] static std::string call(const char* what, const std::string& a, const std::string& b) {
        return std::string(what) + "(" + a + "," + b + ")";
    }

    /// Adds the columns x(c, w).
    milp::IndexMap shares(const char* name) {
        milp::IndexMap x(name, C, W);
        for (std::size_t c = 0; c < C; ++c)
            for (std::size_t w = 0; w < W; ++w)
                if (seconds[c][w] > 0) x(c, w) = model.column(call(name, config(c), workload(w)), 0, 1);
        return x;
    }
    /// Adds the columns y(c).
    milp::IndexMap replicas(bool costly) {
        milp::IndexMap y("y", C);
        for (std::size_t c = 0; c < C; ++c)
            y(c) = model.column(call("y", config(c)), 0, most[c], costly ? costs[c] : 0, true);
        return y;
    }
    /// Calls `visit(k, p)` for each copy k of a configuration, which is copy p of all.
    template <class Visit>
    void each_copy(std::size_t c, Visit&& visit) const {
        for (int k = 0, p = first_copy[c]; k < most[c]; ++k, ++p) visit(k, p);
    }
    /// Adds the rows sum of x(., w) = 1, or = `rate` if that is a column.
    void coverage(const milp::IndexMap& x, std::size_t slots, int rate = -1) {
        for (std::size_t w = 0; w < W; ++w) {
            if (problem.workloads[w].requests <= 0) continue;
            entries.clear();
            if (rate >= 0) entries.push_back({rate, -1});
            for (std::size_t i = 0; i < slots; ++i)
                if (x(i, w) >= 0) entries.push_back({x(i, w), 1});
            model.equal("coverage", call("coverage", workload(w)), entries, rate >= 0 ? 0 : 1);
        }
    }
    /// Adds the row that limits the busy time of the x of one slot: sum of seconds / unit * x + limit <= 0.
    void time(std::size_t c, const std::string& name, const milp::IndexMap& x, std::size_t slot,
              std::vector<milp::Entry> limit, double unit = 1) {
        for (std::size_t w = 0; w < W; ++w)
            if (x(slot, w) >= 0) limit.push_back({x(slot, w), seconds[c][w] / unit});
        model.at_most("time", call("time", name), limit, 0);
    }
    /// Adds the rows that allow the x of one slot only with a replica: x + replicas <= 0.
    void active(const std::string& name, const milp::IndexMap& x, std::size_t slot,
                const std::vector<milp::Entry>& replicas) {
        for (std::size_t w = 0; w < W; ++w) {
            if (x(slot, w) < 0) continue;
            entries = replicas;
            entries.push_back({x(slot, w), 1});
            model.at_most("active", call("active", name, workload(w)), entries, 0);
        }
    }
    /// Adds the row that requires the copy before copy k.
    void symmetry(std::size_t c, int k, const milp::IndexMap& y, int p) {
        if (k == 0) return;
        entries = {{y(p), 1}, {y(p - 1), -1}};
        model.at_most("symmetry", call("symmetry", copy(c, k)), entries, 0);
    }
    /// Adds the rows sum over c of weight * (columns of c) <= what is available, times T if T is a column.
    template <class Each>
    void resources(Each&& each, int T = -1) {
        const auto row = [&](const char* group, const std::string& name, double have, auto&& weight) {
            entries.clear();
            for (std::size_t c = 0; c < C; ++c)
                if (weight(c) != 0) each(c, static_cast<double>(weight(c)));
            if (T >= 0) entries.push_back({T, -have});
            model.at_most(T < 0 ? group : "surrogate", (T < 0 ? "" : "surrogate ") + name, entries,
                          T < 0 ? have : 0);
        };
        row("budget", "budget", problem.budget, [&](std::size_t c) { return costs[c]; });
        for (std::size_t n = 0; n < N; ++n)
            row("availability", call("availability", problem.gpus[n].name), problem.gpus[n].available,
                [&](std::size_t c) { return problem.configurations[c].gpus[n]; });
    }
    /// Adds all rows of columns x(c, w) and y(c).
    /// @param limit the most busy time of a replica, in units
    void rows(const milp::IndexMap& x, const milp::IndexMap& y, double limit, double unit = 1,
              int rate = -1) {
        coverage(x, C, rate);
        for (std::size_t c = 0; c < C; ++c) {
            time(c, config(c), x, c, {{y(c), -limit}}, unit);
            active(config(c), x, c, {{y(c), -1}});
        }
        resources([&](std::size_t c, double weight) { entries.push_back({y(c), weight}); });
    }
    template <class... Maps>
    ServingMilp finish(ServingForm form, int T, Maps... maps) {
        (model.add_index(std::move(maps)), ...);
        ServingMilp result{model.finish(), form, T, first_copy, seconds, {}};
        result.upper.assign(most.begin(), most.end());
        return result;
    }
};

static ServingMilp serving_copies(ServingBuilder& b, bool surrogate_rows) {
    b.number_copies("copies");
    const auto P = static_cast<std::size_t>(b.first_copy.back());
    auto& m = b.model;
    const int T = m.column("T", 0, milp::infinity, 1);
    milp::IndexMap x("x", P, b.W), y("y", P);
    for (std::size_t c = 0; c < b.C; ++c)
        b.each_copy(c, [&](int k, int p) {
            y(p) = m.binary(b.call("y", b.copy(c, k)));
            for (std::size_t w = 0; w < b.W; ++w)
                if (b.seconds[c][w] > 0) x(p, w) = m.column(b.call("x", b.copy(c, k), b.workload(w)), 0, 1);
        });
    b.coverage(x, P);
    for (std::size_t c = 0; c < b.C; ++c)
        b.each_copy(c, [&](int k, int p) {
            b.time(c, b.copy(c, k), x, static_cast<std::size_t>(p), {{T, -1}});
            b.active(b.copy(c, k), x, static_cast<std::size_t>(p), {{y(p), -1}});
            b.symmetry(c, k, y, p);
        });
    b.resources([&](std::size_t c, double weight) {
        b.each_copy(c, [&](int, int p) { b.entries.push_back({y(p), weight}); });
    });
    // A copy is busy for at most T y, so budget and GPUs limit the sum of busy times, too.
    if (surrogate_rows)
        b.resources(
            [&](std::size_t c, double weight) {
                b.each_copy(c, [&](int, int p) {
                    for (std::size_t w = 0; w < b.W; ++w)
                        if (x(p, w) >= 0) b.entries.push_back({x(p, w), weight * b.seconds[c][w]});
                });
            },
            T);
    return b.finish(ServingForm::copies, T, std::move(x), std::move(y));
}

static ServingMilp serving_fixed(ServingBuilder& b, double makespan, bool minimise_cost) {
    auto x = b.shares("x");
    auto y = b.replicas(minimise_cost);
    b.rows(x, y, makespan);
    return b.finish(ServingForm::fixed_makespan, -1, std::move(x), std::move(y));
}

static ServingMilp serving_mccormick(ServingBuilder& b, double upper) {
    b.number_copies("mccormick");
    const int P = b.first_copy.back();
    auto& m = b.model;
    const int T = m.column("T", 0, upper, 1);
    auto x = b.shares("x");
    milp::IndexMap y("y", P), u("u", P);
    for (std::size_t c = 0; c < b.C; ++c)
        b.each_copy(c, [&](int k, int p) {
            y(p) = m.binary(b.call("y", b.copy(c, k)));
            u(p) = m.column(b.call("u", b.copy(c, k)), 0, upper);
        });
    b.coverage(x, b.C);
    for (std::size_t c = 0; c < b.C; ++c) {
        std::vector<milp::Entry> products, copies;
        b.each_copy(c, [&](int, int p) {
            products.push_back({u(p), -1});
            copies.push_back({y(p), -1});
        });
        b.time(c, b.config(c), x, c, products);
        b.active(b.config(c), x, c, copies);
        b.each_copy(c, [&](int k, int p) {
            b.entries = {{u(p), 1}, {y(p), -upper}};
            m.at_most("product", b.call("product", b.copy(c, k)), b.entries, 0);
            b.entries = {{u(p), 1}, {T, -1}};
            m.at_most("product", b.call("product T", b.copy(c, k)), b.entries, 0);
            b.symmetry(c, k, y, p);
        });
    }
    b.resources([&](std::size_t c, double weight) {
        b.each_copy(c, [&](int, int p) { b.entries.push_back({y(p), weight}); });
    });
    return b.finish(ServingForm::mccormick, T, std::move(x), std::move(y), std::move(u));
}

static ServingMilp serving_rates(ServingBuilder& b) {
    const double slowest = slowest_makespan(b.problem);
    const double bound = closed_form_bound(b.problem);
    const double unit = bound > 0 && std::isfinite(bound) ? bound : std::max(slowest, 1e-9);
    // Every feasible problem has a plan within the slowest makespan, so this bound keeps infeasible models
    // infeasible.
    const double least = slowest > 0 ? std::min(1.0, unit / slowest) : 1.0;
    const int rate = b.model.column("rate", least, 1, 1);
    auto z = b.shares("z");
    auto y = b.replicas(false);
    b.rows(z, y, 1, unit, rate);
    b.model.set_sense(milp::Sense::maximise);
    auto result = b.finish(ServingForm::rates, -1, std::move(z), std::move(y));
    result.rate_column = rate;
    result.unit = unit;
    return result;
}

}  // namespace detail

GPUSCHED_EXPORT ServingMilp serving_milp(const ServingProblem& problem, const ServingMilpOptions& options) {
    validate(problem);
    Problems problems;
    const auto only = [&](const char* field, const std::optional<double>& value, ServingForm form) {
        if (!value) return;
        if (options.form != form)
            problems.add(std::string(field) + ": expected with form " + gpusched::quoted(enum_name(form)) +
                         " only");
        else if (!(*value > 0 && std::isfinite(*value)))
            problems.add(bad_value(field, number_text(*value), "a number above 0"));
    };
    only("makespan", options.makespan, ServingForm::fixed_makespan);
    only("makespan_upper", options.makespan_upper, ServingForm::mccormick);
    if (options.form == ServingForm::fixed_makespan && !options.makespan)
        problems.add("makespan: missing; expected seconds with form 'fixed_makespan'");
    problems.throw_if_any();
    detail::ServingBuilder b(problem, "serving plan");
    switch (options.form) {
    case ServingForm::copies:
        return detail::serving_copies(b, options.surrogate_rows);
    case ServingForm::fixed_makespan:
        return detail::serving_fixed(b, *options.makespan, options.minimise_cost);
    case ServingForm::mccormick:
        // Without requests the bound is arbitrary.
        return detail::serving_mccormick(
            b, options.makespan_upper ? *options.makespan_upper : std::max(slowest_makespan(problem), 1e-9));
    case ServingForm::rates:
        return detail::serving_rates(b);
    }
    throw InvalidInput("form: no value with the number " + std::to_string(static_cast<int>(options.form)));
}

GPUSCHED_EXPORT double ServingMilp::makespan_of(double reached) const noexcept {
    if (form != ServingForm::rates) return reached;
    return reached > 0 ? unit / reached : milp::infinity;
}

GPUSCHED_EXPORT int ServingMilp::x(int c, int w, int k) const {
    const auto& map = index(form == ServingForm::rates ? "z" : "x");
    return form == ServingForm::copies ? map(first_copy[static_cast<std::size_t>(c)] + k, w) : map(c, w);
}

GPUSCHED_EXPORT int ServingMilp::y(int c, int k) const {
    const auto& map = index("y");
    const bool whole = form == ServingForm::fixed_makespan || form == ServingForm::rates;
    return whole ? map(c) : map(first_copy[static_cast<std::size_t>(c)] + k);
}

GPUSCHED_EXPORT std::vector<double> ServingMilp::encode(const ServingAllocation& allocation) const {
    const auto C = seconds.size();
    const auto W = C == 0 ? 0 : seconds.front().size();
    require_size("replicas", allocation.replicas.size(), C);
    require_size("share", allocation.share.size(), C);
    std::vector<double> values(static_cast<std::size_t>(columns()), 0.0);
    const auto set = [&](int column, double number) { values[static_cast<std::size_t>(column)] = number; };
    double T = 0;
    std::vector<double> busy(C, 0.0);
    for (std::size_t c = 0; c < C; ++c) {
        const int replicas = allocation.replicas[c];
        require_size("share", allocation.share[c].size(), W);
        const int i = static_cast<int>(c);
        if (replicas < 0 || replicas > upper[c])
            throw InvalidInput(
                bad_value("replicas", std::to_string(replicas), "0 to " + number_text(upper[c])));
        for (std::size_t w = 0; w < W; ++w) {
            const double share = allocation.share[c][w];
            if (share == 0) continue;
            if (!(share > 0 && share <= 1 + 1e-9))
                throw InvalidInput(bad_value("share", number_text(share), "0 to 1"));
            const int j = static_cast<int>(w);
            if (replicas == 0 || x(i, j) < 0)
                throw InvalidInput(
                    bad_value("share", number_text(share), "0, because no replica can serve the workload"));
            busy[c] += seconds[c][w] * share;
            if (form == ServingForm::copies)
                for (int k = 0; k < replicas; ++k) set(x(i, j, k), share / replicas);
            else
                set(x(i, j), share);
        }
        if (replicas > 0) T = std::max(T, busy[c] / replicas);
    }
    if (makespan_column >= 0) set(makespan_column, T);
    if (rate_column >= 0) {
        const double rate = T > 0 ? unit / T : 1;
        set(rate_column, rate);
        for (const int column : index("z").columns)
            if (column >= 0) values[static_cast<std::size_t>(column)] *= rate;
    }
    if (indices.size() < 2) return values;  // routing has no columns for replicas
    for (std::size_t c = 0; c < C; ++c) {
        const int i = static_cast<int>(c);
        if (form == ServingForm::fixed_makespan || form == ServingForm::rates) {
            set(y(i), allocation.replicas[c]);
            continue;
        }
        for (int k = 0; k < allocation.replicas[c]; ++k) {
            set(y(i, k), 1);
            if (form == ServingForm::mccormick) set(index("u")(first_copy[c] + k), T);
        }
    }
    return values;
}

GPUSCHED_EXPORT ServingAllocation ServingMilp::decode(std::span<const double> values) const {
    require_values(*this, values);
    const auto C = seconds.size();
    const auto W = C == 0 ? 0 : seconds.front().size();
    const auto at = [&](int column) { return column < 0 ? 0.0 : values[static_cast<std::size_t>(column)]; };
    const auto whole = [&](int column, double most) {
        return static_cast<int>(std::clamp(std::round(at(column)), 0.0, most));
    };
    ServingAllocation result{std::vector<int>(C, 0),
                             std::vector<std::vector<double>>(C, std::vector<double>(W, 0.0))};
    const bool routing = indices.size() < 2;
    // Converts shares per second to shares; a rate of 0 serves nothing.
    const double per_rate = rate_column < 0 ? 1 : at(rate_column) > 0 ? 1 / at(rate_column) : 0;
    for (std::size_t c = 0; c < C; ++c) {
        const int i = static_cast<int>(c), copies = static_cast<int>(upper[c]);
        if (routing)
            result.replicas[c] = copies;
        else if (form == ServingForm::fixed_makespan || form == ServingForm::rates)
            result.replicas[c] = whole(y(i), upper[c]);
        else
            for (int k = 0; k < copies; ++k) result.replicas[c] += whole(y(i, k), 1);
        for (std::size_t w = 0; w < W; ++w) {
            const int j = static_cast<int>(w);
            auto& share = result.share[c][w];
            if (result.replicas[c] == 0) continue;  // rounding errors go to the others
            if (form == ServingForm::copies)
                for (int k = 0; k < copies; ++k) share += std::max(0.0, at(x(i, j, k)));
            else
                share = std::max(0.0, at(x(i, j))) * per_rate;
            if (share < 1e-9) share = 0;
        }
    }
    for (std::size_t w = 0; w < W; ++w) {
        double sum = 0;
        for (std::size_t c = 0; c < C; ++c) sum += result.share[c][w];
        if (sum > 0.5)  // otherwise the vector is no solution, and stays as it is
            for (std::size_t c = 0; c < C; ++c) result.share[c][w] /= sum;
    }
    return result;
}

GPUSCHED_EXPORT milp::Model serving_bound(const ServingProblem& problem) {
    validate(problem);
    detail::ServingBuilder b(problem, "serving bound");
    auto& m = b.model;
    const int T = m.column("T", 0, milp::infinity, 1);
    auto x = b.shares("x");
    milp::IndexMap v("v", b.C);
    for (std::size_t c = 0; c < b.C; ++c) v(c) = m.column(b.call("v", b.config(c)), 0, milp::infinity);
    b.coverage(x, b.C);
    for (std::size_t c = 0; c < b.C; ++c) {
        b.time(c, b.config(c), x, c, {{v(c), -1}});
        b.entries = {{v(c), 1}, {T, -static_cast<double>(b.most[c])}};
        m.at_most("copies", b.call("copies", b.config(c)), b.entries, 0);
    }
    b.resources([&](std::size_t c, double weight) { b.entries.push_back({v(c), weight}); }, T);
    m.add_index(std::move(x));
    m.add_index(std::move(v));
    return m.finish();
}

GPUSCHED_EXPORT ServingMilp serving_routing(const ServingProblem& problem, const std::vector<int>& replicas) {
    validate(problem);
    require_size("replicas", replicas.size(), problem.configurations.size());
    for (const int count : replicas)
        if (count < 0) throw InvalidInput(bad_value("replicas", std::to_string(count), "at least 0"));
    detail::ServingBuilder b(problem, "serving routing");
    auto& m = b.model;
    const int T = m.column("T", 0, milp::infinity, 1);
    milp::IndexMap x("x", b.C, b.W);
    for (std::size_t c = 0; c < b.C; ++c)
        for (std::size_t w = 0; w < b.W; ++w)
            if (replicas[c] > 0 && b.seconds[c][w] > 0)
                x(c, w) = m.column(b.call("x", b.config(c), b.workload(w)), 0, 1);
    b.coverage(x, b.C);
    for (std::size_t c = 0; c < b.C; ++c)
        if (replicas[c] > 0) b.time(c, b.config(c), x, c, {{T, -static_cast<double>(replicas[c])}});
    auto result = b.finish(ServingForm::fixed_makespan, T, std::move(x));
    result.upper.assign(replicas.begin(), replicas.end());
    return result;
}

GPUSCHED_EXPORT double slowest_makespan(const ServingProblem& problem) {
    double sum = 0;
    for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
        double slowest = 0;
        for (const auto& c : problem.configurations)
            if (c.throughput[w] > 0)
                slowest = std::max(slowest, problem.workloads[w].requests / c.throughput[w]);
        sum += slowest;
    }
    return sum;
}

GPUSCHED_EXPORT double closed_form_bound(const ServingProblem& problem) {
    validate(problem);
    const auto costs = configuration_costs(problem);
    const auto most = most_replicas(problem);
    const auto N = problem.gpus.size();
    double best = 0;
    // At these prices of money and GPUs, the value of all resources limits the work per second.
    const auto with_prices = [&](double money, const std::vector<double>& gpu) {
        double have = money * problem.budget;
        for (std::size_t n = 0; n < N; ++n) have += gpu[n] * problem.gpus[n].available;
        if (have <= 0) return;
        double need = 0;
        for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
            double least = milp::infinity;
            for (std::size_t c = 0; c < costs.size(); ++c) {
                const auto& config = problem.configurations[c];
                if (config.throughput[w] <= 0 || most[c] == 0) continue;
                double price = money * costs[c];
                for (std::size_t n = 0; n < N; ++n) price += gpu[n] * config.gpus[n];
                least = std::min(least, price / config.throughput[w]);
            }
            if (problem.workloads[w].requests > 0) need += problem.workloads[w].requests * least;
        }
        best = std::max(best, need / have);
    };
    const std::vector<double> none(N, 0.0);
    with_prices(1, none);
    with_prices(0, std::vector<double>(N, 1.0));
    std::vector<double> market;
    for (const auto& gpu : problem.gpus) market.push_back(gpu.price);
    with_prices(0, market);
    for (std::size_t n = 0; n < N; ++n) {
        auto one = none;
        one[n] = 1;
        with_prices(0, one);
    }
    for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
        if (problem.workloads[w].requests <= 0) continue;
        double rate = 0;
        for (std::size_t c = 0; c < costs.size(); ++c)
            rate += most[c] * problem.configurations[c].throughput[w];
        best = std::max(best, problem.workloads[w].requests / rate);
    }
    return best;
}

}  // namespace gpusched::serving
