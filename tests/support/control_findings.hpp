// SPDX-License-Identifier: Apache-2.0
// What is seen against the invariants of the controller, and what the host knows of a tenant.
#pragma once

#include "support/catch.hpp"

#include <gpusched/control/state.hpp>

namespace gpusched::test {

using namespace control;

struct Findings {
    std::array<std::string, 21> first{};       ///< what was seen first against I<n>
    std::array<std::int64_t, 21> occasions{};  ///< how often it could have been broken
    std::int64_t steps = 0;
    std::map<ActionKind, std::int64_t> kinds{};  ///< of the actions
    std::set<std::pair<Phase, Phase>> edges{};   ///< of the events
    std::set<int> rows{};                        ///< of the events, in the transition table

    void look(int n, bool holds, int round, std::int64_t window, const char* what) {
        const auto k = static_cast<std::size_t>(n);
        ++occasions[k];
        if (!holds && first[k].empty())
            first[k] = std::string(what) + " in round " + std::to_string(round) + ", window " +
                       std::to_string(window);
    }
};

/// A tenant as the host has it: what the controller asked for, carried out, in seconds of a clock that the controller
/// does not see.
struct Observed {
    double last_structural_s = -1;
    std::set<std::tuple<int, int, int>> entered{};        ///< of the episode
    std::vector<std::pair<Action, double>> undone{};      ///< rollbacks, and when
    std::vector<std::pair<double, double>> structural{};  ///< when, and the pause
    Phase phase = Phase::observe;                         ///< of the last line
    std::int64_t high = 0;                                ///< windows above in this stay in SUSPECT
    bool told = false;                                    ///< a line said why nothing was done
};

/// Whether a tenant is left as much of a GPU as before: SMs, memory, and no more of them for its client.
inline bool no_less(const MigDevice& device, const Configuration& now, const Configuration& before) {
    const auto &a = device.profiles[now.instance.profile], &b = device.profiles[before.instance.profile];
    return a.sm_count >= b.sm_count && a.memory_mib >= b.memory_mib &&
           now.quota_percent <= before.quota_percent;
}
inline bool structural(const Action& a) { return a.kind == ActionKind::reconfigure; }
inline bool escalates(const Action& a) {
    return a.lever == Lever::throttle || a.lever == Lever::quota || a.lever == Lever::pin ||
           a.lever == Lever::move || a.lever == Lever::enlarge;
}

}  // namespace gpusched::test
