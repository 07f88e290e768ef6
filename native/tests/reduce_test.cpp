// Reduction kernels on random bits under sanitizers: identities change nothing, folding by runs is folding point by
// point, and no operand is undefined behaviour. (Values are compared with NumPy in tests/runtime/test_reduce.py.)
#include <cstring>
#include <vector>

#include "runtime/reduce.hpp"
#include "tests/check.hpp"

using namespace burnish::runtime;
using burnish::test::Random;

namespace {

constexpr Fold kFolds[] = {Fold::Add, Fold::Multiply, Fold::Minimum, Fold::Maximum, Fold::And, Fold::Or};
constexpr int kPoints = 40;

// Bytes aligned for every element type.
using Array = std::vector<long double>;

struct Buffer {
    explicit Buffer(int64_t bytes) : size(static_cast<size_t>(bytes)), storage(size / sizeof(long double) + 1) {}
    char *data() { return reinterpret_cast<char *>(storage.data()); }
    bool operator==(Buffer &other) { return std::memcmp(data(), other.data(), size) == 0; }
    size_t size;
    Array storage;
};

void randomize(Random &random, Buffer &buffer, bool is_bool) {
    for (size_t i = 0; i < buffer.size; ++i) buffer.data()[i] = static_cast<char>(is_bool ? random.between(0, 1) : random.between(0, 255));
}

void check_type(Random &random, Fold op, ElementType type, bool exact_identity) {
    if (!fold_kernel(op, type)) return;
    Buffer a(kPoints * type.bytes()), b(kPoints * type.bytes());
    randomize(random, a, type.type_num == 0);
    randomize(random, b, type.type_num == 0);
    Buffer whole = a, by_runs = a;
    fold(op, type, whole.data(), b.data(), kPoints);
    const Run runs[] = {{0, 0, 7}, {7, 7, 1}, {8, 8, kPoints - 8}};
    fold_runs(op, type, by_runs.data(), b.data(), runs);
    CHECK(whole == by_runs);

    fill_identity(op, type, b.data(), kPoints);
    Buffer same = a;
    fold(op, type, same.data(), b.data(), kPoints);
    if (exact_identity) CHECK(same == a);

    Buffer packed(kPoints * type.bytes()), back(kPoints * type.bytes());
    const Run apart[] = {{0, 3, 2}, {2, 9, 1}, {3, 20, kPoints - 20}};
    gather_runs(packed.data(), a.data(), apart, type.bytes());
    scatter_runs(back.data(), packed.data(), apart, type.bytes());
    for (const Run &run : apart)
        CHECK(std::memcmp(back.data() + run.linear * type.bytes(), a.data() + run.linear * type.bytes(),
                          static_cast<size_t>(run.length * type.bytes())) == 0);
}

}  // namespace

int main() {
    for (uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        const auto inner = random.between(1, 3);
        for (const Fold op : kFolds) {
            for (int type_num = 0; type_num <= 24; ++type_num)
                for (const int size : {1, 2, 4, 8, 16}) check_type(random, op, {type_num, size, inner}, type_num <= 10);
        }
    }
    std::printf("reductions: no difference\n");
}
