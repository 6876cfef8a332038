// expect: Policies::partitioner is called as .*its operator.. is const
// A lambda that is `mutable` holds hidden state, also behind AnyPartitioner.
#include <gpusched/consolidation/any.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

#ifdef GPUSCHED_CONTROL
const con::AnyPartitioner partitioner = [](const Cluster&, std::size_t, Rng&) { return con::Partition{}; };
#else
const con::AnyPartitioner partitioner = [round = 0](const Cluster&, std::size_t, Rng&) mutable {
    return con::Partition(static_cast<std::size_t>(++round));
};
#endif
