// SPDX-License-Identifier: Apache-2.0
// Small clusters and gangs of two or three shapes, with the answer to "do they fit?" by trying everything.
#pragma once

#include "support/catch.hpp"

#include <gpusched/allocation/job_request.hpp>
#include <gpusched/core/rng.hpp>

namespace testing_support {

/// Empty nodes `n0`, ... under switches `s0`, `s1`, and `z` with 8 GPUs, all held by the spot task `v`.
struct MixedGang {
    gpusched::ClusterSpec spec{};
    gpusched::allocation::JobRequest job{"gang", {}};
    std::optional<gpusched::Level> required{};  ///< all pods in one domain
    bool apart = false;                         ///< at most one pod of the first shape per switch
};

inline MixedGang random_mixed_gang(gpusched::Rng& rng, bool plain) {
    using namespace gpusched;
    MixedGang x;
    for (int n = 0, count = static_cast<int>(rng.between(2, 4)); n < count; ++n) {
        NodeSpec node{.name = "n" + std::to_string(n), .gpu_count = rng.between(1, 8), .cpu_milli = 64'000};
        node.gpu_model = "A";
        node.memory_mib = 100;
        node.network = {"s" + std::to_string(rng.below(2))};
        if (!plain && rng.chance(0.5)) node.cpu_milli = rng.between(2, 9);
        if (!plain && rng.chance(0.6)) {
            Hardware hardware;
            for (int socket = 0; socket < 2; ++socket) hardware.numa_nodes.push_back({socket, 32, 0});
            for (int g = 0; g < node.gpu_count; ++g) hardware.numa_nodes[rng.below(2)].gpus |= gpu_bit(g);
            node.hardware = hardware;
        }
        x.spec.nodes.push_back(node);
    }
    NodeSpec z{.name = "z", .gpu_count = 8, .cpu_milli = 64'000};
    z.gpu_model = "A";
    z.memory_mib = 100;
    z.network = {"s0"};
    x.spec.nodes.push_back(z);
    TaskSpec v{.name = "v", .gpu_count = 8, .priority_class = PriorityClass::lp, .node = "z"};
    for (int g = 0; g < 8; ++g) v.gpus.push_back(g);
    x.spec.tasks.push_back(v);
    std::array<std::int64_t, 6> sizes{1, 2, 3, 4, 5, 6};
    if (rng.chance(0.4)) x.required = static_cast<Level>(rng.between(-1, 0));
    for (std::size_t s = 0, shapes = static_cast<std::size_t>(rng.between(2, 3)); s < shapes; ++s) {
        std::swap(sizes[s], sizes[s + rng.below(sizes.size() - s)]);
        allocation::PodRequest group{.count = rng.between(1, plain ? 3 : 2)};
        group.pod.gpu_count = sizes[s];
        group.pod.priority = 5;
        group.pod.priority_class = PriorityClass::hp;
        if (!plain) {
            group.pod.cpu_milli = rng.between(0, 3);
            if (sizes[s] == 1 && rng.chance(0.5)) group.pod.gpu_share_milli = 500;
            if (sizes[s] > 1 && rng.chance(0.3))
                group.pod.hardware_affinity = {{HardwareLevel::socket, HardwareQos::guaranteed}};
        }
        if (x.required) group.pod.network_affinity = NetworkAffinity{*x.required, NetworkMode::required};
        x.job.pods.push_back(group);
    }
    if (!plain && !x.required && rng.chance(0.2)) {
        x.apart = true;
        x.job.pods[0].pod.anti_affinity = {{"apart", 0, 1}};
    }
    return x;
}

/// Every way to put every pod on every node and its sockets.
class EveryPlacement {
  public:
    explicit EveryPlacement(const MixedGang& x) : x_(x) {
        for (const auto& node : x.spec.nodes) {
            if (node.name == "z") continue;
            Node n{.cpu = node.cpu_milli, .known = node.hardware.has_value(), .under = node.network[0]};
            for (int g = 0; g < node.gpu_count; ++g)
                ++n.whole[node.hardware && (node.hardware->numa_nodes[1].gpus >> g & 1) != 0 ? 1 : 0];
            nodes_.push_back(n);
        }
        for (std::size_t s = 0; s < x.job.pods.size(); ++s)
            for (int i = 0; i < x.job.pods[s].count; ++i) shape_.push_back(s);
    }
    [[nodiscard]] bool any() { return from(0); }

  private:
    struct Node {
        std::int64_t cpu = 0;
        bool known = false;
        std::string under{};
        std::array<std::int64_t, 2> whole{0, 0}, half{0, 0};  // GPUs free, and half of them taken, per socket
    };

    bool allowed(std::size_t pod, std::size_t n) const {
        for (std::size_t p = 0; p < pod; ++p) {
            const bool same_switch = nodes_[at_[p]].under == nodes_[n].under;
            if (x_.required && (*x_.required == gpusched::node_level ? at_[p] != n : !same_switch))
                return false;
            if (x_.apart && shape_[p] == 0 && shape_[pod] == 0 && same_switch) return false;
        }
        return true;
    }
    bool next(std::size_t pod, std::size_t n) {
        at_.push_back(n);
        const bool good = from(pod + 1);
        at_.pop_back();
        return good;
    }
    bool from(std::size_t pod) {
        if (pod == shape_.size()) return true;
        const auto& ask = x_.job.pods[shape_[pod]].pod;
        const bool again =
            pod > 0 && shape_[pod - 1] == shape_[pod];  // pods alike: in the order of the nodes
        for (std::size_t n = again ? at_.back() : 0; n < nodes_.size(); ++n) {
            auto& node = nodes_[n];
            if (node.cpu < ask.cpu_milli || !allowed(pod, n)) continue;
            const auto before = node;
            node.cpu -= ask.cpu_milli;
            const auto rest = node;
            bool good = false;
            if (ask.gpu_share_milli == 500) {
                for (std::size_t socket = 0; socket < 2 && !good; ++socket) {
                    if (rest.half[socket] > 0) {
                        node = rest;
                        --node.half[socket];
                        good = next(pod, n);
                    }
                    if (rest.whole[socket] > 0 && !good) {
                        node = rest;
                        --node.whole[socket];
                        ++node.half[socket];
                        good = next(pod, n);
                    }
                }
            } else {
                const bool near = !ask.hardware_affinity.empty();
                for (std::int64_t first = 0; first <= ask.gpu_count && !good; ++first) {
                    const auto second = ask.gpu_count - first;
                    if (near && ((first > 0 && second > 0) || !node.known)) continue;
                    node = rest;
                    node.whole[0] -= first;
                    node.whole[1] -= second;
                    good = node.whole[0] >= 0 && node.whole[1] >= 0 && next(pod, n);
                }
            }
            nodes_[n] = before;
            if (good) return true;
        }
        return false;
    }

    const MixedGang& x_;
    std::vector<Node> nodes_;
    std::vector<std::size_t> shape_;  // [pod]
    std::vector<std::size_t> at_;     // nodes of the pods so far
};

}  // namespace testing_support
