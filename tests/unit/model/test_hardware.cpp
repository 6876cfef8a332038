// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

TEST_CASE("hardware presets place GPUs and cores as their machines do") {
    struct Row {
        const char* name;
        int sockets, numa_nodes, cores;
    };
    for (const auto& row : {Row{"rtx4090x8", 2, 8, 64}, Row{"a100x8", 2, 2, 128}, Row{"h100x8", 2, 2, 112}}) {
        const auto hardware = hardware_preset(row.name);
        REQUIRE(hardware);
        REQUIRE(hardware->preset == row.name);
        REQUIRE(hardware->numa_nodes.size() == static_cast<std::size_t>(row.numa_nodes));
        REQUIRE(hardware->cores() == row.cores);
        REQUIRE(hardware->gpus() == 0xFF);
        REQUIRE(hardware->socket_gpus() == std::vector<GpuMask>{0x0F, 0xF0});
        for (int g = 0; g < 8; ++g) {
            const auto numa = static_cast<std::size_t>(row.numa_nodes == 8 ? g : g / 4);
            REQUIRE((hardware->numa_nodes[numa].gpus & gpu_bit(g)) != 0);
            REQUIRE(hardware->numa_nodes[numa].socket == g / 4);
            REQUIRE(hardware->numa_nodes[numa].cores == row.cores / row.numa_nodes);
        }
    }
    for (const auto name : hardware_preset_names()) REQUIRE(hardware_preset(name));
    REQUIRE(hardware_preset_names().size() == 3);
    REQUIRE_FALSE(hardware_preset("dgx"));
    REQUIRE_FALSE(hardware_preset(""));
}

TEST_CASE("sockets without NUMA nodes hold no GPUs") {
    const Hardware hardware{"", {{2, 4, 0b01}, {0, 8, 0b10}, {2, 1, 0b1100}}};
    REQUIRE(hardware.cores() == 13);
    REQUIRE(hardware.socket_gpus() == std::vector<GpuMask>{0b10, 0, 0b1101});
}
