// The part of msgpack that lineage records use, always in the shortest form.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace burnish::lineage {

class Packer {
public:
    explicit Packer(std::vector<std::byte> &out) : out_(out) {}

    void nil() { byte(0xc0); }
    void boolean(bool v) { byte(v ? 0xc3 : 0xc2); }
    void real(double v) { tagged(0xcb, std::bit_cast<uint64_t>(v), 8); }
    void unsigned_integer(uint64_t v) {
        if (v < 0x80) return byte(static_cast<uint8_t>(v));
        if (v <= 0xff) return tagged(0xcc, v, 1);
        if (v <= 0xffff) return tagged(0xcd, v, 2);
        if (v <= 0xffffffff) return tagged(0xce, v, 4);
        tagged(0xcf, v, 8);
    }
    void integer(int64_t v) {
        if (v >= 0) return unsigned_integer(static_cast<uint64_t>(v));
        auto u = static_cast<uint64_t>(v);
        if (v >= -32) return byte(static_cast<uint8_t>(u));
        if (v >= INT8_MIN) return tagged(0xd0, u, 1);
        if (v >= INT16_MIN) return tagged(0xd1, u, 2);
        if (v >= INT32_MIN) return tagged(0xd2, u, 4);
        tagged(0xd3, u, 8);
    }
    void array(size_t n) {
        if (n < 16) return byte(static_cast<uint8_t>(0x90 | n));
        n <= 0xffff ? tagged(0xdc, n, 2) : tagged(0xdd, n, 4);
    }
    void text(std::string_view v) {
        if (v.size() < 32)
            byte(static_cast<uint8_t>(0xa0 | v.size()));
        else
            length(0xd9, v.size());
        raw(v.data(), v.size());
    }
    void binary(std::span<const std::byte> v) {
        length(0xc4, v.size());
        raw(v.data(), v.size());
    }
    void extension(int8_t type, std::span<const std::byte> v) {
        size_t n = v.size();
        if (n && n <= 16 && std::has_single_bit(n))
            byte(static_cast<uint8_t>(0xd4 + std::countr_zero(n)));
        else
            length(0xc7, n);
        byte(static_cast<uint8_t>(type));
        raw(v.data(), n);
    }
    void packed(std::span<const std::byte> v) { raw(v.data(), v.size()); }  // msgpack made elsewhere

private:
    void byte(uint8_t v) { out_.push_back(static_cast<std::byte>(v)); }
    void tagged(uint8_t tag, uint64_t v, int bytes) {
        byte(tag);
        for (int i = bytes - 1; i >= 0; --i) byte(static_cast<uint8_t>(v >> (8 * i)));
    }
    // Tags for lengths of 8, 16 and 32 bits follow one another.
    void length(uint8_t tag8, size_t n) {
        if (n <= 0xff) return tagged(tag8, n, 1);
        n <= 0xffff ? tagged(tag8 + 1, n, 2) : tagged(tag8 + 2, n, 4);
    }
    void raw(const void *data, size_t n) {
        size_t at = out_.size();
        out_.resize(at + n);
        if (n) std::memcpy(out_.data() + at, data, n);
    }
    std::vector<std::byte> &out_;
};

}  // namespace burnish::lineage
