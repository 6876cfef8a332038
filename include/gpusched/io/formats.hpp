// SPDX-License-Identifier: Apache-2.0
// Whether this build can read XML.
#pragma once

namespace gpusched::io {

/// Whether the library was built with pugixml. Without it, the readers of XML throw BackendError.
[[nodiscard]] bool reads_xml() noexcept;

}  // namespace gpusched::io
