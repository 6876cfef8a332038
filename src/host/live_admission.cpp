// SPDX-License-Identifier: Apache-2.0
#include "host/live_state.hpp"

#include <gpusched/config.hpp>

#include <utility>

namespace gpusched::host {

/// As after the last window; closed to newcomers where nothing may be changed.
GPUSCHED_EXPORT ControllerState LiveController::Impl::state_for_newcomers() const {
    auto state = runner->state();
    for (const auto& t : state.tenants) state.admission_open = state.admission_open && !t.frozen;
    if (released || options.flags.dry_run) state.admission_open = false;
    return state;
}

/// Starts an admitted newcomer, and writes the answer into the audit log.
GPUSCHED_EXPORT void LiveController::Impl::start_newcomer(AdmissionAnswer& answer) {
    const auto whom = "newcomer " + number_text(answer.newcomer.id);
    if (answer.place) {
        const Configuration at{.gpu = answer.place->gpu, .instance = answer.place->instance};
        say(whom + ": admitted, " + describe(options.host, at));
        if (!live.admission.start.empty()) {
            auto arguments = hook_arguments(live.admission.start, options.host, at);
            for (auto& text : arguments) replace_all(text, "{id}", number_text(answer.newcomer.id));
            const auto result = commands.run(arguments);
            if (result.timed_out || result.code != 0) {
                say(hook_failure(arguments, result));
                answer.verdict = AdmissionVerdict::rejected;
                answer.place.reset();
            }
        }
        signals->look_again();
    }
    if (!answer.place) say(whom + ": " + enum_name(answer.verdict));
    std::string record;
    control::append_admission_record(record, answer, options.host);
    audit.write(record);
}

GPUSCHED_EXPORT void LiveController::Impl::admit_next() {
    auto answer = queue.next(state_for_newcomers(), runner->seen(), options);
    if (!answer) return;
    start_newcomer(*answer);
    answers.push_back(std::move(*answer));
}

GPUSCHED_EXPORT AdmissionAnswer LiveController::offer(Newcomer newcomer) {
    impl_->need_start();
    if (!impl_->runner->state().started)
        throw InvalidInput("offer: no window yet; expected at least one call of window");
    auto answer = impl_->queue.offer(impl_->state_for_newcomers(), impl_->runner->seen(), impl_->options,
                                     std::move(newcomer));
    impl_->start_newcomer(answer);
    return answer;
}

GPUSCHED_EXPORT bool LiveController::withdraw(std::int64_t id) { return impl_->queue.withdraw(id); }

GPUSCHED_EXPORT const std::vector<Newcomer>& LiveController::waiting() const noexcept {
    return impl_->queue.waiting();
}

GPUSCHED_EXPORT std::vector<AdmissionAnswer> LiveController::take_answers() {
    return std::exchange(impl_->answers, {});
}

}  // namespace gpusched::host
