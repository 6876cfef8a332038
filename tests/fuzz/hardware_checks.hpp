// SPDX-License-Identifier: Apache-2.0
// What must hold for every machine that a reader gives.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/io/hardware_files.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace fuzzing {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

inline void check_machine(const gpusched::topology::HardwareGraph& graph) {
    using namespace gpusched;
    GpuMask gpus = 0;
    for (const auto v : graph.vertices())
        if (graph.vertex(v).kind == topology::HardwareKind::gpu)
            gpus = static_cast<GpuMask>(gpus | gpu_bit(graph.vertex(v).id));
    const auto& masks = graph.masks();
    if ((masks.healthy & ~gpus) != 0 || (masks.free & ~masks.healthy) != 0) std::abort();
    GpuMask placed = 0;
    for (const auto mask : masks.numa) {
        if ((mask & placed) != 0) std::abort();  // near two NUMA nodes
        placed = static_cast<GpuMask>(placed | mask);
    }
    for (const auto mask : masks.socket)
        if ((mask & ~placed) != 0) std::abort();
    for_each_gpu(gpus, [&](int a) {
        for_each_gpu(gpus, [&](int b) {
            if (graph.distance(a, b) != graph.distance(b, a)) std::abort();
            if ((graph.bandwidth(a, b) > 0) != graph.distance(a, b).has_value()) std::abort();
        });
    });
    const auto count = gpu_count(masks.free);
    if (graph.best_gpus(count) != masks.free) std::abort();
    try {
        if (graph.hardware().gpus() != gpus) std::abort();
    } catch (const InvalidInput&) {  // a GPU near no NUMA node
    }
}

/// Calls a reader and checks what it gives.
template <class Read>
int machine_or_problems(Read&& read) {
    try {
        const auto reading = read();
        check_machine(reading.graph);
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
    } catch (const gpusched::BackendError&) {  // a build without the parser
    }
    return 0;
}

}  // namespace fuzzing
