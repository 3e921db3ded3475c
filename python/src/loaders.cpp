#include "loaders.h"

#include <fmt/format.h>

#include <cstring>

#include "base/hash.h"
#include "data/items.h"
#include "pantala/error.h"

namespace pantala::python {

std::shared_ptr<nb::object> kept_object(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* kept) {
            if (!Py_IsInitialized()) return;  // whatever it was, it is gone with the interpreter
            const nb::gil_scoped_acquire lock;
            delete kept;
          }};
}

namespace {

class ArraySource : public data::ItemSource {
 public:
  ArraySource(nb::handle array, std::string name)
      : read_(array, name), kept_(kept_object(nb::borrow(array))), name_(std::move(name)) {
    if (read_.shape().rank() == 0)
      throw TypeError(fmt::format("{}: there is no axis of items", name_));
    form_ = {read_.dtype() == boolean ? u8 : read_.dtype(), read_.shape().without(0), false};
    bytes_ = static_cast<std::size_t>(form_.shape.numel() * dtype_bytes(form_.dtype));
  }
  ~ArraySource() override {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire lock;
    read_ = ReadArray();
  }
  ArraySource(const ArraySource&) = delete;
  ArraySource& operator=(const ArraySource&) = delete;

  std::int64_t items() const override { return read_.shape()[0]; }
  data::ItemForm form() const override { return form_; }
  data::Array item(std::int64_t number) const override {
    data::Array item = data::make_array(form_.dtype, form_.shape);
    const std::span<std::byte> to = data::bytes_of(item);
    if (!to.empty())
      std::memcpy(to.data(), first() + static_cast<std::size_t>(number) * bytes_, bytes_);
    return item;
  }
  std::string item_name(std::int64_t number) const override {
    return fmt::format("{}[{}]", name_, number);
  }
  std::uint64_t hash() const override {
    const std::size_t count = static_cast<std::size_t>(items()) * bytes_;
    return fnv1a({reinterpret_cast<const char*>(first()), count});
  }

 private:
  const std::byte* first() const { return static_cast<const std::byte*>(read_.bytes()); }

  ReadArray read_;
  std::shared_ptr<nb::object> kept_;
  std::string name_;
  data::ItemForm form_;
  std::size_t bytes_ = 0;  // of an item
};

std::optional<std::int64_t> number_or_none(nb::handle value) {
  return nb::cast<std::optional<std::int64_t>>(value);
}

class IterationLoader : public data::Loader {
 public:
  explicit IterationLoader(nb::object iteration) : kept_(kept_object(std::move(iteration))) {}

  void shuffle(std::uint64_t epoch) override {
    const nb::gil_scoped_acquire lock;
    epoch_ = epoch;
    kept_->attr("begin")(epoch);
  }
  void reset() override { shuffle(epoch_); }
  std::optional<data::Batch> next_batch() override {
    const nb::gil_scoped_acquire lock;
    const nb::object values = kept_->attr("next")();
    if (values.is_none()) return {};
    return batch_of(values);
  }
  std::optional<std::int64_t> batches() const override { return number("batches"); }
  std::optional<std::int64_t> items() const override { return number("items"); }
  std::vector<std::int64_t> batch_sizes() const override {
    const nb::gil_scoped_acquire lock;
    return nb::cast<std::vector<std::int64_t>>(kept_->attr("sizes")());
  }

 private:
  std::optional<std::int64_t> number(const char* name) const {
    const nb::gil_scoped_acquire lock;
    return number_or_none(kept_->attr(name)());
  }

  std::shared_ptr<nb::object> kept_;
  std::uint64_t epoch_ = 0;
};

}  // namespace

std::shared_ptr<const data::ItemSource> source_of(nb::handle array, const std::string& name) {
  return std::make_shared<ArraySource>(array, name);
}

std::unique_ptr<data::Loader> iteration_loader(nb::object iteration) {
  return std::make_unique<IterationLoader>(std::move(iteration));
}

data::Batch batch_of(nb::handle values) {
  data::Batch batch{ReadArray(values[0], "the data of a batch").array(),
                    ReadArray(values[1], "the labels of a batch").array()};
  for (const nb::handle other : values[2]) {
    auto name = nb::cast<std::string>(other[0]);
    data::Array array = ReadArray(other[1], fmt::format("input '{}'", name)).array();
    batch.more.push_back({std::move(name), std::move(array)});
  }
  return batch;
}

}  // namespace pantala::python
