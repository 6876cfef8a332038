// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/files.hpp>
#include <gpusched/host/latency_source.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace gpusched::host {

namespace prometheus_detail {

static void skip_space(std::string_view& text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

/// A number of the text format; `+Inf` too.
static bool number(std::string_view word, double& value) {
    if (word == "+Inf" || word == "Inf") {
        value = std::numeric_limits<double>::infinity();
        return true;
    }
    if (word.starts_with('+')) word.remove_prefix(1);
    return read_number(word, value) && std::isfinite(value);
}

/// `{name="value",...}`, taken off the text.
static bool read_labels(std::string_view& text, std::map<std::string, std::string>& labels) {
    text.remove_prefix(1);
    for (;;) {
        skip_space(text);
        if (text.starts_with('}')) {
            text.remove_prefix(1);
            return true;
        }
        const auto equals = text.find('=');
        if (equals == std::string_view::npos) return false;
        auto head = text.substr(0, equals);
        const std::string name(take_word(head));
        text.remove_prefix(equals + 1);
        skip_space(text);
        if (!text.starts_with('"')) return false;
        text.remove_prefix(1);
        std::string value;
        while (!text.empty() && text.front() != '"') {
            char c = text.front();
            text.remove_prefix(1);
            if (c == '\\') {
                if (text.empty()) return false;
                c = text.front() == 'n' ? '\n' : text.front();
                text.remove_prefix(1);
            }
            value += c;
        }
        if (text.empty()) return false;
        text.remove_prefix(1);
        labels[name] = std::move(value);
        skip_space(text);
        if (text.starts_with(',')) text.remove_prefix(1);
    }
}

static bool fits(const CumulativeHistogram& buckets) noexcept {
    return buckets.size() >= 2 && std::isinf(buckets.rbegin()->first) && buckets.rbegin()->second > 0;
}

}  // namespace prometheus_detail

GPUSCHED_EXPORT double histogram_quantile(double q, const CumulativeHistogram& buckets) noexcept {
    if (!prometheus_detail::fits(buckets) || !(q >= 0 && q <= 1)) return unknown_signal;
    const double rank = q * buckets.rbegin()->second;
    double low = 0, below = 0;
    bool first = true;
    for (const auto& [bound, raw] : buckets) {
        const double count = std::max(raw, below);  // a scrape may tear: counts never fall with the bound
        if (count >= rank && !(count <= 0 && !first)) {
            if (std::isinf(bound)) return low;
            if (first && bound <= 0) return bound;
            if (count <= below) return bound;
            return low + (bound - low) * ((rank - below) / (count - below));
        }
        if (!std::isinf(bound)) low = bound;
        below = count;
        first = false;
    }
    return low;
}

GPUSCHED_EXPORT double histogram_count_below(double value, const CumulativeHistogram& buckets) noexcept {
    if (!prometheus_detail::fits(buckets)) return 0;
    double low = 0, below = 0;
    bool first = true;
    for (const auto& [bound, raw] : buckets) {
        const double count = std::max(raw, below);
        if (bound >= value) {
            // Above the last finite bound nothing is known: they count as above the value.
            if (std::isinf(bound)) return below;
            if (bound == value || (first && bound <= 0)) return bound == value ? count : 0;
            return value <= low ? below : below + (count - below) * (value - low) / (bound - low);
        }
        low = bound;
        below = count;
        first = false;
    }
    return below;
}

GPUSCHED_EXPORT std::map<std::string, CumulativeHistogram>
parse_prometheus_series(std::string_view text, std::string_view metric,
                        const std::map<std::string, std::string>& labels, std::int64_t& ignored) {
    using namespace prometheus_detail;
    const auto name = std::string(metric) + "_bucket";
    std::map<std::string, CumulativeHistogram> out;
    while (!text.empty()) {
        auto line = take_line(text);
        skip_space(line);
        if (!line.starts_with(name)) continue;
        line.remove_prefix(name.size());
        skip_space(line);
        if (!line.starts_with('{')) continue;  // a longer name, or no bucket
        std::map<std::string, std::string> found;
        double bound = 0, count = 0;
        if (!read_labels(line, found) || !found.contains("le") || !number(found["le"], bound) ||
            !number(take_word(line), count) || !(count >= 0) || std::isinf(count)) {
            ++ignored;
            continue;
        }
        if (!std::all_of(labels.begin(), labels.end(), [&](const auto& wanted) {
                const auto at = found.find(wanted.first);
                return at != found.end() && at->second == wanted.second;
            }))
            continue;
        std::string series;
        for (const auto& [label, value] : found)
            if (label != "le") series += label + '\0' + value + '\0';
        out[series][bound] += count;
    }
    return out;
}

GPUSCHED_EXPORT std::optional<CumulativeHistogram>
parse_prometheus_histogram(std::string_view text, std::string_view metric,
                           const std::map<std::string, std::string>& labels, std::int64_t& ignored) {
    std::optional<CumulativeHistogram> out;
    for (const auto& [name, series] : parse_prometheus_series(text, metric, labels, ignored)) {
        if (!out) out.emplace();
        for (const auto& [bound, count] : series) (*out)[bound] += count;
    }
    return out;
}

GPUSCHED_EXPORT LatencyHistogram::LatencyHistogram(std::string path, std::string metric,
                                                   std::map<std::string, std::string> labels,
                                                   double ms_per_unit, double tau_ms)
    : path_(std::move(path)), metric_(std::move(metric)), labels_(std::move(labels)),
      ms_per_unit_(ms_per_unit), tau_ms_(tau_ms) {}

GPUSCHED_EXPORT LatencyWindow LatencyHistogram::window() {
    LatencyWindow out;
    std::string text;
    SystemFiles files;
    std::map<std::string, CumulativeHistogram> now;
    if (files.read(path_, text) == 0) now = parse_prometheus_series(text, metric_, labels_, out.ignored);
    const auto last = std::exchange(last_, now);
    CumulativeHistogram grown;
    bool known = false;
    for (const auto& [name, series] : now) {
        const auto before = last.find(name);
        // A new one brings all of its past; one that fell has begun anew.
        const bool goes_on = before != last.end() && before->second.size() == series.size() &&
                             std::equal(series.begin(), series.end(), before->second.begin(),
                                        [](const auto& a, const auto& b) {
                                            return a.first == b.first && a.second >= b.second;
                                        });
        if (!goes_on) continue;
        known = true;
        for (const auto& [bound, count] : series) grown[bound] += count - before->second.at(bound);
    }
    if (!known) {
        windows_.clear();
        return out;
    }
    out.known = true;
    if (!grown.empty() && std::isinf(grown.rbegin()->first)) {
        const double total = grown.rbegin()->second;
        out.count = std::llround(std::min(total, 1e15));
        out.misses =
            std::llround(std::min(total - histogram_count_below(tau_ms_ / ms_per_unit_, grown), 1e15));
    }
    windows_.push_back(std::move(grown));
    if (windows_.size() > quantile_windows) windows_.erase(windows_.begin());
    CumulativeHistogram sum;
    for (const auto& w : windows_)
        for (const auto& [bound, count] : w) sum[bound] += count;
    const auto at = [&](double q) { return histogram_quantile(q, sum) * ms_per_unit_; };
    out.p50_ms = at(0.5);
    out.p95_ms = at(0.95);
    out.p99_ms = at(0.99);
    out.p999_ms = at(0.999);
    return out;
}

}  // namespace gpusched::host
