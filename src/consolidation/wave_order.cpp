#include <gpusched/consolidation/impl/wave_order.ipp>
