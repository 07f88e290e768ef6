#include "executors/watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace burnish::executors {

namespace {
constexpr int beat_every_ms = 500;
}

void die_with_parent(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
}

Watch::Watch(Channel &channel, int pipe) : channel_(channel), pipe_(pipe), stop_(eventfd(0, EFD_CLOEXEC)) {
    if (stop_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    // Signals are for the main thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watch::~Watch() {
    uint64_t one = 1;
    if (write(stop_, &one, sizeof one) == sizeof one) thread_.join();
    close(stop_);
}

void Watch::run() {
    for (;;) {
        channel_.beat();
        pollfd fds[2] = {{pipe_, POLLIN, 0}, {stop_, POLLIN, 0}};
        if (poll(fds, 2, beat_every_ms) <= 0) continue;
        if (fds[1].revents) return;
        if (fds[0].revents) _exit(1);  // nobody writes to the pipe: it can only have been closed
    }
}

}  // namespace burnish::executors
