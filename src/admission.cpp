// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of admission/: every file of include/gpusched/admission/impl.
#include <gpusched/admission/impl/admit.ipp>
#include <gpusched/admission/impl/covers.ipp>
#include <gpusched/admission/impl/node_bounds.ipp>
#include <gpusched/admission/impl/options.ipp>
#include <gpusched/admission/impl/pod_bounds.ipp>
#include <gpusched/admission/impl/prices.ipp>
#include <gpusched/admission/impl/quotas.ipp>
#include <gpusched/admission/impl/search.ipp>
#include <gpusched/admission/impl/search_state.ipp>
#include <gpusched/admission/impl/way.ipp>
