// Whether this build can read XML.
#pragma once

#include <gpusched/config.hpp>

namespace GPUSCHED_NAMESPACE::io {

/// Whether the library was built with pugixml. Without it, the readers of XML throw BackendError.
[[nodiscard]] bool reads_xml() noexcept;

}  // namespace GPUSCHED_NAMESPACE::io

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/io/impl/formats.ipp>
#endif
