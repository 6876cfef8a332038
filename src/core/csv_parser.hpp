// SPDX-License-Identifier: Apache-2.0
// fast-cpp-csv-parser under a namespace of our own. Its own, ::io, would make `io::` ambiguous for everybody who writes
// `using namespace gpusched` and uses the header-only library.
#pragma once

// What the parser includes, so that none of it sees the macro below.
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <istream>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Whether the user has included it before or does so later, each gets an own copy.
#ifdef CSV_H
#define GPUSCHED_CSV_H_WAS_INCLUDED
#undef CSV_H
#endif
#define io gpusched_csv
#define CSV_IO_NO_THREAD  // texts are whole in memory: nothing is read ahead
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstringop-truncation"  // it copies file names of any length, on purpose
#endif
#include <csv.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#undef io
#undef CSV_IO_NO_THREAD
#ifdef GPUSCHED_CSV_H_WAS_INCLUDED
#undef GPUSCHED_CSV_H_WAS_INCLUDED
#else
#undef CSV_H
#endif
