// SPDX-License-Identifier: Apache-2.0
#include "support/real_data.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;
using io::HardwareFormat;

TEST_CASE("the format of a machine is recognised from its text", "[io]") {
    CHECK(io::hardware_format("") == std::nullopt);
    CHECK(io::hardware_format("# nothing\n") == std::nullopt);
    CHECK(io::hardware_format("<html/>") == std::nullopt);
    CHECK(io::hardware_format("\n <system version=\"1\"/>") == HardwareFormat::nccl);
    CHECK(io::hardware_format(
              "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc.dtd\">\n<topology>") ==
          HardwareFormat::hwloc);
    CHECK(io::hardware_format("{\"kind\": \"FlexTopo\"}") == HardwareFormat::flextopo);
    CHECK(io::hardware_format("\tGPU0\nGPU0\tX\n") == HardwareFormat::nvidia_smi);
    CHECK(io::hardware_from_text("\tGPU0\nGPU0\tX\n").graph.masks().healthy == 0b1);
    CHECK_THROWS_WITH(io::hardware_from_text("what", {}, "t"), Mentions("t expected machine"));
    for (const auto& [folder, extension, format] :
         {std::tuple("nvidia-smi-topo", ".txt", HardwareFormat::nvidia_smi),
          {"nccl-topo", ".xml", HardwareFormat::nccl},
          {"hwloc", ".xml", HardwareFormat::hwloc},
          {"flux/hwloc", ".xml", HardwareFormat::hwloc},
          {"mpibind", ".xml", HardwareFormat::hwloc},
          {"flextopo", ".yaml", HardwareFormat::flextopo}})
        for (const auto& file : testing_support::real_files(folder, extension)) {
            INFO(file.string());
            CHECK(io::hardware_format(read_file(file.string())) == format);
        }
}
