#include <gpusched/control/impl/placement_score.ipp>
