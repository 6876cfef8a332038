// SPDX-License-Identifier: Apache-2.0
// Does a call end the process? Asked of a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace testing_support {

/// True if `call` aborts.
template <class Call>
bool aborts(Call&& call) {
    std::fflush(nullptr);
    const auto child = fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);  // not the test framework's
        if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
        call();
        _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace testing_support
