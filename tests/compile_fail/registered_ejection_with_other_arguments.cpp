// expect: Policies::ejection_rule is called as .rule.const Cluster&, TaskId, NodeId
// An ejection rule with other arguments than it is called with, by name.
#include <gpusched/consolidation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    bool operator()(const Cluster&, TaskId, NodeId, std::span<const consolidation::Victim>,
                    std::vector<consolidation::Victim>&) const {
        return false;
    }
#else
    bool operator()(const Cluster&, TaskId, NodeId) const { return false; }
#endif
};

void use() {
    auto known = consolidation::ejection_rules();
    known.add<Mine>("mine");
}
