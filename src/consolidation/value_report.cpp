#include <gpusched/consolidation/impl/value_report.ipp>
