// SPDX-License-Identifier: Apache-2.0
// The module gpusched.preemption: Standby tasks that lend their GPUs, and the duration of evictions.
#include "preemption/preemption.hpp"
#include "support/arguments.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/preemption/standby.hpp>

namespace gpusched::python {

namespace {

namespace p = preemption;
using EvictionTimeline = p::EvictionModel::Timeline;

/// A task that runs on GPUs of a Standby task.
struct NamedBorrower {
    /// Name of the borrower.
    std::string task;
    /// Borrowed GPUs.
    std::vector<int> gpus;
    /// An `EvictionTimeline` after it was asked to leave, otherwise None.
    std::optional<EvictionTimeline> eviction;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedBorrower>, F&& field) {
    field("task", &NamedBorrower::task);
    field("gpus", &NamedBorrower::gpus);
    field("eviction", &NamedBorrower::eviction);
}

GpuMask any_gpus(const Integers& gpus) {
    const auto list = gpu_numbers(gpus);
    const auto twice = [](int gpu) {
        throw InvalidInput(bad_value("gpus", std::to_string(gpu), "each GPU once"));
    };
    return gpu_mask(list, max_gpus_per_node, twice, twice);
}

std::int64_t milliseconds(const Integer& now) { return OptionType<std::int64_t>::read("now_ms", now); }

/// A lease with names of borrowers, and with its own random numbers.
struct Lease {
    std::string owner, node;
    p::StandbyLease live;
    Rng rng;
    std::vector<std::string> names{};  // of the borrowers so far, indexed by TaskId - 1; 0 is the owner

    TaskId id_of(const std::string& task) {
        if (task == owner) return live.owner();
        const auto at = std::find(names.begin(), names.end(), task);
        const auto id = make_id<TaskId>(static_cast<std::size_t>(at - names.begin()) + 1);
        if (at == names.end()) names.push_back(task);
        return id;
    }
    [[nodiscard]] NamedBorrower named(const p::StandbyLease::Borrower& b) const {
        return {names[index(b.task) - 1], gpu_list(b.gpus), b.eviction};
    }
};

p::EvictionModel eviction_model(const std::optional<std::vector<std::int64_t>>& shutdown_ms,
                                std::int64_t grace_ms, std::int64_t reclaim_ms) {
    p::EvictionModel model;
    if (shutdown_ms) {
        if (shutdown_ms->size() != model.shutdown_ms.size())
            throw InvalidInput(bad_value("len(shutdown_ms)", std::to_string(shutdown_ms->size()),
                                         std::to_string(model.shutdown_ms.size())));
        std::copy(shutdown_ms->begin(), shutdown_ms->end(), model.shutdown_ms.begin());
    }
    model.grace_ms = grace_ms;
    model.reclaim_ms = reclaim_ms;
    validate(model);
    return model;
}

struct ModelKeywords : p::EvictionModel {
    /// 21 quantiles in milliseconds at 0, 5, ..., 100 %, ascending; None = the published figures.
    std::optional<std::vector<std::int64_t>> quantiles{};
};

void bind_evictions(py::module_& m) {
    using E = p::EvictionModel;
    bind_record<EvictionTimeline>(m, "EvictionTimeline", "Timeline of one eviction in milliseconds.");
    const auto options =
        Keywords<ModelKeywords>()
            .field("shutdown_ms", &ModelKeywords::quantiles, doc("python::ModelKeywords::quantiles"))
            .fields<p::EvictionModel>({"grace_ms", "reclaim_ms"});
    auto model = bind_record<E>(m, "EvictionModel");
    model
        .def(py::init([options](const py::kwargs& keywords) {
                 const auto k = options.read("EvictionModel", keywords);
                 return eviction_model(k.quantiles, k.grace_ms, k.reclaim_ms);
             }),
             options.documented("Model of the duration of evictions."))
        .def(
            "draw",
            [](const E& e, const Integer& now_ms, const Integer& seed) {
                Rng rng(OptionType<std::uint64_t>::read("seed", seed));
                return e.draw(milliseconds(now_ms), rng);
            },
            py::arg("now_ms"), py::arg("seed"),
            documented("Returns a random eviction that begins at `now_ms`."));
}

void bind_lease(py::module_& m) {
    bind_record<NamedBorrower>(m, "Borrower");
    const auto lease = [](const char* name) { return doc(std::string("preemption::StandbyLease::") + name); };
    py::class_<Lease>(m, "StandbyLease", doc("preemption::StandbyLease"))
        .def(py::init([](const std::string& owner, const std::string& node, const Integers& gpus,
                         const std::optional<p::EvictionModel>& model, const Integer& seed) {
                 return Lease{owner, node,
                              p::StandbyLease(TaskId{0}, NodeId{0}, any_gpus(gpus),
                                              model.value_or(p::EvictionModel{})),
                              Rng(OptionType<std::uint64_t>::read("seed", seed))};
             }),
             py::arg("owner"), py::arg("node"), py::arg("gpus"), py::kw_only(), py::arg("model") = py::none(),
             py::arg("seed") = 0,
             documented(
                 "Makes a lease for the GPUs of one HP task on its node.\n\n"
                 "model\n    an `EvictionModel` for the time until borrowers leave; None = the published "
                 "figures\nseed\n    seed of the random evictions"))
        .def_property_readonly(
            "state", [](const Lease& l) { return l.live.state(); },
            "\"active\" (the owner runs), \"standby\" (its GPUs may be borrowed) or \"resuming\" "
            "(borrowers are leaving).")
        .def_readonly("owner", &Lease::owner, "The HP task.")
        .def_readonly("node", &Lease::node, "Name of its node.")
        .def_property_readonly(
            "gpus", [](const Lease& l) { return gpu_list(l.live.gpus()); }, "Its GPUs.")
        .def_property_readonly(
            "lent", [](const Lease& l) { return gpu_list(l.live.lent()); }, lease("lent"))
        .def_property_readonly(
            "borrowers",
            [](const Lease& l) {
                std::vector<NamedBorrower> out;
                for (const auto& b : l.live.borrowers()) out.push_back(l.named(b));
                return out;
            },
            "Current borrowers, in the order in which they began.")
        .def(
            "lend", [](Lease& l, const Integer& now_ms) { l.live.lend(milliseconds(now_ms)); },
            py::arg("now_ms"), documented(lease("lend")))
        .def(
            "borrow",
            [](Lease& l, const std::string& task, const Name<PriorityClass>& priority_class,
               const Integers& gpus, const Integer& now_ms) {
                const auto kind = OptionType<PriorityClass>::read("priority_class", priority_class);
                return l.live.borrow(l.id_of(task), kind, any_gpus(gpus), milliseconds(now_ms));
            },
            py::arg("task"), py::arg("priority_class"), py::arg("gpus"), py::arg("now_ms"),
            documented(lease("borrow")))
        .def(
            "give_back",
            [](Lease& l, const std::string& task, const Integer& now_ms) {
                l.live.give_back(l.id_of(task), milliseconds(now_ms));
            },
            py::arg("task"), py::arg("now_ms"), documented(lease("give_back")))
        .def(
            "resume",
            [](Lease& l, const Integer& now_ms) { return l.live.resume(milliseconds(now_ms), l.rng); },
            py::arg("now_ms"), documented(lease("resume")))
        .def(
            "advance",
            [](Lease& l, const Integer& now_ms) {
                std::vector<NamedBorrower> out;
                for (const auto& b : l.live.advance(milliseconds(now_ms))) out.push_back(l.named(b));
                return out;
            },
            py::arg("now_ms"), documented(lease("advance")))
        .def("__copy__", [](const Lease& l) { return l; })
        .def(
            "__deepcopy__", [](const Lease& l, const py::dict&) { return l; }, py::arg("memo"))
        .def("__repr__", [](const Lease& l) {
            return "<gpusched.preemption.StandbyLease: " + l.owner + " on " + l.node + ", " +
                   std::string(enum_name(l.live.state())) + ", " + counted(l.live.borrowers(), "borrower") +
                   ">";
        });
}

}  // namespace

void bind_standby(py::module_& m) {
    bind_evictions(m);
    bind_lease(m);
}

}  // namespace gpusched::python
