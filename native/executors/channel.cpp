#include "executors/channel.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace burnish::executors {

namespace {

uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

void futex_wait(std::atomic<uint32_t> &word, uint32_t value, uint64_t ns) {
    timespec t{static_cast<time_t>(ns / 1'000'000'000u), static_cast<long>(ns % 1'000'000'000u)};
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT, value, &t, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t> &word) {
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

bool exited(int pidfd) {
    pollfd p{pidfd, POLLIN, 0};
    return ::poll(&p, 1, 0) > 0;
}

// A futex cannot wait for a process, so a sleeping driver thread looks at the pidfd this often.
constexpr uint64_t look_every_ns = 20'000'000;
// A worker sleeps until it is called; the driver's death reaches it by other ways.
constexpr uint64_t forever_ns = 3'600'000'000'000;

}  // namespace

void Channel::reset() {
    new (&block_->to_worker) Lane{};
    new (&block_->to_driver) Lane{};
    block_->done.store(0);
    block_->beat_ns.store(now_ns());
    seen_worker_ = seen_driver_ = 0;
    typical_ns_ = 0;
    partial_ = false;
}

void Channel::beat() { block_->beat_ns.store(now_ns(), std::memory_order_relaxed); }

double Channel::beat_age() const {
    uint64_t then = block_->beat_ns.load(std::memory_order_relaxed), now = now_ns();
    return now > then ? static_cast<double>(now - then) * 1e-9 : 0.0;
}

void Channel::publish(Lane &lane, uint32_t bytes, uint32_t more) {
    lane.bytes = bytes;
    lane.more = more;
    // Sequentially consistent on both sides: either the receiver sees the new count, or we see that it sleeps.
    lane.parts.fetch_add(1);
    if (lane.sleeping.load()) futex_wake(lane.parts);
}

CallStatus Channel::wait_part(Lane &lane, uint32_t seen, int pidfd, double timeout) {
    auto arrived = [&] { return lane.parts.load() != seen; };
    if (arrived()) {
        typical_ns_ -= typical_ns_ / 4;
        return CallStatus::ok;
    }
    const uint64_t start = now_ns();
    auto done = [&](CallStatus status) {
        uint64_t waited = std::min<uint64_t>(now_ns() - start, 1'000'000'000);
        typical_ns_ = static_cast<uint32_t>((3ull * typical_ns_ + waited) / 4);
        return status;
    };
    if (spin_ns_ && typical_ns_ < spin_ns_) {
        do {
            for (int i = 0; i < 32; ++i) {
                if (arrived()) return done(CallStatus::ok);
                pause();
            }
        } while (now_ns() - start < spin_ns_);
    }
    for (;;) {
        uint64_t slice = pidfd >= 0 ? look_every_ns : forever_ns;
        if (timeout >= 0) {
            double left = timeout - static_cast<double>(now_ns() - start) * 1e-9;
            if (left <= 0) return done(arrived() ? CallStatus::ok : CallStatus::timeout);
            slice = std::min(slice, static_cast<uint64_t>(std::min(left, 1e6) * 1e9) + 1);
        }
        lane.sleeping.store(1);
        if (!arrived()) futex_wait(lane.parts, seen, slice);
        lane.sleeping.store(0);
        if (arrived()) return done(CallStatus::ok);
        // A worker may answer and then die: its last word counts, hence the second look after its death.
        if (pidfd >= 0 && exited(pidfd)) return done(arrived() ? CallStatus::ok : CallStatus::died);
    }
}

CallStatus Channel::send_parts(Lane &out, Lane &back, std::byte *buffer, std::span<const std::byte> message, int pidfd,
                               double timeout) {
    uint32_t &seen = &back == &block_->to_driver ? seen_driver_ : seen_worker_;
    for (;;) {
        auto bytes = static_cast<uint32_t>(std::min<size_t>(message.size(), ChannelBlock::buffer_bytes));
        if (bytes) std::memcpy(buffer, message.data(), bytes);
        message = message.subspan(bytes);
        publish(out, bytes, message.empty() ? 0 : 1);
        if (message.empty()) return CallStatus::ok;
        if (auto status = wait_part(back, seen, pidfd, timeout); status != CallStatus::ok) return status;
        ++seen;
    }
}

CallStatus Channel::receive_parts(Lane &in, Lane &back, const std::byte *buffer, std::vector<std::byte> &message,
                                  int pidfd, double timeout) {
    uint32_t &seen = &in == &block_->to_driver ? seen_driver_ : seen_worker_;
    if (!partial_) message.clear();
    for (;;) {
        if (auto status = wait_part(in, seen, pidfd, timeout); status != CallStatus::ok) return status;
        ++seen;
        message.insert(message.end(), buffer, buffer + std::min(in.bytes, ChannelBlock::buffer_bytes));
        partial_ = in.more != 0;
        if (!partial_) return CallStatus::ok;
        publish(back, 0, 0);
    }
}

CallStatus Channel::send(std::span<const std::byte> request, int pidfd, double timeout) {
    block_->done.store(0, std::memory_order_relaxed);
    return send_parts(block_->to_worker, block_->to_driver, block_->request, request, pidfd, timeout);
}

CallStatus Channel::wait(std::vector<std::byte> &response, int pidfd, double timeout) {
    return receive_parts(block_->to_driver, block_->to_worker, block_->response, response, pidfd, timeout);
}

CallStatus Channel::call(std::span<const std::byte> request, std::vector<std::byte> &response, int pidfd,
                         double timeout) {
    const uint64_t start = now_ns();
    if (auto status = send(request, pidfd, timeout); status != CallStatus::ok) return status;
    if (timeout >= 0) timeout = std::max(0.0, timeout - static_cast<double>(now_ns() - start) * 1e-9);
    return wait(response, pidfd, timeout);
}

void Channel::receive(std::vector<std::byte> &request) {
    receive_parts(block_->to_worker, block_->to_driver, block_->request, request, -1, -1);
}

void Channel::respond(std::span<const std::byte> response) {
    send_parts(block_->to_driver, block_->to_worker, block_->response, response, -1, -1);
}

}  // namespace burnish::executors
