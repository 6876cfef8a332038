// SPDX-License-Identifier: Apache-2.0
#include "host/live_state.hpp"

#include <gpusched/config.hpp>

#include <utility>

namespace gpusched::host {

GPUSCHED_EXPORT LiveController::LiveController(ControllerOptions options, LiveOptions live, std::string audit)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(live))) {
    if (impl_->options.flags.dry_run)
        impl_->driver.emplace(impl_->live.command_limit_s);  // it looks only
    else
        impl_->take_host();
    if (!audit.empty()) impl_->audit.open(audit);
}

GPUSCHED_EXPORT LiveController::~LiveController() = default;

GPUSCHED_EXPORT std::vector<std::string> LiveController::start() {
    impl_->start();
    return std::exchange(impl_->lines, {});
}

GPUSCHED_EXPORT std::vector<std::string> LiveController::window() {
    impl_->need_start();
    impl_->tell(impl_->runner->window());
    impl_->admit_next();
    if (const auto n = impl_->signals->take_ignored(); n > 0)
        impl_->say(number_text(n) + " lines of latencies could not be read");
    return std::exchange(impl_->lines, {});
}

GPUSCHED_EXPORT std::vector<std::string> LiveController::release() {
    impl_->need_start();
    impl_->audit.must = false;
    impl_->released = true;
    impl_->runner->release();
    const bool ended = impl_->actuator->retry_releases();
    impl_->tell_outcomes();
    if (!ended) impl_->say("a limit is left; the next start tries again");
    return std::exchange(impl_->lines, {});
}

GPUSCHED_EXPORT std::vector<std::string> LiveController::resume() {
    impl_->need_start();
    impl_->resume();
    return std::exchange(impl_->lines, {});
}

GPUSCHED_EXPORT bool LiveController::waits_for_operator() const noexcept {
    for (std::size_t i = 0; impl_->runner && i < impl_->access.size(); ++i)
        if (impl_->runner->state().tenants[i].frozen) return true;
    return false;
}

GPUSCHED_EXPORT bool LiveController::state_known() const noexcept { return impl_->known; }

GPUSCHED_EXPORT const ControllerOptions& LiveController::options() const noexcept { return impl_->options; }

}  // namespace gpusched::host
