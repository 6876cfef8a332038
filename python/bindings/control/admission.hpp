// Answers of the admission of tenants, as Python has them: with keys of profiles.
#pragma once

#include "support/records.hpp"

#include <gpusched/control/tenant_admission.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace gpusched::python {

/// A place with the profile's key.
struct NamedPlace {
    std::int32_t gpu = 0;    ///< Index of the GPU.
    std::string profile;     ///< Key of the instance.
    std::int32_t slice = 0;  ///< Its first memory slice.
    double score = 0;        ///< The scorer's; lower is better.
    /// The highest predicted p99 / target, of protected tenants and of the newcomer.
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
    control::AdmissionVerdict verdict{};  ///< What became of the newcomer.
    control::Newcomer newcomer{};         ///< Who asked.
    std::optional<NamedPlace> place{};    ///< Where it is to go; None where it was not admitted.
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
