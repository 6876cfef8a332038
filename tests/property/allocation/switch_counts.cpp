// SPDX-License-Identifier: Apache-2.0
// Counts of pods per switch against brute force over all spreads, and Algorithm 2 against a literal transcription.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace {

using Capacities = std::vector<std::int64_t>;

double entropy_of(const std::vector<std::int64_t>& parts) {
    const double all = static_cast<double>(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}));
    double h = 0;
    for (const auto part : parts)
        if (part > 0) h -= static_cast<double>(part) / all * std::log(static_cast<double>(part) / all);
    return h;
}

void all_spreads(const Capacities& capacity, std::int64_t pods,
                 const std::function<void(const std::vector<std::int64_t>&)>& visit) {
    std::vector<std::int64_t> counts(capacity.size(), 0);
    std::function<void(std::size_t, std::int64_t)> step = [&](std::size_t s, std::int64_t left) {
        if (s == capacity.size()) {
            if (left == 0) visit(counts);
            return;
        }
        for (std::int64_t n = 0; n <= std::min(left, capacity[s]); ++n) {
            counts[s] = n;
            step(s + 1, left - n);
        }
        counts[s] = 0;
    };
    step(0, pods);
}

std::int64_t largest_block(const Capacities& capacity, const std::vector<std::int64_t>& counts) {
    std::int64_t largest = 0;
    for (std::size_t s = 0; s < capacity.size(); ++s) largest = std::max(largest, capacity[s] - counts[s]);
    return largest;
}

/// Line by line as in the paper: sets of pairs, the entropy of every extended plan from scratch.
std::optional<std::vector<std::int64_t>> transcription(const Capacities& capacity, std::int64_t pods) {
    std::map<std::size_t, std::int64_t> plan;
    std::set<std::size_t> available;
    for (std::size_t s = 0; s < capacity.size(); ++s) available.insert(s);
    auto remaining = pods;
    while (remaining > 0 && !available.empty()) {
        std::optional<std::pair<double, std::size_t>> best;
        for (const auto s : available) {
            std::vector<std::int64_t> parts;
            for (const auto& [at, n] : plan) parts.push_back(n);
            parts.push_back(std::min(capacity[s], remaining));
            const double h =
                std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) > 0 ? entropy_of(parts) : 0;
            if (!best || h < best->first - 1e-9) best = {h, s};
        }
        const auto s = best->second;
        if (const auto n = std::min(capacity[s], remaining); n > 0) plan[s] = n;
        remaining -= std::min(capacity[s], remaining);
        available.erase(s);
    }
    if (remaining > 0) return std::nullopt;
    std::vector<std::int64_t> counts(capacity.size(), 0);
    for (const auto& [s, n] : plan) counts[s] = n;
    return counts;
}

Capacities random_capacities(Rng& rng, std::int64_t most_switches, std::int64_t most) {
    Capacities capacity(static_cast<std::size_t>(rng.between(1, most_switches)));
    const auto cap = rng.between(1, most);  // narrow ranges make ties
    for (auto& c : capacity) c = rng.between(0, cap);
    return capacity;
}

}  // namespace

TEST_CASE("least entropy of 6,000 random jobs equals brute force") {
    Rng rng(1);
    int placed = 0, differ = 0;
    for (int i = 0; i < 6000; ++i) {
        const auto capacity = random_capacities(rng, 6, 9);
        const auto sum = std::accumulate(capacity.begin(), capacity.end(), std::int64_t{0});
        const auto pods = rng.between(0, std::min<std::int64_t>(sum + 2, 18));
        CAPTURE(i, capacity, pods);
        const auto found = least_entropy(capacity, pods);
        REQUIRE(found.has_value() == (pods <= sum));
        REQUIRE(entropy_greedy(capacity, pods) == transcription(capacity, pods));
        if (!found) continue;
        ++placed;
        REQUIRE(std::accumulate(found->begin(), found->end(), std::int64_t{0}) == pods);
        double least = 1e9;
        std::int64_t block = 0;  // the largest free block that a spread of least entropy leaves
        all_spreads(capacity, pods, [&](const auto& counts) {
            const double h = pods > 0 ? entropy_of(counts) : 0;
            if (h < least - 1e-9) least = h, block = 0;
            if (h < least + 1e-9) block = std::max(block, largest_block(capacity, counts));
        });
        for (std::size_t s = 0; s < capacity.size(); ++s) REQUIRE((*found)[s] <= capacity[s]);
        REQUIRE((pods > 0 ? entropy_of(*found) : 0) == Catch::Approx(least).margin(1e-9));
        REQUIRE(largest_block(capacity, *found) == block);
        const auto greedy = *entropy_greedy(capacity, pods);
        differ += pods > 0 && entropy_of(greedy) > least + 1e-9;
    }
    CHECK(placed > 4500);
    INFO("the greedy is not optimal in " << differ << " of " << placed);
    CHECK(differ > placed / 10);
}

TEST_CASE("ties of least entropy are broken by further levels: 4,000 random trees equal brute force") {
    Rng rng(2);
    int matters = 0;
    for (int i = 0; i < 4000; ++i) {
        const auto capacity = random_capacities(rng, 7, 4);
        const auto sum = std::accumulate(capacity.begin(), capacity.end(), std::int64_t{0});
        if (sum == 0) continue;
        const auto pods = rng.between(1, std::min<std::int64_t>(sum, 14));
        // A fine and a coarse partition, nested; which comes first is random.
        std::vector<std::uint32_t> fine, coarse;
        std::vector<std::uint32_t> above;
        for (int g = 0; g < 4; ++g) above.push_back(static_cast<std::uint32_t>(rng.between(0, 1)));
        for (std::size_t s = 0; s < capacity.size(); ++s) {
            fine.push_back(static_cast<std::uint32_t>(rng.between(0, 3)));
            coarse.push_back(above[fine.back()]);
        }
        std::vector<std::vector<std::uint32_t>> groups{fine};
        if (rng.chance(0.6)) groups.insert(rng.chance(0.5) ? groups.begin() : groups.end(), coarse);
        CAPTURE(i, capacity, pods, groups);
        const auto value = [&](const std::vector<std::int64_t>& counts) {
            std::vector<double> h{entropy_of(counts)};
            for (const auto& level : groups) {
                std::vector<std::int64_t> parts(4, 0);
                for (std::size_t s = 0; s < counts.size(); ++s) parts[level[s]] += counts[s];
                h.push_back(entropy_of(parts));
            }
            return h;
        };
        const auto less = [](const std::vector<double>& a, const std::vector<double>& b) {
            for (std::size_t l = 0; l < a.size(); ++l)
                if (std::abs(a[l] - b[l]) > 1e-7) return a[l] < b[l];
            return false;
        };
        std::optional<std::vector<double>> best;
        all_spreads(capacity, pods, [&](const auto& counts) {
            const auto h = value(counts);
            if (!best || less(h, *best)) best = h;
        });
        const auto found = least_entropy(capacity, pods, groups);
        REQUIRE(found);
        const auto h = value(*found);
        for (std::size_t l = 0; l < h.size(); ++l) REQUIRE(h[l] == Catch::Approx((*best)[l]).margin(1e-7));
        for (std::size_t s = 0; s < capacity.size(); ++s) REQUIRE((*found)[s] <= capacity[s]);
        matters += less(h, value(*least_entropy(capacity, pods)));
    }
    CHECK(matters > 300);
}
