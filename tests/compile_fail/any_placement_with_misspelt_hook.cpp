// expect: member .on_change., which nobody calls: the hook is named .changed.
// A placement policy that would never hear of changes, also behind AnyPlacement.
#include <gpusched/allocation/any.hpp>

#include <optional>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    void changed(NodeId) {}
#else
    void on_change(NodeId) {}
#endif
    std::optional<allocation::Destination> operator()(const Cluster&, TaskId, Rng&) { return {}; }
};

const allocation::AnyPlacement placement = Mine{};
