// expect: member .skip_victims., which nobody calls: the hook is named .may_skip_victims.
// A constant of an ejection rule that nobody would read, also behind AnyEjectionRule.
#include <gpusched/consolidation/any.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

struct Mine {
#ifdef GPUSCHED_CONTROL
    static constexpr bool may_skip_victims = true;
#else
    static constexpr bool skip_victims = true;
#endif
    bool operator()(const Cluster&, TaskId, NodeId, std::span<const con::Victim>,
                    std::vector<con::Victim>&) const {
        return false;
    }
};

const con::AnyEjectionRule ejection = Mine{};
