#pragma once

#include <gpusched/io/formats.hpp>

namespace GPUSCHED_NAMESPACE::io {

GPUSCHED_INLINE bool reads_xml() noexcept {
#ifdef GPUSCHED_HAS_PUGIXML
    return true;
#else
    return false;
#endif
}

}  // namespace GPUSCHED_NAMESPACE::io
