// SPDX-License-Identifier: Apache-2.0
// Policies written outside: the library's templates are instantiated here, and call what the shared library exports.
#include "policies.hpp"
#include "user_policies.hpp"

using namespace gpusched;
using namespace user;

con::Result vacate(const Cluster& cluster) {
    con::Policies<OneGroup, FewestTasks, LastNodeFirst, AllLeave, AtMostTwoMoves, Same, HighestGpus> policies;
    policies.switches.exact_when_tiny = true;
    return con::consolidate(cluster, policies);
}
