#include <gpusched/serving/impl/sweep_budgets.ipp>
