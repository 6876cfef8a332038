#include <gpusched/io/impl/kubernetes_steps.ipp>
