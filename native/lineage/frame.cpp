#include "lineage/frame.hpp"

#include <algorithm>

namespace burnish::lineage {

namespace {

constexpr FrameHead empty_head;

// A whole frame with the right checksum at `data`, whatever its number.
bool valid_at(std::span<const std::byte> data, Frame &frame) {
    if (data.size() < sizeof(FrameHead)) return false;
    std::memcpy(&frame.head, data.data(), sizeof(FrameHead));
    if (frame.head.magic != empty_head.magic || frame.head.length > data.size() - sizeof(FrameHead)) return false;
    frame.payload = data.subspan(sizeof(FrameHead), frame.head.length);
    return frame_crc(frame.head, frame.payload) == frame.head.crc && frame.head.reserved == 0;
}

// An unfinished write is the last thing in a file. If a later whole frame exists, the bytes before it were damaged.
bool later_frame_follows(std::span<const std::byte> data, uint64_t lsn) {
    Frame frame;
    for (size_t at = 1; at + sizeof(FrameHead) <= data.size(); ++at)
        if (valid_at(data.subspan(at), frame) && frame.head.lsn > lsn) return true;
    return false;
}

std::string problem_at(std::span<const std::byte> data) {
    if (data.size() < sizeof(FrameHead)) return "the header is cut short";
    FrameHead head;
    std::memcpy(&head, data.data(), sizeof head);
    if (head.magic != empty_head.magic) return "no record starts here";
    if (head.length > data.size() - sizeof head) return "the payload is cut short";
    return "the checksum does not match";
}

}  // namespace

Scan scan_frames(std::span<const std::byte> data, uint64_t first_lsn) {
    Scan scan;
    uint64_t expected = first_lsn;
    while (scan.good_bytes < data.size()) {
        auto rest = data.subspan(scan.good_bytes);
        Frame frame;
        if (!valid_at(rest, frame)) {
            scan.problem = problem_at(rest);
            scan.end = later_frame_follows(rest, expected) ? ScanEnd::damaged : ScanEnd::torn;
            return scan;
        }
        if (frame.head.lsn != expected) {
            scan.problem = "record " + std::to_string(frame.head.lsn) + " is where " + std::to_string(expected) +
                           " should be";
            scan.end = ScanEnd::damaged;
            return scan;
        }
        scan.frames.push_back(frame);
        scan.good_bytes += sizeof(FrameHead) + frame.head.length;
        ++expected;
    }
    return scan;
}

}  // namespace burnish::lineage
