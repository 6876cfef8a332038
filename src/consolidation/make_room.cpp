#include <gpusched/consolidation/impl/make_room.ipp>
