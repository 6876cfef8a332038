// Results of the admission of tenants for Python, with keys of profiles.
#pragma once

#include "support/records.hpp"

#include <gpusched/control/tenant_admission.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace gpusched::python {

/// A placement with the key of its profile.
struct NamedPlace {
    std::int32_t gpu = 0;    ///< Index of the GPU.
    std::string profile;     ///< Key of the instance's profile.
    std::int32_t slice = 0;  ///< First memory slice of the instance.
    double score = 0;        ///< Score; lower is better.
    /// Highest predicted p99 / target of the protected tenants and the new tenant.
    double worst_ratio = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedPlace>, F&& field) {
    field("gpu", &NamedPlace::gpu);
    field("profile", &NamedPlace::profile);
    field("slice", &NamedPlace::slice);
    field("score", &NamedPlace::score);
    field("worst_ratio", &NamedPlace::worst_ratio);
}
struct NamedAnswer {
    control::AdmissionVerdict verdict{};  ///< State of the new tenant.
    control::Newcomer newcomer{};         ///< Name of the new tenant.
    std::optional<NamedPlace> place{};    ///< Placement; None if it was not admitted.
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedAnswer>, F&& field) {
    field("verdict", &NamedAnswer::verdict);
    field("newcomer", &NamedAnswer::newcomer);
    field("place", &NamedAnswer::place);
}

std::optional<NamedPlace> named(const control::Host& host,
                                const std::optional<control::AdmissionPlace>& place);
NamedAnswer named(const control::Host& host, const control::AdmissionAnswer& answer);

}  // namespace gpusched::python
