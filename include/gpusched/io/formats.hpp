// Which formats this build can read.
#pragma once

#include <gpusched/config.hpp>

namespace GPUSCHED_NAMESPACE::io {

/// Whether the library was built with pugixml. Without it, the readers of XML throw BackendError.
[[nodiscard]] bool reads_xml() noexcept;

/// Whether the library was built with libyaml. Without it, readers of YAML or JSON read JSON only and throw
/// BackendError for anything else.
[[nodiscard]] bool reads_yaml() noexcept;

}  // namespace GPUSCHED_NAMESPACE::io

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/io/impl/formats.ipp>
#endif
