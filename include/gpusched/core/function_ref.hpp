// SPDX-License-Identifier: Apache-2.0
// FunctionRef: a callable that somebody else owns, as a parameter.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>

namespace gpusched {

template <class Signature>
class FunctionRef;

/// A non-owning reference to any callable of a signature, which must outlive it: C++26's `std::function_ref`.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
  public:
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> &&
                 std::is_invocable_r_v<Result, F&, Arguments...>)
    FunctionRef(F& f) noexcept  // NOLINT(google-explicit-constructor): a view, like std::span
        : object_(std::addressof(f)), call_([](const void* object, Arguments... arguments) -> Result {
              // As const as it was: F says so.
              return std::invoke(*static_cast<F*>(const_cast<void*>(object)), arguments...);
          }) {}
    Result operator()(Arguments... arguments) const { return call_(object_, arguments...); }

  private:
    const void* object_;
    Result (*call_)(const void*, Arguments...);
};

}  // namespace gpusched
