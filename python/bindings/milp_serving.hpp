// The serving problem in Python: what its binding needs besides the library, and how it pickles.
#pragma once

#include "milp_members.hpp"

#include <gpusched/milp/solve_serving_plan.hpp>

namespace gpusched::python {

/// A serving model that knows the names of its problem.
struct NamedServingModel : milp::ServingModel {
    milp::ServingProblem problem{};
};

struct NamedServingPlan : milp::ServingPlan {
    milp::ServingProblem problem{};
};

template <>
struct Members<milp::RentableGpu> {
    static void visit(auto& g, auto&& each) {
        each(g.name);
        each(g.price);
        each(g.available);
    }
};
template <>
struct Members<milp::ServingWorkload> {
    static void visit(auto& w, auto&& each) {
        each(w.name);
        each(w.requests);
        each(w.model);
    }
};
template <>
struct Members<milp::ServingConfiguration> {
    static void visit(auto& c, auto&& each) {
        each(c.name);
        each(c.gpus);
        each(c.throughput);
        each(c.model);
    }
};
template <>
struct Members<milp::ServingProblem> {
    static void visit(auto& p, auto&& each) {
        each(p.gpus);
        each(p.workloads);
        each(p.configurations);
        each(p.budget);
    }
};
template <>
struct Members<milp::ServingAllocation> {
    static void visit(auto& a, auto&& each) {
        each(a.replicas);
        each(a.share);
    }
};
template <>
struct Members<NamedServingModel> {
    static void visit(auto& m, auto&& each) {
        each(base_of<milp::Model>(m));
        each(m.form);
        each(m.makespan_column);
        each(m.first_copy);
        each(m.seconds);
        each(m.upper);
        each(m.rate_column);
        each(m.unit);
        each(m.problem);
    }
};
template <>
struct Members<NamedServingPlan> {
    static void visit(auto& p, auto&& each) {
        each(p.status);
        each(p.makespan);
        each(p.bound);
        each(p.cost);
        each(p.allocation);
        each(p.optimal);
        each(p.solver_calls);
        each(p.solver);
        each(p.message);
        each(p.problem);
    }
};

}  // namespace gpusched::python
