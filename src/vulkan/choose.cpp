#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <mutex>
#include <optional>

#include "base/log.h"
#include "pantala/error.h"
#include "vulkan/instance.h"

namespace pantala::vulkan {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string list(const std::vector<DeviceInfo>& devices) {
  std::string text;
  for (const DeviceInfo& device : devices)
    text += fmt::format("{}vulkan:{} is {}{}", text.empty() ? "" : ", ", device.number, device.name,
                        device.software ? " (software)" : "");
  return text;
}

std::vector<DeviceInfo> fitting(const std::vector<DeviceInfo>& all, std::string_view choice) {
  std::vector<DeviceInfo> found;
  const std::optional<int> number = number_of(choice);
  for (const DeviceInfo& device : all) {
    const bool fits = choice.empty() ? !device.software
                      : number       ? device.number == *number
                               : lower(device.name + ' ' + device.driver).find(lower(choice)) !=
                                     std::string::npos;
    if (fits) found.push_back(device);
  }
  if (choice.empty() && found.size() > 1) found.resize(1);
  return found;
}

}  // namespace

DeviceInfo choose(std::string_view choice) {
  std::string why;
  const std::shared_ptr<const Instance> instance = Instance::get(&why);
  if (!instance) throw DeviceError(fmt::format("there is no Vulkan device: {}", why));
  const std::vector<DeviceInfo>& all = instance->devices();
  const std::vector<DeviceInfo> found = fitting(all, choice);
  if (found.empty() && choice.empty())
    throw DeviceError(fmt::format(
        "there is no GPU: {}; a software device is only taken if it is named", list(all)));
  if (found.empty())
    throw DeviceError(fmt::format("no Vulkan device is '{}': {}", choice, list(all)));
  if (found.size() > 1)
    throw DeviceError(fmt::format("'{}' names several Vulkan devices: {}", choice, list(found)));
  if (const std::string missing = found[0].missing(); !missing.empty())
    throw DeviceError(fmt::format("{} cannot be used: it lacks {}", found[0].name, missing));
  return found[0];
}

std::string resolved_device(std::string_view name) {
  if (name != "auto") return std::string(name);
  try {
    choose("");
    return "vulkan";
  } catch (const DeviceError& error) {
    static std::once_flag told;
    std::call_once(told, [&] { logging::warning("the CPU computes: {}", error.what()); });
    return "cpu";
  }
}

}  // namespace pantala::vulkan
