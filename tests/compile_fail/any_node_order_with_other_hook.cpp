// expect: hook .for_round. that would never be used: expected .NodeOrder for_round.const
// What is made ready for a round is of another type, also behind AnyNodeOrder.
#include <gpusched/consolidation/any.hpp>

using namespace gpusched;

struct Other {
    std::int64_t operator()(const Cluster&, NodeId) const { return 0; }
};
struct Mine : Other {
#ifdef GPUSCHED_CONTROL
    Mine for_round(const Cluster&) const { return *this; }
#else
    Other for_round(const Cluster&) const { return *this; }
#endif
};

const consolidation::AnyNodeOrder order = Mine{};
