// Which elements of a root an array names, and in what order. Classes of roots and geometries are interned: equal ones
// are the same object and live for ever, so that plans can be found by their numbers.
#pragma once
#include <Python.h>

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/forest.hpp"
#include "strided.hpp"

namespace burnish::array {

using runtime::Rect;
struct Geometry;
struct ArrayRoot;

// Roots without array objects, all of one class and cut alike.
struct Bin {
    std::deque<ArrayRoot *> dead;    // in the order of their deaths; the last users of some may still run
    std::vector<ArrayRoot *> ready;  // free for reuse
};

// Roots of one dtype and shape.
struct RootClass {
    uint32_t id;
    int type;
    int64_t item;
    PyObject *descr;  // strong
    uint32_t layout;  // of the runtime: one field of this type
    Rect bounds;
    std::array<int64_t, runtime::kMaxDim> step;  // bytes between neighbours
    int64_t volume, bytes;
    std::vector<Rect> rects;         // 0: all of it
    std::unordered_map<uint64_t, Bin> bins;  // by Root::structure()
    uint64_t uncut = 0;                      // structure of a root in one piece; 0: none was made yet

    int rect_id(const Rect &r);

   private:
    std::unordered_map<uint64_t, std::vector<int>> rect_ids_;
};

struct Geometry {
    uint32_t id;
    RootClass *of;
    int ndim;
    std::array<int64_t, kMaxAxes> shape, strides;  // bytes
    int64_t offset;      // of the first element from the root's first
    int64_t size;
    bool distinct;       // names no element twice
    bool covers;         // names every element of its rectangle
    bool whole;          // the root's elements in their order
    int rect;            // bounding rectangle, in RootClass::rects
    int64_t relative;    // of the first element from the rectangle's first

    std::span<const int64_t> dims() const { return {shape.data(), static_cast<size_t>(ndim)}; }
};

RootClass *root_class(int type, std::span<const int64_t> shape);

// C order over all of a fresh root of this shape.
const Geometry *whole_geometry(int type, std::span<const int64_t> shape);

const Geometry *geometry(RootClass *of, std::span<const int64_t> shape, const int64_t *strides, int64_t offset);

// A part of a geometry: its bounding rectangle and where its first element lies from that rectangle's first.
struct Part {
    int rect;
    int64_t relative;
};
Part part(RootClass *of, std::span<const int64_t> shape, const int64_t *strides, int64_t offset);

}  // namespace burnish::array
