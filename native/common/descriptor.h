// The number of an open file or directory.
#pragma once

#include <unistd.h>

namespace gompfs {

// Closes the file. -1 stands for no file.
class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    ~Descriptor() { close(); }
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        close();
        number_ = other.release();
        return *this;
    }

    int number() const { return number_; }

    void close() {
        if (number_ >= 0) {
            ::close(number_);
        }
        number_ = -1;
    }

    // Returns the number, which the caller closes.
    int release() {
        const int number = number_;
        number_ = -1;
        return number;
    }

  private:
    int number_;
};

}  // namespace gompfs
