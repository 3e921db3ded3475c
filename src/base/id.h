// Numbers that name the members of a list. An id of one kind cannot be taken for one of another, or
// for a count, and "none" is a state of its own instead of a -1.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace pantala {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;  // none
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}

  constexpr bool valid() const { return index_ != kNone; }
  constexpr std::size_t index() const { return index_; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index_ = kNone;
};

// A list whose members are named by ids.
template <class IdType, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T()) : list_(size, value) {}

  IdType push_back(T value) {
    list_.push_back(std::move(value));
    return IdType(list_.size() - 1);
  }
  decltype(auto) operator[](IdType id) { return list_[id.index()]; }
  decltype(auto) operator[](IdType id) const { return list_[id.index()]; }
  std::size_t size() const { return list_.size(); }

  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

  // The names of all members, in order.
  class Ids {
   public:
    class Iterator {
     public:
      explicit Iterator(std::size_t at) : at_(at) {}
      IdType operator*() const { return IdType(at_); }
      Iterator& operator++() {
        ++at_;
        return *this;
      }
      bool operator==(const Iterator&) const = default;

     private:
      std::size_t at_;
    };
    explicit Ids(std::size_t size) : size_(size) {}
    Iterator begin() const { return Iterator(0); }
    Iterator end() const { return Iterator(size_); }

   private:
    std::size_t size_;
  };
  Ids ids() const { return Ids(list_.size()); }

 private:
  std::vector<T> list_;
};

}  // namespace pantala
