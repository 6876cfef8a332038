// SPDX-License-Identifier: Apache-2.0
// Records about a cluster with names instead of ids, so that they do not depend on the cluster.
#pragma once

#include "model/cluster_views.hpp"
#include "model/plan.hpp"
#include "support/records.hpp"

#include <cstddef>

namespace gpusched::python {

/// A record of ids with names: see `with_names`. It holds the Python value of each field, in the order of the
/// table of `T`.
template <Described T>
struct Named {
    py::tuple values;
};

/// The Python value of a field in a `Named` record.
template <class V>
struct Shown {
    using type = V;
    static const V& of(const Cluster&, const V& value) { return value; }
};
/// '' for no id.
template <class Id>
    requires std::is_same_v<Id, NodeId> || std::is_same_v<Id, TaskId>
struct Shown<Id> {
    using type = std::string;
    static type of(const Cluster& cluster, Id id) { return id == none<Id> ? type() : cluster.name(id); }
};
template <>
struct Shown<JobId> {
    using type = std::string;
    static type of(const Cluster& cluster, JobId id) { return cluster.inventory().job_names[index(id)]; }
};
template <>
struct Shown<PlanSpec::Placement> {
    using type = PlanSpec::Placement;
    static const type& of(const Cluster&, const type& placement) { return placement; }
};
template <>
struct Shown<Plan> {
    using type = NamedPlan;
    static type of(const Cluster& cluster, const Plan& plan) {
        return {to_spec(plan, cluster), StopReason::completed};
    }
};
template <class V>
struct Shown<std::optional<V>> {
    using type = std::optional<typename Shown<V>::type>;
    static type of(const Cluster& cluster, const std::optional<V>& value) {
        if (!value) return std::nullopt;
        return Shown<V>::of(cluster, *value);
    }
};
template <class V>
struct Shown<std::vector<V>> {
    using type = std::vector<typename Shown<V>::type>;
    static type of(const Cluster& cluster, const std::vector<V>& values) {
        type shown;
        for (const auto& value : values) shown.push_back(Shown<V>::of(cluster, value));
        return shown;
    }
};
template <Described T>
struct Shown<T> {
    using type = Named<T>;
    static type of(const Cluster& cluster, const T& record) {
        py::list values;
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&...) {
            using V = std::remove_cvref_t<decltype(record.*member)>;
            values.append(Shown<V>::of(cluster, record.*member));
        });
        return {py::tuple(values)};
    }
};

/// Converts a record, or a list of records, from ids of the cluster to names. Needs the interpreter lock.
template <class T>
typename Shown<T>::type with_names(const Cluster& cluster, const T& record) {
    return Shown<T>::of(cluster, record);
}

template <Described T>
struct RecordOf<Named<T>> {
    using Table = T;
    static py::tuple values(const Named<T>& record) { return record.values; }
    static Named<T> record(const py::tuple& values) {
        detail::require_all_fields<T>(values);
        std::size_t i = 0;
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&...) {
            using V = std::remove_cvref_t<decltype(std::declval<const T&>().*member)>;
            static_cast<void>(values[i++].template cast<typename Shown<V>::type>());
        });
        return {values};
    }

    template <class Member>
    static auto attribute(std::size_t position, Member) {
        using V = std::remove_cvref_t<decltype(std::declval<const T&>().*std::declval<Member>())>;
        return [position](const Named<T>& record) {
            return record.values[position].template cast<typename Shown<V>::type>();
        };
    }
};

}  // namespace gpusched::python
