// expect: Policies::acceptance is called as .accept.const ChainSet&
// An acceptance with other arguments than it is called with, by name.
#include <gpusched/consolidation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    bool operator()(const consolidation::ChainSet&) const { return true; }
#else
    bool operator()(const Cluster&, const consolidation::ChainSet&) const { return true; }
#endif
};

void use() {
    auto known = consolidation::acceptances();
    known.add<Mine>("mine");
}
