// Whether a device computes what the CPU computes. The first session on a GPU with a driver runs
// small training steps that use every kind of kernel, forward and backward, on both; the result is
// kept in the user's cache folder for this device, driver and version of Pantala. Kinds of kernels
// that explain the steps that were wrong are refused from then on. Where the device could not run a
// step (no memory, a reset) its kernels are refused in this process, and the next one tests again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/vulkan/arithmetic.h"
#include "plan/plan.h"

namespace pantala::runtime {

struct QualifiedStep {
  std::string name;                  // "contract"
  std::string wrong;                 // what is, or ""
  std::vector<std::string> kernels;  // the kinds of kernels that it has run
  bool failed = false;  // the device could not run it: this may have been for a moment only
  // What the device does not have that the step needs: kernels that need it are refused by name
  // wherever they occur, and nothing is wrong with the others.
  std::string lacks = {};
};
struct Qualification {
  std::string identity;  // of device, driver and version
  std::vector<QualifiedStep> steps;
  device::vulkan::Arithmetic arithmetic = {};
  bool remembered = false;  // of an earlier run
  bool is_right() const;    // every step
  // Kinds of kernels: of those in no step that was right the ones in most that were wrong, until
  // there is one in each. Of a wrong step whose kinds were all right elsewhere, those that were so
  // least often: such a kind is wrong only for some numbers or sizes, but no one knows which.
  std::vector<std::string> refused() const;
  std::string text() const;  // one line for people
};

// Of a device by its name; runs the steps if that was not done before. Devices that are tested when
// Pantala is (cpu, kir) have no steps.
Qualification qualification_of(const std::string& device);
// The same, whatever is known, and nothing is kept.
Qualification qualify(const std::string& device);
// Of an earlier run; nothing is run.
std::optional<Qualification> remembered_qualification(const std::string& device);
// UnsupportedError if the plan has a kernel that is refused.
void check_qualified(const std::string& device, const plan::Plan& plan);

}  // namespace pantala::runtime
