// SPDX-License-Identifier: Apache-2.0
#include "io/gpu_links.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace gpusched::io::detail {

void GpuLinks::between(int gpu, int other, double gb_s) {
    if (gpu < other)
        direct_[{gpu, other}].first += gb_s;
    else
        direct_[{other, gpu}].second += gb_s;
}

void GpuLinks::to_switch(int gpu, const std::string& name, double gb_s) { through_[name][gpu] += gb_s; }

std::string GpuLinks::fabric(std::string name) const {
    for (auto found = above_.find(name); found != above_.end(); found = above_.find(name))
        name = found->second;
    return name;
}

void GpuLinks::switches(const std::string& a, const std::string& b) {
    const auto one = fabric(a), other = fabric(b);
    if (one != other) above_[std::max(one, other)] = std::min(one, other);
}

void GpuLinks::join(HardwareParts& parts, const std::map<int, HardwareParts::Vertex>& gpus) const {
    std::map<std::pair<int, int>, double> total;
    for (const auto& [pair, ends] : direct_) {
        // One end may be silent; where both speak, what both say is sure.
        const auto& [low, high] = ends;
        total[pair] += low > 0 && high > 0 ? std::min(low, high) : std::max(low, high);
    }
    // Switches that share a GPU are one fabric, too.
    GpuLinks joined(*this);
    std::map<int, std::string> first;
    for (const auto& [name, ends] : through_)
        for (const auto& [gpu, gb_s] : ends)
            if (const auto [other, added] = first.emplace(gpu, name); !added)
                joined.switches(other->second, name);
    std::map<std::string, std::map<int, double>> fabrics;
    for (const auto& [name, ends] : through_)
        for (const auto& [gpu, gb_s] : ends) fabrics[joined.fabric(name)][gpu] += gb_s;
    for (const auto& [name, ends] : fabrics)
        for (auto a = ends.begin(); a != ends.end(); ++a)
            for (auto b = std::next(a); b != ends.end(); ++b)
                total[{a->first, b->first}] += std::min(a->second, b->second);
    for (const auto& [pair, gb_s] : total)
        if (gb_s > 0)
            parts.join(gpus.at(pair.first), gpus.at(pair.second), topology::HardwareRelation::nvlink, gb_s);
}

}  // namespace gpusched::io::detail
