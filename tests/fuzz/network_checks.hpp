// SPDX-License-Identifier: Apache-2.0
// What must hold for every network that a reader gives.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/io/network_files.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

namespace fuzzing {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

inline void check_network(const gpusched::io::NetworkReading& reading) {
    using namespace gpusched;
    std::set<std::string_view> names;
    for (const auto& node : reading.nodes)
        if (node.name.empty() || !names.insert(node.name).second) std::abort();
    const auto tree = io::network_tree(reading);
    for (std::size_t n = 0; n < reading.nodes.size(); ++n) {
        auto v = tree.parent(tree.vertex(make_id<NodeId>(n)));
        const auto& path = reading.nodes[n].network;
        for (auto domain = path.rbegin(); domain != path.rend(); ++domain) {
            if (tree.name(v) != *domain) std::abort();
            v = tree.parent(v);
        }
        if (v != topology::NetworkTree::root()) std::abort();
    }
}

/// Calls a reader and checks what it gives.
template <class Read>
int network_or_problems(Read&& read) {
    try {
        check_network(read());
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
    } catch (const gpusched::BackendError&) {  // a build without the parser
    }
    return 0;
}

}  // namespace fuzzing
