// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of verify/: every file of include/gpusched/verify/impl.
#include <gpusched/verify/impl/plan.ipp>
