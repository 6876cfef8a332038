// SPDX-License-Identifier: Apache-2.0
// Objects of Kubernetes and the like, in YAML or JSON, as JSON documents.
// Own, because libyaml gives events and no tree: as a JSON document, every reader and its messages serve both formats.
#pragma once

#include <gpusched/json/document.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io::detail {

/// A value in a document, or its absence.
class Place {
  public:
    Place() = default;
    Place(const json::Document& document, std::uint32_t at) : document_(&document), at_(at) {}

    explicit operator bool() const noexcept { return document_ != nullptr; }
    [[nodiscard]] json::Kind kind() const { return (*document_)[at_].kind; }
    [[nodiscard]] bool is(json::Kind kind_asked) const {
        return document_ != nullptr && kind() == kind_asked;
    }
    /// The member of an object; absent when there is none, or it is null.
    [[nodiscard]] Place operator[](std::string_view key) const;
    /// Elements of an array or members of an object.
    [[nodiscard]] std::vector<Place> items() const;
    [[nodiscard]] std::string_view key() const { return document_->key((*document_)[at_]); }
    /// A string, or a number or truth value as text; none otherwise.
    [[nodiscard]] std::optional<std::string> text() const;
    /// A number, or a string that is one.
    [[nodiscard]] std::optional<double> number() const;
    [[nodiscard]] std::string where() const { return document_->where(at_); }
    /// "where: expected what, found ..."; where the value is missing, `parent` says so.
    [[nodiscard]] std::string expected(std::string_view what) const {
        return where() + "expected " + std::string(what) + ", found " + document_->describe(at_);
    }

  private:
    const json::Document* document_ = nullptr;
    std::uint32_t at_ = 0;
};

/// All documents of a text: JSON when it begins with a brace or bracket, else YAML (1.1 as libyaml reads it, with the
/// scalars of the core schema of 1.2, without aliases). Empty documents are left out.
/// @throws InvalidInput with source and line when it is neither
/// @throws BackendError for YAML when the library was built without libyaml
[[nodiscard]] std::vector<json::Document> read_objects(std::string_view text, const std::string& source,
                                                       Problems& problems);

/// The objects of a text, those in a `List` one by one; the documents must outlive them.
[[nodiscard]] std::vector<Place> kubernetes_objects(const std::vector<json::Document>& documents);

}  // namespace gpusched::io::detail
