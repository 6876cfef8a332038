// SPDX-License-Identifier: Apache-2.0
// Registry: policies of one kind by name, for options, files and other languages.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/detail/policy_checks.hpp>
#include <gpusched/core/errors.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched {

/// Makes policies of one kind by name. To choose your own policy by name, copy a registry of the library and
/// add to the copy:
///
///     auto orders = consolidation::node_orders();
///     orders.add<MyOrder>("mine");
///     auto order = orders.make(name_from_a_file);
///
/// @tparam Policy the type-erased policy that is made; its `check<P>()`, if any, checks each policy that is
///     added
/// @tparam Arguments the arguments from which policies are made; most policies use none
template <class Policy, class... Arguments>
class Registry {
  public:
    using Make = std::function<Policy(Arguments...)>;

    /// @param kind the field in messages, such as "ranker" or "node_order"
    explicit Registry(std::string kind) : kind_(std::move(kind)) {}

    /// @throws InvalidInput if the name is empty or taken
    Registry& add(std::string name, Make make) {
        if (name.empty() || contains(name))
            throw InvalidInput(bad_value(kind_.c_str(), gpusched::quoted(name), "a name that is not taken"));
        names_.push_back(std::move(name));
        make_.push_back(std::move(make));
        return *this;
    }
    template <std::invocable<Arguments...> M>
    Registry& add(std::string name, M make) {
        using P = std::remove_cvref_t<std::invoke_result_t<M&, Arguments...>>;
        if constexpr (detail::CheckedAs<P, Policy>) static_assert(Policy::template check<P>());
        return add(std::move(name), Make(std::move(make)));
    }
    /// Adds a policy that is made without arguments.
    template <class P>
    Registry& add(std::string name) {
        if constexpr (detail::CheckedAs<P, Policy>) static_assert(Policy::template check<P>());
        static_assert(
            requires { P{}; },
            "add<P>(name) makes a P{}; a policy with arguments is added with a function that makes it: "
            "add(name, [](...) { return P(...); })");
        return add(std::move(name), [](const std::remove_cvref_t<Arguments>&...) -> Policy { return P{}; });
    }

    /// Adds a policy object; each use of the name gets a copy.
    template <class P>
        requires(!std::invocable<P&, Arguments...>)
    Registry& add(std::string name, P policy) {
        if constexpr (detail::CheckedAs<P, Policy>) static_assert(Policy::template check<P>());
        return add(std::move(name),
                   [policy = std::move(policy)](const std::remove_cvref_t<Arguments>&...) -> Policy {
                       return policy;
                   });
    }

    /// All names, in the order in which they were added.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    [[nodiscard]] bool contains(std::string_view name) const {
        return std::find(names_.begin(), names_.end(), name) != names_.end();
    }
    /// @throws InvalidInput for an unknown name; the message suggests the nearest names
    [[nodiscard]] Policy make(std::string_view name, Arguments... arguments) const {
        const auto at = std::find(names_.begin(), names_.end(), name);
        if (at == names_.end()) throw InvalidInput(bad_name(kind_, name, names_));
        return make_[static_cast<std::size_t>(at - names_.begin())](arguments...);
    }

  private:
    std::string kind_;
    std::vector<std::string> names_;
    std::vector<Make> make_;
};

}  // namespace gpusched
