// What single and index launches share: checks, and the plans of index launches.
#pragma once
#include <Python.h>

#include "op.hpp"

namespace burnish::runtime {

enum EdgeMode : int { kEdgeError, kEdgeSkip, kEdgeClip, kEdgeWrap };

// Whether two requirements on common points forbid each other.
bool conflicting(const Requirement &a, const Requirement &b);
// Raises for an argument that is no region; always false.
bool argument_error(TaskDef *task, uint16_t param, PyObject *arg);
// The plan of an index launch, made and checked when it is first met; null with an exception set.
std::shared_ptr<IndexPlan> find_plan(TaskDef *task, PyObject *domain, PyObject *const *args, int edge);
// Of 'error', 'skip', 'clip', 'wrap'; -1 with an exception set.
int parse_edge(PyObject *o);

}  // namespace burnish::runtime
