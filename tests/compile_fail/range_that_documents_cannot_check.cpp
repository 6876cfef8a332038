// expect: documents cannot check the range of a field of this table
#include <gpusched/json/json.hpp>

#include <string>

using namespace gpusched;

struct Named {
    std::string name{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Named>, F&& field) {
#ifdef GPUSCHED_CONTROL
    field("name", &Named::name);
#else
    field("name", &Named::name, at_least(1));
#endif
}

Named use(const std::string& text) { return json::read_document<Named>(text, "f", {.name = "names"}); }
