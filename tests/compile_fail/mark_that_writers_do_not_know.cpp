// expect: documents do not know a mark of this table; give it a json::MarkedForm
#include <gpusched/json/json.hpp>

#include <string>

using namespace gpusched;

struct InMetres {};
struct Length {
    int number = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<Length>, F&& field) {
#ifdef GPUSCHED_CONTROL
    field("number", &Length::number);
#else
    field("number", &Length::number, InMetres{});
#endif
}

std::string use(const Length& length) { return json::write_document("lengths", length, {}); }
