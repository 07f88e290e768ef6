// The main loop of a worker process.
#pragma once
#include "executors/channel.hpp"
#include "executors/pyvalue.hpp"

namespace burnish::executors {

// Serves requests until one without tasks comes. Holds the GIL while it decodes, runs and encodes, not while it waits.
// pickle: object -> bytes. describe: exception -> (bytes | None, type name, message, traceback text).
void serve(Channel &channel, Decoder &decoder, nb::callable pickle, nb::callable describe);

}  // namespace burnish::executors
