// expect: bool visit_full
// A ranking of destinations also offers nodes that are full now, also behind AnyDestinationRanking.
#include <gpusched/consolidation/any.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

struct Mine {
    template <class Offer>
    bool visit(const Cluster&, const con::FreeIndex&, TaskId, Offer&&) const {
        return false;
    }
#ifdef GPUSCHED_CONTROL
    template <class Offer>
    bool visit_full(const Cluster&, const con::FreeIndex&, TaskId, Offer&&) const {
        return false;
    }
#endif
};

const con::AnyDestinationRanking destinations = Mine{};
