// SPDX-License-Identifier: Apache-2.0
// boost::container::small_vector without a false warning of g++ 12 and 13 about its move. Must be included
// before every other header of Boost.Container.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 14
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstringop-overread"
#include <boost/container/small_vector.hpp>
#pragma GCC diagnostic pop
#else
#include <boost/container/small_vector.hpp>
#endif
