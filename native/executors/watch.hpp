// What keeps a worker process from outliving its driver.
#pragma once
#include <sys/types.h>

#include <thread>

#include "executors/channel.hpp"

namespace burnish::executors {

// SIGKILL for this process when the thread that started it ends; ends at once if the parent is already another process.
void die_with_parent(pid_t parent);

// A thread that never needs the GIL: writes the heartbeat and ends the process when the other end of `pipe` closes,
// whatever Python code is doing.
class Watch {
public:
    Watch(Channel &channel, int pipe);
    ~Watch();
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;

private:
    void run();
    Channel &channel_;
    int pipe_, stop_;
    std::thread thread_;
};

}  // namespace burnish::executors
