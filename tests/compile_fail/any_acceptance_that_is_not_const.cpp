// expect: Policies::acceptance is called as .*its operator.. is const
// Policies are called from several threads: one that changes itself would be a data race, also behind AnyAcceptance.
#include <gpusched/consolidation/any.hpp>

using namespace gpusched;

struct Mine {
    int asked = 0;
#ifdef GPUSCHED_CONTROL
    bool operator()(const consolidation::ChainSet&) const { return asked < 9; }
#else
    bool operator()(const consolidation::ChainSet&) { return ++asked < 9; }
#endif
};

const consolidation::AnyAcceptance acceptance = Mine{};
