#include "tools/profile/limits.h"

#include <new>
#include <string_view>
#include <system_error>

#include "base/doing.h"
#include "base/log.h"
#include "device/cpu/probe.h"
#include "device/device.h"
#include "pantala/error.h"

namespace pantala::tools {

namespace {

constexpr std::string_view kUnknown = "what the machine can do at most is not known: ";

}  // namespace

MachineLimits probed_limits(int threads, std::string_view device) {
  if (device::has_driver(device)) return {};
  const Doing doing("measuring what the machine can do");
  try {
    const device::cpu::Probe probe = device::cpu::probe_host({.workers = threads});
    return {.flops = probe.flops, .bytes = probe.bytes()};
  } catch (const Error& error) {
    logging::warning("{}{}", kUnknown, error.what());
  } catch (const std::bad_alloc&) {
    logging::warning("{}{}", kUnknown, no_memory_text(0));
  } catch (const std::system_error& error) {  // threads
    logging::warning("{}{}", kUnknown, error.what());
  }
  return {};
}

}  // namespace pantala::tools
