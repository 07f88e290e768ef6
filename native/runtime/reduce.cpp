#include "reduce.hpp"

#include <limits>

namespace burnish::runtime {
namespace {
template <class T>
void fold_t(char op, T *d, const T *s, int64_t n) {
    switch (op) {
        case '+': for (int64_t i = 0; i < n; ++i) d[i] = d[i] + s[i]; break;
        case '*': for (int64_t i = 0; i < n; ++i) d[i] = d[i] * s[i]; break;
        case '<': for (int64_t i = 0; i < n; ++i) d[i] = s[i] < d[i] ? s[i] : d[i]; break;
        case '>': for (int64_t i = 0; i < n; ++i) d[i] = s[i] > d[i] ? s[i] : d[i]; break;
    }
}
template <class T>
void id_t_(char op, T *d, int64_t n) {
    T v = op == '*' ? T(1) : op == '<' ? std::numeric_limits<T>::max() : op == '>' ? std::numeric_limits<T>::lowest() : T(0);
    if constexpr (std::numeric_limits<T>::has_infinity) {
        if (op == '<') v = std::numeric_limits<T>::infinity();
        if (op == '>') v = -std::numeric_limits<T>::infinity();
    }
    for (int64_t i = 0; i < n; ++i) d[i] = v;
}
}  // namespace
void fold(char op, int t, void *d, const void *s, int64_t n) {
    if (t == 12) fold_t(op, (double *)d, (const double *)s, n);
    else if (t == 7) fold_t(op, (int64_t *)d, (const int64_t *)s, n);
}
void fill_identity(char op, int t, void *d, int64_t n) {
    if (t == 12) id_t_(op, (double *)d, n);
    else if (t == 7) id_t_(op, (int64_t *)d, n);
}
}  // namespace burnish::runtime
