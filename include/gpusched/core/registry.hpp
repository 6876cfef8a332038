// SPDX-License-Identifier: Apache-2.0
// Registry: policies of one kind, each under a name, for options, files and other languages.
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

/// Makes policies of one kind by name. The library's registries are constant; to choose a policy of your own by name, copy one
/// and add to the copy:
///
///     auto orders = consolidation::node_orders();
///     orders.add<MyOrder>("mine");
///     auto order = orders.make(name_from_a_file);
///
/// @tparam Policy what is made: a type that holds any policy of the kind; what its `check<P>()` asserts holds of what is added
/// @tparam Arguments what policies may be made from; most look at none of it
template <class Policy, class... Arguments>
class Registry {
  public:
    using Make = std::function<Policy(Arguments...)>;

    /// @param kind what messages call a name: "ranker", "node_order"
    explicit Registry(std::string kind) : kind_(std::move(kind)) {}

    /// @throws InvalidInput for an empty name, and for one that is taken
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
    /// A policy that needs nothing to be made.
    template <class P>
    Registry& add(std::string name) {
        if constexpr (detail::CheckedAs<P, Policy>) static_assert(Policy::template check<P>());
        static_assert(
            requires { P{}; },
            "add<P>(name) makes a P{}; a policy with arguments is added with a function that makes it: "
            "add(name, [](...) { return P(...); })");
        return add(std::move(name), [](const std::remove_cvref_t<Arguments>&...) -> Policy { return P{}; });
    }

    /// This policy; each use of the name gets a copy.
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
    /// @throws InvalidInput for an unknown name, with the nearest ones
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
