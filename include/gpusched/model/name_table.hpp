// NameTable: interned names, dense ids by name and names by id.
#pragma once

#include <gpusched/config.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE {

/// Names in id order with look-up by name: a hash table with linear probing, whose slots hold ids and hashes, so that few names are
/// read. An id without a name has the empty text.
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
    struct Slot {
        std::uint32_t id = empty, hash = 0;
    };
    [[nodiscard]] std::size_t home(std::uint32_t hash) const noexcept { return hash & (slots_.size() - 1); }
    [[nodiscard]] std::size_t find_slot(std::string_view name, std::uint32_t hash) const noexcept;
    static constexpr std::uint32_t empty = 0xFFFFFFFFu;
    std::vector<std::string> names_;
    std::vector<Slot> slots_;  // a power of two of them, at most four fifths taken
};

}  // namespace GPUSCHED_NAMESPACE

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/model/impl/name_table.ipp>
#endif
