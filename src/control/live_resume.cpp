#include <gpusched/control/impl/live_resume.ipp>
