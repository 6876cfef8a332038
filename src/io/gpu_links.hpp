// SPDX-License-Identifier: Apache-2.0
// NVLink and xGMI while a machine is read: links between GPUs, and to switches that several GPUs share.
#pragma once

#include "io/hardware_parts.hpp"

#include <map>
#include <string>
#include <utility>

namespace gpusched::io::detail {

/// Collects links, GB/s in one direction.
class GpuLinks {
  public:
    void between(int gpu, int other, double gb_s);  ///< as one end tells it; both may
    void to_switch(int gpu, const std::string& name, double gb_s);
    void switches(const std::string& a, const std::string& b);  ///< linked to each other

    /// An edge for every pair with links. Through switches two GPUs reach each other with all that the one with fewer
    /// links has: the switches do not narrow it.
    void join(HardwareParts& parts, const std::map<int, HardwareParts::Vertex>& gpus) const;

  private:
    std::map<std::pair<int, int>, std::pair<double, double>>
        direct_;  // by (lower, higher): as each end tells
    std::map<std::string, std::map<int, double>> through_;
    std::map<std::string, std::string>
        above_;  // of switches: towards the one that stands for all linked ones
    [[nodiscard]] std::string fabric(std::string name) const;
};

}  // namespace gpusched::io::detail
