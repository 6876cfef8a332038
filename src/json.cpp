// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of json/: every file of include/gpusched/json/impl.
#include <gpusched/json/impl/document.ipp>
#include <gpusched/json/impl/writer.ipp>
#include <gpusched/json/impl/yaml.ipp>
