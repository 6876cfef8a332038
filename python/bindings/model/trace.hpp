// What Python holds of a trace: an unchanging one, shared by all that refer to it.
#pragma once

#include "core/bindings.hpp"

#include <gpusched/model/trace.hpp>

#include <memory>

namespace gpusched::python {

using TracePtr = std::shared_ptr<Trace>;

}  // namespace gpusched::python
