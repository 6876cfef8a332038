// SPDX-License-Identifier: Apache-2.0
// MIG layouts in Python: a GPU model and the instances of one GPU.
#pragma once

#include "support/arguments.hpp"
#include "support/keywords.hpp"

#include <gpusched/control/mig_layout.hpp>
#include <gpusched/core/checks.hpp>

namespace gpusched::python {

using MigInstanceName = std::pair<std::string, int>;

/// A layout and its GPU model.
struct MigLayoutValue {
    const control::MigDevice* device = nullptr;
    control::MigLayout layout{};

    [[nodiscard]] int profile(const std::string& key) const {
        const int p = device->find(key);
        if (p >= 0) return p;
        std::vector<std::string_view> keys;
        for (const auto& known : device->profiles) keys.emplace_back(known.key);
        throw InvalidInput(bad_name("profile", key, keys));
    }
    [[nodiscard]] control::MigInstance instance(const std::string& key, int start) const {
        require_range("start", start, 0, device->memory_slices - 1);
        return {static_cast<std::uint8_t>(profile(key)), static_cast<std::uint8_t>(start)};
    }
    /// Reads a first memory slice.
    [[nodiscard]] int slice(const std::string& field, py::handle value) const {
        return read_within(field, value, 0, device->memory_slices - 1);
    }
    [[nodiscard]] MigInstanceName named(control::MigInstance i) const {
        return {std::string(device->profiles[i.profile].key), i.start};
    }
    [[nodiscard]] std::vector<MigInstanceName> instances() const {
        std::vector<MigInstanceName> out;
        for (const auto& i : layout.instances()) out.push_back(named(i));
        std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        return out;
    }
    [[nodiscard]] MigLayoutValue created(const std::string& key, int start) const {
        const auto i = instance(key, start);
        if (!control::can_create(*device, layout, i))
            throw InvalidInput(bad_value("start", number_text(start),
                                         "a free placement of " + gpusched::quoted(key) + " in this layout"));
        auto out = *this;
        out.layout.add(i);
        return out;
    }
    [[nodiscard]] MigLayoutValue destroyed(const std::string& key, int start) const {
        auto out = *this;
        if (!out.layout.remove(instance(key, start)))
            throw InvalidInput(bad_value("start", number_text(start),
                                         "an instance of " + gpusched::quoted(key) + " in this layout"));
        return out;
    }
};

}  // namespace gpusched::python
