// expect: its operator.. is const
// A filter holds no hidden state, also behind AnyFilter.
#include <gpusched/allocation/any.hpp>

using namespace gpusched;

struct Mine {
    int asked = 0;
#ifdef GPUSCHED_CONTROL
    bool operator()(const Cluster&, TaskId, NodeId) const { return asked < 9; }
#else
    bool operator()(const Cluster&, TaskId, NodeId) { return ++asked < 9; }
#endif
};

const allocation::AnyFilter filter = Mine{};
