// SPDX-License-Identifier: Apache-2.0
#include <gpusched/admission/options.hpp>
#include <gpusched/admission/quotas.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

namespace gpusched::admission {

GPUSCHED_EXPORT void validate(const Options& options, const Cluster& cluster) {
    Problems problems;
    check_fields(problems, options);
    for (const auto node : options.exempt)
        if (!cluster.contains(node))
            problems.add(bad_value("exempt", "#" + number_text(index(node)),
                                   "nodes of the cluster's " + number_text(cluster.node_slots())));
    for (const auto task : options.spare)
        if (!cluster.contains(task))
            problems.add(bad_value("spare", "#" + number_text(index(task)),
                                   "tasks of the cluster's " + number_text(cluster.task_slots())));
    detail::check_quotas(problems, options.quotas);
    problems.throw_if_any();
}

}  // namespace gpusched::admission
