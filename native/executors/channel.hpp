// Request and response between one driver thread and its worker process, through shared memory and two futex words.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace burnish::executors {

enum class CallStatus : int { ok = 0, died = 1, timeout = 2 };

// One direction. `parts` counts the parts published so far and is the futex word; the receiver raises `sleeping` before
// it sleeps, so that the sender makes a system call only when somebody needs waking.
struct alignas(64) Lane {
    std::atomic<uint32_t> parts;
    std::atomic<uint32_t> sleeping;
    uint32_t bytes;
    uint32_t more;  // another part of the same message follows once this one is acknowledged
};

struct ChannelBlock {
    static constexpr uint32_t buffer_bytes = 64 * 1024;
    Lane to_worker, to_driver;
    alignas(64) std::atomic<uint64_t> beat_ns;  // CLOCK_MONOTONIC of the worker's last heartbeat
    std::atomic<uint32_t> done;                 // tasks of the current request that have completed
    alignas(64) std::byte request[buffer_bytes];
    alignas(64) std::byte response[buffer_bytes];
};

// Strictly alternating: one request, one response; longer messages go in parts, each acknowledged by an empty part of
// the other direction. After `died` or `timeout` of a call the state is unknown: end the worker, wait for its death,
// reset(), start another. (send and wait are separate for callers that poll: wait may be repeated after a
// timeout, with the same `response`.)
// Pure C++: no member needs or touches the GIL, except that callers in Python release it.
class Channel {
public:
    // The block must be ChannelBlock-aligned memory visible to both processes, e.g. Arena::alloc(sizeof(ChannelBlock)).
    explicit Channel(std::byte *block) : block_(reinterpret_cast<ChannelBlock *>(block)) {}
    static constexpr uint64_t block_bytes() { return sizeof(ChannelBlock); }

    // --- driver side
    void reset();  // before a worker attaches for the first time, or again after a death
    // pidfd tells a dead worker (-1: never look); timeout in seconds (negative: none).
    CallStatus call(std::span<const std::byte> request, std::vector<std::byte> &response, int pidfd, double timeout);
    CallStatus send(std::span<const std::byte> request, int pidfd, double timeout);
    CallStatus wait(std::vector<std::byte> &response, int pidfd, double timeout);
    uint32_t done() const { return block_->done.load(std::memory_order_acquire); }
    double beat_age() const;  // seconds since the worker's last heartbeat

    // --- worker side
    void receive(std::vector<std::byte> &request);  // returns when a whole request is there
    void respond(std::span<const std::byte> response);
    void completed(uint32_t tasks) { block_->done.store(tasks, std::memory_order_release); }
    void beat();

    // Longest time either side may spin before it sleeps. 0 (never spin) is right unless each pair has two cores for
    // itself. Even then a side spins only while the last waits were shorter than this.
    void set_spin(uint32_t nanoseconds) { spin_ns_ = nanoseconds; }

private:
    CallStatus wait_part(Lane &lane, uint32_t seen, int pidfd, double timeout);
    CallStatus send_parts(Lane &out, Lane &back, std::byte *buffer, std::span<const std::byte> message, int pidfd,
                          double timeout);
    CallStatus receive_parts(Lane &in, Lane &back, const std::byte *buffer, std::vector<std::byte> &message, int pidfd,
                             double timeout);
    static void publish(Lane &lane, uint32_t bytes, uint32_t more);

    ChannelBlock *block_;
    uint32_t spin_ns_ = 0;
    uint32_t typical_ns_ = 0;  // decaying mean of recent waits
    bool partial_ = false;        // a message of several parts is being received
    uint32_t seen_worker_ = 0, seen_driver_ = 0;  // parts of to_worker / to_driver already taken
};

}  // namespace burnish::executors
