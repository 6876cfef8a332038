// SPDX-License-Identifier: Apache-2.0
// The lists of the openb trace, and the command-line options that choose them.
#pragma once

#include "../support/command_line.hpp"
#include "../support/data.hpp"

#include <gpusched/io/openb.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace gpusched::bench {

struct OpenbData {
    std::string data = data_path("alibaba-gpu-v2023");
    int seeds = 10;
    std::vector<std::string> lists{"default", "cpu250", "gpushare100", "multigpu50"};
    std::string json{};

    void options(CommandLine& line) {
        if (line.smoke()) lists = {"default"};
        line.option("--data", data, "folder with openb_node_list_all_node.csv and openb_pod_list_*.csv");
        line.option("--seeds", seeds, "how many seeds")->check(at_least(1));
        line.option("--list", lists, "lists of pods");
        line.option("--json", json, "file for one line per run");
    }
    /// Ends the program if the data is missing: with status 3, or 0 after --smoke.
    void require(bool smoke) const {
        if (std::filesystem::exists(nodes())) return;
        std::fprintf(stderr, "no data: %s is missing; set GPUSCHED_DATA or --data\n", nodes().c_str());
        std::exit(smoke ? 0 : 3);
    }
    [[nodiscard]] std::string nodes() const { return data + "/openb_node_list_all_node.csv"; }
    [[nodiscard]] Trace read(const std::string& list) const {
        return io::read_openb(nodes(), data + "/openb_pod_list_" + list + ".csv");
    }
};

inline double capacity_milli(const Trace& trace) {
    double sum = 0;
    for (const auto& node : trace.nodes) sum += 1000 * static_cast<double>(node.gpu_count);
    return sum;
}

}  // namespace gpusched::bench
