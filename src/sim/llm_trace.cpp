#include <gpusched/sim/impl/llm_trace.ipp>
