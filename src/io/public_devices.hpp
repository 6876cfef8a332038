// SPDX-License-Identifier: Apache-2.0
// Names of classes of devices that vendors gave, and that therefore do not tell whose a cluster is.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace gpusched::io::detail {

/// Takes digits off the front; false where there is none.
constexpr bool take_digits(std::string_view& text) noexcept {
    const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(end);
    return end > 0;
}

constexpr bool take_prefix(std::string_view& text, std::string_view prefix) noexcept {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

/// A profile of a MIG instance such as `1g.10gb` or `1g.10gb+me`, with at most three digits to a number: longer ones are nobody's.
constexpr bool is_mig_profile(std::string_view text) noexcept {
    constexpr std::array<std::string_view, 11> extensions{
        "", "+me", ".me", "-me", "+me.all", ".me.all", "+gfx", ".gfx", "+me.gfx", "-gfx", "-me.all"};
    const auto whole = text.size();
    if (!take_digits(text) || whole - text.size() > 1 || !take_prefix(text, "g.")) return false;
    const auto before = text.size();
    if (!take_digits(text) || before - text.size() > 3 || !take_prefix(text, "gb")) return false;
    return std::find(extensions.begin(), extensions.end(), text) != extensions.end();
}

/// A compute and a memory partition of AMD such as `cpx_nps4`.
constexpr bool is_amd_partition(std::string_view text) noexcept {
    constexpr std::array<std::string_view, 5> compute{"spx", "dpx", "tpx", "qpx", "cpx"};
    if (text.size() != std::string_view("cpx_nps4").size()) return false;
    return std::find(compute.begin(), compute.end(), text.substr(0, 3)) != compute.end() &&
           text.substr(3, 4) == "_nps" && std::string_view("1248").find(text[7]) != text.npos;
}

/// Whether a class has one of the names that devices of its kind have in every cluster: MIG profiles, alone, as Slurm's type or
/// as a resource of Kubernetes, partitions of AMD, and whole or shared cards of `nvidia.com/gpu`.
constexpr bool is_public_device_class(std::string_view name) noexcept {
    if (take_prefix(name, "nvidia.com/gpu")) {
        if (take_prefix(name, " (MIG "))
            return name.ends_with(')') && is_mig_profile(name.substr(0, name.size() - 1));
        return name.empty() || name == ".shared" || name == " (shared)";
    }
    if (take_prefix(name, "amd.com/")) return is_amd_partition(name);
    if (take_prefix(name, "nvidia.com/mig-")) {
        if (name.ends_with(".shared")) name.remove_suffix(std::string_view(".shared").size());
    } else {
        take_prefix(name, "gpu:");
    }
    return is_mig_profile(name);
}

}  // namespace gpusched::io::detail
