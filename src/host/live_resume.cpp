#include <gpusched/host/impl/live_resume.ipp>
