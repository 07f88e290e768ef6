// Check mode's look at a launch from outside.
#pragma once
#include "pytypes.hpp"

namespace burnish::runtime {

// Check mode: the front end looks at the regions of a launch before it and after it. Does nothing otherwise.
class Watch {
   public:
    Watch(Context *c, TaskDef *task) : task_(task), roots_(c->options().check ? PyList_New(0) : nullptr) {}
    ~Watch() { Py_XDECREF(roots_); }
    Watch(const Watch &) = delete;
    void add(Root *root) {
        if (!roots_) return;
        PyObject *region = region_object(root->region);
        if (region) PyList_Append(roots_, region);
        Py_XDECREF(region);
    }
    bool before() { return look(Py_False); }  // false: an exception is set
    bool after() { return look(Py_True); }

   private:
    bool look(PyObject *after) {
        if (!roots_) return true;
        PyObject *result = PyObject_CallFunctionObjArgs(types().on_launch, task_->info, roots_, after, nullptr);
        Py_XDECREF(result);
        return result != nullptr;
    }
    TaskDef *task_;
    PyObject *roots_;
};

}  // namespace burnish::runtime
