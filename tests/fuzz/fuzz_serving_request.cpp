// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a serving request, which survives writing and reading, or an InvalidInput; and so are replicas of a plan.
#include <gpusched/core/errors.hpp>
#include <gpusched/serving/plan_json.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace serving = gpusched::serving;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    serving::ServingRequest request;
    try {
        request = serving::request_from_json(text);
        if (serving::request_from_json(serving::request_to_json(request)) != request) std::abort();
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
    }
    try {
        static_cast<void>(serving::request_from_json(text, "text", {.all = 1}));
    } catch (const gpusched::InvalidInput&) {
    }
    try {
        for (const auto& replicas : serving::replicas_from_json(text, request))
            for (const auto& stage : replicas.deployment.stages)
                if (stage.gpu < 0 || static_cast<std::size_t>(stage.gpu) >= request.gpus.size()) std::abort();
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
    }
    return 0;
}
