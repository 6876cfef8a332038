// SPDX-License-Identifier: Apache-2.0
#include "serving/serving_builder.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/serving_milp.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace gpusched::serving {

namespace detail {

static ServingMilp serving_copies(ServingBuilder& b, bool surrogate_rows) {
    b.number_copies("copies");
    const int P = b.first_copy.back();
    auto& m = b.model;
    const int T = m.column("T", 0, milp::infinity, 1);
    milp::IndexMap x("x", {P, b.W}), y("y", {P});
    const auto copy = [&](int c, int k) { return b.config(c) + "," + std::to_string(k); };
    for (int c = 0; c < b.C; ++c)
        for (int k = 0, p = b.first_copy[static_cast<std::size_t>(c)]; k < b.copies(c); ++k, ++p) {
            y(p) = m.binary(b.call("y", copy(c, k)));
            for (int w = 0; w < b.W; ++w)
                if (b.busy(c, w) > 0) x(p, w) = m.column(b.call("x", copy(c, k), b.workload(w)), 0, 1);
        }
    b.coverage(x, P);
    for (int c = 0; c < b.C; ++c)
        for (int k = 0, p = b.first_copy[static_cast<std::size_t>(c)]; k < b.copies(c); ++k, ++p) {
            b.entries.assign(1, {T, -1});
            for (int w = 0; w < b.W; ++w)
                if (x(p, w) >= 0) b.entries.push_back({x(p, w), b.busy(c, w)});
            m.at_most("time", b.call("time", copy(c, k)), b.entries, 0);
            for (int w = 0; w < b.W; ++w) {
                if (x(p, w) < 0) continue;
                b.entries = {{x(p, w), 1}, {y(p), -1}};
                m.at_most("active", b.call("active", copy(c, k), b.workload(w)), b.entries, 0);
            }
            if (k == 0) continue;
            b.entries = {{y(p), 1}, {y(p - 1), -1}};
            m.at_most("symmetry", b.call("symmetry", copy(c, k)), b.entries, 0);
        }
    b.resources("budget", [&](int c, double weight) {
        for (int k = 0, p = b.first_copy[static_cast<std::size_t>(c)]; k < b.copies(c); ++k, ++p)
            b.entries.push_back({y(p), weight});
    });
    // A copy is busy for at most T y: money and GPUs bound the sum of busy times as well.
    if (surrogate_rows)
        b.resources(
            "surrogate",
            [&](int c, double weight) {
                for (int k = 0, p = b.first_copy[static_cast<std::size_t>(c)]; k < b.copies(c); ++k, ++p)
                    for (int w = 0; w < b.W; ++w)
                        if (x(p, w) >= 0) b.entries.push_back({x(p, w), weight * b.busy(c, w)});
            },
            T);
    m.add_index(std::move(x));
    m.add_index(std::move(y));
    return b.finish(ServingForm::copies, T);
}

static ServingMilp serving_fixed(ServingBuilder& b, double makespan, bool minimise_cost) {
    auto& m = b.model;
    auto x = serving_shares(b);
    milp::IndexMap y("y", {b.C});
    for (int c = 0; c < b.C; ++c)
        y(c) = m.column(b.call("y", b.config(c)), 0, b.copies(c), minimise_cost ? b.cost(c) : 0, true);
    b.coverage(x, b.C);
    for (int c = 0; c < b.C; ++c) {
        b.entries.assign(1, {y(c), -makespan});
        for (int w = 0; w < b.W; ++w)
            if (x(c, w) >= 0) b.entries.push_back({x(c, w), b.busy(c, w)});
        m.at_most("time", b.call("time", b.config(c)), b.entries, 0);
        for (int w = 0; w < b.W; ++w) {
            if (x(c, w) < 0) continue;
            b.entries = {{x(c, w), 1}, {y(c), -1}};
            m.at_most("active", b.call("active", b.config(c), b.workload(w)), b.entries, 0);
        }
    }
    b.resources("budget", [&](int c, double weight) { b.entries.push_back({y(c), weight}); });
    m.add_index(std::move(x));
    m.add_index(std::move(y));
    return b.finish(ServingForm::fixed_makespan, -1);
}

static ServingMilp serving_mccormick(ServingBuilder& b, double upper) {
    b.number_copies("mccormick");
    const int P = b.first_copy.back();
    auto& m = b.model;
    const int T = m.column("T", 0, upper, 1);
    auto x = serving_shares(b);
    milp::IndexMap y("y", {P}), u("u", {P});
    const auto copy = [&](int c, int k) { return b.config(c) + "," + std::to_string(k); };
    const auto each_copy = [&](int c, auto&& visit) {
        for (int k = 0, p = b.first_copy[static_cast<std::size_t>(c)]; k < b.copies(c); ++k, ++p) visit(k, p);
    };
    for (int c = 0; c < b.C; ++c)
        each_copy(c, [&](int k, int p) {
            y(p) = m.binary(b.call("y", copy(c, k)));
            u(p) = m.column(b.call("u", copy(c, k)), 0, upper);
        });
    b.coverage(x, b.C);
    for (int c = 0; c < b.C; ++c) {
        b.entries.clear();
        each_copy(c, [&](int, int p) { b.entries.push_back({u(p), -1}); });
        for (int w = 0; w < b.W; ++w)
            if (x(c, w) >= 0) b.entries.push_back({x(c, w), b.busy(c, w)});
        m.at_most("time", b.call("time", b.config(c)), b.entries, 0);
        for (int w = 0; w < b.W; ++w) {
            if (x(c, w) < 0) continue;
            b.entries.assign(1, {x(c, w), 1});
            each_copy(c, [&](int, int p) { b.entries.push_back({y(p), -1}); });
            m.at_most("active", b.call("active", b.config(c), b.workload(w)), b.entries, 0);
        }
        each_copy(c, [&](int k, int p) {
            b.entries = {{u(p), 1}, {y(p), -upper}};
            m.at_most("product", b.call("product", copy(c, k)), b.entries, 0);
            b.entries = {{u(p), 1}, {T, -1}};
            m.at_most("product", b.call("product T", copy(c, k)), b.entries, 0);
            if (k == 0) return;
            b.entries = {{y(p), 1}, {y(p - 1), -1}};
            m.at_most("symmetry", b.call("symmetry", copy(c, k)), b.entries, 0);
        });
    }
    b.resources("budget", [&](int c, double weight) {
        each_copy(c, [&](int, int p) { b.entries.push_back({y(p), weight}); });
    });
    m.add_index(std::move(x));
    m.add_index(std::move(y));
    m.add_index(std::move(u));
    return b.finish(ServingForm::mccormick, T);
}

static ServingMilp serving_rates(ServingBuilder& b) {
    auto& m = b.model;
    const double slowest = slowest_makespan(b.problem);
    const double bound = closed_form_bound(b.problem);
    const double unit = bound > 0 && std::isfinite(bound) ? bound : std::max(slowest, 1e-9);
    // A problem that has a plan has one within the slowest makespan: where it has none the model is infeasible.
    const double least = slowest > 0 ? std::min(1.0, unit / slowest) : 1.0;
    const int rate = m.column("rate", least, 1, 1);
    milp::IndexMap z("z", {b.C, b.W}), y("y", {b.C});
    for (int c = 0; c < b.C; ++c)
        for (int w = 0; w < b.W; ++w)
            if (b.busy(c, w) > 0) z(c, w) = m.column(b.call("z", b.config(c), b.workload(w)), 0, 1);
    for (int c = 0; c < b.C; ++c) y(c) = m.column(b.call("y", b.config(c)), 0, b.copies(c), 0, true);
    for (int w = 0; w < b.W; ++w) {
        if (!b.wanted(w)) continue;
        b.entries.assign(1, {rate, -1});
        for (int c = 0; c < b.C; ++c)
            if (z(c, w) >= 0) b.entries.push_back({z(c, w), 1});
        m.equal("coverage", b.call("coverage", b.workload(w)), b.entries, 0);
    }
    for (int c = 0; c < b.C; ++c) {
        b.entries.assign(1, {y(c), -1});
        for (int w = 0; w < b.W; ++w)
            if (z(c, w) >= 0) b.entries.push_back({z(c, w), b.busy(c, w) / unit});
        m.at_most("time", b.call("time", b.config(c)), b.entries, 0);
        for (int w = 0; w < b.W; ++w) {
            if (z(c, w) < 0) continue;
            b.entries = {{z(c, w), 1}, {y(c), -1}};
            m.at_most("active", b.call("active", b.config(c), b.workload(w)), b.entries, 0);
        }
    }
    b.resources("budget", [&](int c, double weight) { b.entries.push_back({y(c), weight}); });
    m.add_index(std::move(z));
    m.add_index(std::move(y));
    m.set_sense(milp::Sense::maximise);
    auto result = b.finish(ServingForm::rates, -1);
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
        // Without requests any bound will do.
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
    const auto size = [](const char* field, std::size_t is, std::size_t expected) {
        if (is != expected)
            throw InvalidInput(
                bad_value("entries of " + std::string(field), std::to_string(is), std::to_string(expected)));
    };
    size("replicas", allocation.replicas.size(), C);
    size("share", allocation.share.size(), C);
    std::vector<double> values(static_cast<std::size_t>(columns()), 0.0);
    const auto set = [&](int column, double number) { values[static_cast<std::size_t>(column)] = number; };
    double T = 0;
    std::vector<double> busy(C, 0.0);
    for (std::size_t c = 0; c < C; ++c) {
        const int replicas = allocation.replicas[c];
        size("share", allocation.share[c].size(), W);
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
                throw InvalidInput(bad_value("share", number_text(share),
                                             "0 where there is no replica that can serve the workload"));
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
    if (indices.size() < 2) return values;  // routing: the replicas are no columns
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
    // Shares per second become shares; a rate of 0 serves nothing.
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
            if (result.replicas[c] == 0) continue;  // what rounding left there goes to the others
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
        if (sum > 0.5)  // otherwise the vector is no solution, and nothing is made up
            for (std::size_t c = 0; c < C; ++c) result.share[c][w] /= sum;
    }
    return result;
}

}  // namespace gpusched::serving
