// SPDX-License-Identifier: Apache-2.0
// GPU types that can be rented, with what their data sheets say.
#pragma once

#include <gpusched/core/fields.hpp>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

namespace detail {
// What "> 0" and "finite" are as ranges.
inline constexpr double smallest_positive = std::numeric_limits<double>::min();
inline constexpr double largest_finite = std::numeric_limits<double>::max();
}  // namespace detail

/// One GPU type and the machines it comes in. All rates are peaks; the estimator derates them.
struct GpuType {
    std::string name{};         ///< unique, not empty
    double tflops = 0;          ///< dense 16-bit tensor peak, TFLOPS, > 0
    double bandwidth_gb_s = 0;  ///< memory, 10^9 B/s, > 0
    double memory_gb = 0;       ///< 10^9 B, > 0
    double link_gb_s =
        0;  ///< to the other GPUs of its machine, 10^9 B/s and direction; 0 = none, no TP above 1
    double network_gb_s = 0;  ///< to other machines, 10^9 B/s per GPU pair; 0 = none, no stage elsewhere
    int per_machine = 1;      ///< GPUs in a machine, >= 1: the largest tensor-parallel degree
    std::optional<double> price{};  ///< $/h, >= 0; absent where no source names one
    std::string source{};           ///< where the numbers come from
    bool operator==(const GpuType&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<GpuType>, F&& field) {
    field("name", &GpuType::name);
    field("tflops", &GpuType::tflops, within(detail::smallest_positive, detail::largest_finite));
    field("bandwidth_gb_s", &GpuType::bandwidth_gb_s,
          within(detail::smallest_positive, detail::largest_finite));
    field("memory_gb", &GpuType::memory_gb, within(detail::smallest_positive, detail::largest_finite));
    field("link_gb_s", &GpuType::link_gb_s, within(0.0, detail::largest_finite));
    field("network_gb_s", &GpuType::network_gb_s, within(0.0, detail::largest_finite));
    field("per_machine", &GpuType::per_machine, at_least(1));
    field("price", &GpuType::price, within(0.0, detail::largest_finite));
    field("source", &GpuType::source);
}

/// @throws InvalidInput with every name that is empty or appears twice and every number out of range
void validate(const std::vector<GpuType>& gpus);

/// Table 1 of arXiv 2502.00722 as printed, in its order: A6000, A40, L40, A100, H100, 4090. Links (NVLink 300, PCIe 60 GB/s,
/// Ethernet 5 Gb/s) are those of its section 5.1; eight GPUs in a machine are an assumption.
///
/// The printed FLOPS mix kinds: those of H100 count sparsity (dense: 989), those of A6000 and 4090 are not the tensor cores'.
/// The bandwidth of A6000 (960 GB/s; elsewhere 768) and A100 (1555 GB/s, that of the 40 GB part) differ from other sources.
/// Estimates want `paper_gpus_dense`.
[[nodiscard]] std::vector<GpuType> paper_gpus();

/// The same types, prices and links with the dense tensor peaks and bandwidths of `gpu_catalogue`.
[[nodiscard]] std::vector<GpuType> paper_gpus_dense();

/// GPU types with dense peaks, without prices: V100 to B200, workstation and consumer cards, MI300X. `source` says where peak,
/// bandwidth, memory and link come from. Network speeds and GPUs per machine are those of common machines, not of the part.
[[nodiscard]] std::vector<GpuType> gpu_catalogue();

/// The type of this name in `gpu_catalogue`. @throws InvalidInput for a name that is not there
[[nodiscard]] GpuType gpu_type(std::string_view name);

/// The type of this name in `gpu_catalogue`, or else in `paper_gpus_dense`; none where neither has it.
[[nodiscard]] std::optional<GpuType> find_gpu_type(std::string_view name);

}  // namespace gpusched::serving
