// SPDX-License-Identifier: Apache-2.0
// How soon the first token comes and how fast the others follow: what a service promises, as percentiles.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/catalogue.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// What percentiles of the latencies must not exceed, in seconds, each > 0; absent = anything will do.
///
/// TTFT is the time from arrival to the first token, waiting included; TPOT (time per output token) the mean time between the
/// tokens of one request after its first one. `ttft_p90_s` = 0.5 says that nine requests of ten have their first token in 0.5 s.
struct LatencyTargets {
    std::optional<double> ttft_p50_s{};  ///< seconds to the first token, median
    std::optional<double> ttft_p90_s{};  ///< seconds to the first token, 90th percentile
    std::optional<double> ttft_p99_s{};  ///< seconds to the first token, 99th percentile
    std::optional<double> tpot_p50_s{};  ///< seconds per further token, median
    std::optional<double> tpot_p90_s{};  ///< seconds per further token, 90th percentile
    std::optional<double> tpot_p99_s{};  ///< seconds per further token, 99th percentile
    bool operator==(const LatencyTargets&) const = default;

    [[nodiscard]] bool any() const noexcept { return *this != LatencyTargets{}; }
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyTargets>, F&& field) {
    field("ttft_p50_s", &LatencyTargets::ttft_p50_s,
          within(detail::smallest_positive, detail::largest_finite));
    field("ttft_p90_s", &LatencyTargets::ttft_p90_s,
          within(detail::smallest_positive, detail::largest_finite));
    field("ttft_p99_s", &LatencyTargets::ttft_p99_s,
          within(detail::smallest_positive, detail::largest_finite));
    field("tpot_p50_s", &LatencyTargets::tpot_p50_s,
          within(detail::smallest_positive, detail::largest_finite));
    field("tpot_p90_s", &LatencyTargets::tpot_p90_s,
          within(detail::smallest_positive, detail::largest_finite));
    field("tpot_p99_s", &LatencyTargets::tpot_p99_s,
          within(detail::smallest_positive, detail::largest_finite));
}

/// The targets `kind`, where `call` has none of its own.
[[nodiscard]] inline LatencyTargets merged(LatencyTargets kind, const LatencyTargets& call) {
    visit_fields(std::type_identity<LatencyTargets>{}, [&](const char*, auto member, const auto&...) {
        if (call.*member) kind.*member = call.*member;
    });
    return kind;
}

namespace detail {

/// One target: which percentile of which latency, and what it must not exceed.
struct LatencyTarget {
    const char* name;
    bool first_token;  ///< TTFT; otherwise TPOT
    double percent;
    double seconds;
};

inline std::vector<LatencyTarget> list_of(const LatencyTargets& t) {
    std::vector<LatencyTarget> all;
    const auto add = [&](const char* name, bool first, double percent, const std::optional<double>& s) {
        if (s) all.push_back({name, first, percent, *s});
    };
    add("ttft_p50_s", true, 50, t.ttft_p50_s);
    add("ttft_p90_s", true, 90, t.ttft_p90_s);
    add("ttft_p99_s", true, 99, t.ttft_p99_s);
    add("tpot_p50_s", false, 50, t.tpot_p50_s);
    add("tpot_p90_s", false, 90, t.tpot_p90_s);
    add("tpot_p99_s", false, 99, t.tpot_p99_s);
    return all;
}

}  // namespace detail

}  // namespace gpusched::serving
