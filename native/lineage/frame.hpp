// Framing of lineage records: 24-byte header, then the payload (msgpack, or what the flags say).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "lineage/crc32c.hpp"

namespace burnish::lineage {

enum class Kind : uint8_t {
    program = 1,
    region = 2,
    partition = 3,
    taskdef = 4,
    launch = 5,
    templ = 6,
    replay = 7,
    commit = 8,
    checkpoint = 9,
    user = 10,
    truncate = 11,
};

// The payload is the 16-byte key of a blob that holds the real payload.
constexpr uint8_t flag_in_blob = 1;

struct FrameHead {
    uint16_t magic = 0x4c42;  // "BL"
    uint8_t kind = 0;
    uint8_t flags = 0;
    uint32_t length = 0;      // bytes of payload
    uint64_t lsn = 0;         // dense, from 1
    uint32_t crc = 0;         // CRC-32C of the 16 bytes before, then the payload
    uint32_t reserved = 0;
};
static_assert(sizeof(FrameHead) == 24);

inline uint32_t frame_crc(const FrameHead &head, std::span<const std::byte> payload) {
    auto *first = reinterpret_cast<const std::byte *>(&head);
    return crc32c(payload, crc32c({first, 16}));
}

inline void append_frame(std::vector<std::byte> &out, Kind kind, uint8_t flags, uint64_t lsn,
                         std::span<const std::byte> payload) {
    FrameHead head;
    head.kind = static_cast<uint8_t>(kind);
    head.flags = flags;
    head.length = static_cast<uint32_t>(payload.size());
    head.lsn = lsn;
    head.crc = frame_crc(head, payload);
    size_t at = out.size();
    out.resize(at + sizeof head + payload.size());
    std::memcpy(out.data() + at, &head, sizeof head);
    if (!payload.empty()) std::memcpy(out.data() + at + sizeof head, payload.data(), payload.size());
}

struct Frame {
    FrameHead head;
    std::span<const std::byte> payload;
};

// How the reading of a run of frames ended.
enum class ScanEnd {
    complete,  // at a frame border, no byte left over
    torn,      // what remains is one unfinished write: nothing valid follows
    damaged,   // a frame is wrong although valid data follow, or it has the wrong number
};

struct Scan {
    std::vector<Frame> frames;
    size_t good_bytes = 0;      // of whole frames from the start
    ScanEnd end = ScanEnd::complete;
    std::string problem;        // one phrase, when not complete
};

// Reads frames from the start of `data`; the first must have number `first_lsn`, the rest follow densely.
Scan scan_frames(std::span<const std::byte> data, uint64_t first_lsn);

}  // namespace burnish::lineage
