// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/io/formats.hpp>

namespace gpusched::io {

GPUSCHED_EXPORT bool reads_xml() noexcept {
#ifdef GPUSCHED_HAS_PUGIXML
    return true;
#else
    return false;
#endif
}

}  // namespace gpusched::io
