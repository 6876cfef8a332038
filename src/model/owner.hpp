// SPDX-License-Identifier: Apache-2.0
// Owner: what a value belongs to, for messages.
#pragma once

#include <gpusched/core/errors.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpusched::detail {

/// A node, task or job that is being checked. Put into words only where there is a problem: nearly all values are good, and
/// there are millions of them. The name must outlive it.
class Owner {
  public:
    explicit Owner(std::string_view kind) : kind_(kind) {}
    Owner(std::string_view kind, std::string_view name) : kind_(kind), name_(name) {}
    /// By its place in the input, for what may have no name.
    Owner(std::string_view kind, std::size_t number) : kind_(kind), number_(number) {}

    [[nodiscard]] std::string text() const {
        std::string text(kind_);
        if (name_) text.append(" ").append(gpusched::quoted(*name_));
        if (number_) text.append(" #").append(std::to_string(*number_));
        return text;
    }
    friend std::string operator+(const Owner& owner, std::string_view text) {
        return owner.text().append(text);
    }

  private:
    std::string_view kind_;
    std::optional<std::string_view> name_;
    std::optional<std::size_t> number_;
};

/// A named part of an owner, such as the devices of one class that a node lists.
class PartOwner {
  public:
    /// Both must outlive it.
    PartOwner(const Owner& whole, std::string_view kind, std::string_view name)
        : whole_(whole), kind_(kind), name_(name) {}

    [[nodiscard]] std::string text() const {
        return whole_.text().append(": ").append(kind_).append(" ").append(gpusched::quoted(name_));
    }

  private:
    const Owner& whole_;
    std::string_view kind_, name_;
};

}  // namespace gpusched::detail
