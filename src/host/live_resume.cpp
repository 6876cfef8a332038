// SPDX-License-Identifier: Apache-2.0
#include "host/live_state.hpp"

#include <gpusched/config.hpp>

#include <string>
#include <utility>
#include <vector>

namespace gpusched::host {

GPUSCHED_EXPORT std::vector<std::int32_t> LiveController::Impl::frozen() const {
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; runner && i < access.size(); ++i)
        if (options.host.tenants[i].is_protected && runner->state().tenants[i].frozen)
            out.push_back(static_cast<std::int32_t>(i));
    return out;
}

GPUSCHED_EXPORT void LiveController::Impl::tell_resume(ResumeVerdict verdict,
                                                       const std::vector<std::string>& texts) {
    for (const auto& text : texts) say(std::string("resume ") + enum_name(verdict) + ": " + text);
    std::string record;
    control::append_resume_record(record, verdict, texts);
    audit.write(record);
}

GPUSCHED_EXPORT void LiveController::Impl::resume() {
    const auto waiting = frozen();
    if (waiting.empty() && !released)
        return tell_resume(ResumeVerdict::not_needed, {"nothing waits for an operator"});
    std::vector<std::string> reasons, done;
    if (!waiting.empty()) {
        const bool dry_run = options.flags.dry_run;
        for (const auto process :
             {dry_run ? 0 : program_at_work(program()), commands.left_behind(), driver->left_behind()})
            if (process != 0)
                reasons.push_back("a program that was started for a change is at work: process " +
                                  number_text(process));
        if (reasons.empty()) {
            auto resumption = actuator->resume(waiting, dry_run);
            for (const auto& note : resumption.notes) say(note);
            reasons = std::move(resumption.reasons);
        }
    }
    if (!reasons.empty()) return tell_resume(ResumeVerdict::refused, reasons);
    for (const auto i : waiting)
        done.push_back(name(static_cast<std::size_t>(i)) + " goes on after ten fresh windows in " +
                       describe(options.host, at(static_cast<std::size_t>(i))));
    if (released) done.push_back("enabled again");
    if (released) runner->enable();
    resume_accepted = !waiting.empty();
    if (resume_accepted) signals->look_again();
    released = false;
    audit.must = true;
    tell_resume(ResumeVerdict::accepted, done);
}

/// The core believes an operator in everything, so what was true then must be true of this window as well.
GPUSCHED_EXPORT void LiveController::Impl::vouch(Observation& seen) {
    if (!std::exchange(resume_accepted, false)) return;
    std::vector<std::string> reasons;
    for (std::size_t i = 0; i < access.size(); ++i) {
        if (!options.host.tenants[i].is_protected) continue;
        const auto& where = runner->state().tenants[i].place.current;
        const auto& gpu = seen.gpus[static_cast<std::size_t>(where.gpu)];
        if (gpu.lost || !gpu.readable || !gpu.layout.contains(where.instance))
            reasons.push_back(gpusched::quoted(name(i)) + ": " + describe(options.host, where) +
                              (gpu.readable ? " stands no more" : " cannot be read any more"));
    }
    if (!reasons.empty()) return tell_resume(ResumeVerdict::refused, reasons);
    seen.operator_resume = true;
}

}  // namespace gpusched::host
