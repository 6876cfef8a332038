// SPDX-License-Identifier: Apache-2.0
// A small valid snapshot to take something away from, and what is wrong with a snapshot.
#pragma once

#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

namespace testing_support {

using namespace gpusched;

inline ClusterSpec valid() {
    ClusterSpec spec;
    for (const char* name : {"n0", "n1"}) {
        NodeSpec n{.name = name,
                   .gpu_model = "A",
                   .gpu_count = 8,
                   .cpu_milli = 64'000,
                   .memory_mib = 1'000,
                   .network = {"root", std::string("rack of ") + name}};
        spec.nodes.push_back(n);
    }
    TaskSpec t{
        .name = "t0", .cpu_milli = 1'000, .memory_mib = 100, .gpu_count = 2, .node = "n0", .gpus = {0, 1}};
    spec.tasks.push_back(t);
    t.name = "t1";
    t.gpu_count = 1;
    t.gpu_share_milli = 500;
    t.gpus = {2};
    t.job = "j";
    spec.tasks.push_back(t);
    spec.jobs.push_back({"j", 1, 1});
    return spec;
}

inline std::vector<std::string> problems_of(const ClusterSpec& spec) {
    return testing_support::problems_in<InvalidInput>([&] { (void)Cluster::build(spec); });
}

}  // namespace testing_support
