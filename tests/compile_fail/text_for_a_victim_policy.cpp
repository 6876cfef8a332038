// expect: a victim policy is not given as text; preemption::victim_policies...make.name. makes one
// As Python names policies; here the registry makes them.
#include <gpusched/preemption/named.hpp>
#include <gpusched/preemption/preempt.hpp>

using namespace gpusched;

preemption::Result use(const Cluster& cluster, TaskId task) {
#ifdef GPUSCHED_CONTROL
    return preemption::preempt(cluster, task, {.policy = preemption::victim_policies().make("imp")});
#else
    return preemption::preempt(cluster, task, {.policy = "imp"});
#endif
}
