// expect: member .changed., which nobody calls: what follows a cluster is a follower
// A placement policy that would never hear of changes, also behind AnyPlacement.
#include <gpusched/allocation/any.hpp>

#include <optional>

using namespace gpusched;

struct Mine {
#ifndef GPUSCHED_CONTROL
    void changed(NodeId) {}
#endif
    std::optional<allocation::Destination> operator()(const Cluster&, TaskId, Rng&) { return {}; }
};

const allocation::AnyPlacement placement = Mine{};
