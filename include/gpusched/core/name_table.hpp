// SPDX-License-Identifier: Apache-2.0
// NameTable: interned names, dense ids by name and names by id.
#pragma once

#include <gpusched/core/detail/hash_index.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched {

/// Names in id order with look-up by name. An id without a name has the empty text.
class NameTable {
  public:
    /// The id of `name`, adding it if new; `second` tells whether it was new.
    std::pair<std::uint32_t, bool> intern(std::string_view name);
    /// Takes the id's name away; nothing finds it any more.
    void erase(std::size_t id);
    /// Names an id that has no name. No other id may have that name.
    void assign(std::size_t id, std::string_view name);
    [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
    [[nodiscard]] const std::string& operator[](std::size_t i) const noexcept { return names_[i]; }
    [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }

  private:
    [[nodiscard]] std::uint32_t find(std::string_view name, std::uint32_t hash) const;
    std::vector<std::string> names_;
    detail::HashIndex ids_;
};

}  // namespace gpusched
