// SPDX-License-Identifier: Apache-2.0
// The configuration of the controller in the form of its document: names instead of indices.
#pragma once

#include "control/document_forms.hpp"

#include <gpusched/json/document.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::control::detail {

inline constexpr std::string_view config_format = "gpusched.control";

/// A tenant of the host; its `client_of` and `start` are not used.
struct TenantDocument : HostTenant {
    std::optional<std::string> owner{};
    std::optional<ConfigurationDocument> starts_at{};
};
template <class F>
constexpr void visit_fields(std::type_identity<TenantDocument>, F&& field) {
    json::visit_other_fields<HostTenant>({"client_of", "start"}, field);
    field("client_of", &TenantDocument::owner);
    field("start", &TenantDocument::starts_at);
}

/// The host; its `tenants` are not used.
struct HostDocument : Host {
    std::optional<std::vector<TenantDocument>> listed{};
};
template <class F>
constexpr void visit_fields(std::type_identity<HostDocument>, F&& field) {
    json::visit_other_fields<Host>({"tenants"}, field);
    field("tenants", &HostDocument::listed);
}

/// The options; their `host` and `flags` are not used.
struct OptionsDocument : ControllerOptions {};
template <class F>
constexpr void visit_fields(std::type_identity<OptionsDocument>, F&& field) {
    json::visit_other_fields<ControllerOptions>({"host", "flags"}, field);
}

struct ConfigDocument {
    HostDocument host{};
    ControllerFlags flags{};
    OptionsDocument options{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ConfigDocument>, F&& field) {
    field("host", &ConfigDocument::host, Required{});
    field("flags", &ConfigDocument::flags);
    field("options", &ConfigDocument::options);
}

/// Reads options from a document or from a part of one.
[[nodiscard]] ControllerOptions read_config(const json::Document& document, std::uint32_t at);

/// The inverse of `read_config`. Requires valid options.
[[nodiscard]] ConfigDocument document_of(const ControllerOptions& options);

}  // namespace gpusched::control::detail
