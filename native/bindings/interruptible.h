// Lets Ctrl-C end long calls from Python.
//
// Python runs signal handlers only in its main thread, between two steps of the interpreter. So a
// long C++ call in the main thread would ignore Ctrl-C. run_interruptibly therefore runs the work
// on another thread, while the main thread checks for signals every 50 ms and cancels the work if a
// handler raises.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "common/cancellation.h"

namespace gompfs {

// Whether this is the thread in which Python runs signal handlers.
inline bool is_pythons_main_thread() {
    namespace nb = nanobind;
    const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
    return nb::cast<unsigned long>(thread.attr("ident")) == PyThread_get_thread_ident();
}

// Runs work() on a new thread while this thread checks for signals.
template <typename Work>
void run_beside_signals(Work&& work) {
    constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
    std::mutex mutex;
    std::condition_variable ended;
    bool has_ended = false;
    std::exception_ptr error;
    Cancellation cancellation(current_cancellation);
    const auto run = [&] {
        const CancellationScope scope(&cancellation);
        try {
            work();
        } catch (...) {
            error = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        has_ended = true;
        ended.notify_one();
    };
    std::thread thread;
    try {
        thread = std::thread(run);
    } catch (const std::system_error&) {
        // The system allows no more threads; this one does the work itself.
    }
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    {
        const nanobind::gil_scoped_release release;
        if (!thread.joinable()) {
            run();
        }
        std::unique_lock lock(mutex);
        while (!ended.wait_for(lock, kBetweenLooks, [&] { return has_ended; })) {
            lock.unlock();
            {
                const nanobind::gil_scoped_acquire acquire;
                if (type == nullptr && PyErr_CheckSignals() != 0) {
                    // The interpreter may run other code before the exception is restored.
                    PyErr_Fetch(&type, &value, &trace);
                    cancellation.cancel();
                }
            }
            lock.lock();
        }
        lock.unlock();
        if (thread.joinable()) {
            thread.join();
        }
    }
    if (type != nullptr) {
        PyErr_Restore(type, value, trace);
        throw nanobind::python_error();
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

// Runs work(), which must not use Python, without the GIL; must be called with the lock held. In
// Python's main thread, an exception of a signal handler, such as KeyboardInterrupt, cancels the
// work (see cancellation.h) and is thrown as soon as the work has ended.
template <typename Work>
void run_interruptibly(Work&& work) {
    if (is_pythons_main_thread()) {
        run_beside_signals(work);
    } else {
        const nanobind::gil_scoped_release release;
        work();
    }
}

}  // namespace gompfs
