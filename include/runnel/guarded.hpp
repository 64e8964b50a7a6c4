/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runnel/guarded.hpp - handlers in C++ that may throw (C++17; nothing to link). No exception may pass through a
 * function of the library: the process ends. rnl::guarded<f> is a function of f's type that catches what leaves f,
 * and rnl::rethrow() throws it where the program can handle it:
 *
 *     rnl_handler_stream(ep, WORK, rnl::guarded<on_work>, &jobs);
 *     ...
 *     int64_t n = rnl_extract(ep, SIZE_MAX);
 *     rnl::rethrow();
 *
 * The endpoint stays usable: the message whose handler threw is done with, and what the handler did not receive of it
 * is dropped. */
#ifndef RUNNEL_GUARDED_HPP
#define RUNNEL_GUARDED_HPP

#include <exception>
#include <type_traits>
#include <utility>

#include "runnel.h"

namespace rnl
{
namespace detail
{

/* The first exception that left a handler on this thread and was not thrown again yet. */
inline std::exception_ptr &caught() noexcept
{
    static thread_local std::exception_ptr first;
    return first;
}

template <auto Function, int Quit, class Type = decltype(Function)> struct guard;

template <auto Function, int Quit, class Result, class... Arguments>
struct guard<Function, Quit, Result (*)(Arguments...)> {
    static Result call(Arguments... arguments) noexcept
    {
        try {
            return Function(arguments...);
        } catch (...) {
            if (!caught())
                caught() = std::current_exception();
        }
        if constexpr (!std::is_void_v<Result>)
            return Result(Quit);
    }
};

template <auto Function, int Quit, class Result, class... Arguments>
struct guard<Function, Quit, Result (*)(Arguments...) noexcept>
    : guard<static_cast<Result (*)(Arguments...)>(Function), Quit> {
};

} // namespace detail

/* The function to register in place of Function, for handlers and any other function that the library calls. If
 * Function throws, it returns Quit: with RNL_QUIT the running extract returns after this handler; for handlers of fm.h
 * write rnl::guarded<f, FM_QUIT>. Of several exceptions before the next rethrow the first is kept. */
template <auto Function, int Quit = RNL_QUIT> inline constexpr auto guarded = &detail::guard<Function, Quit>::call;

/* Throws the exception that left a guarded function on this thread, if there is one, and forgets it. Call it after each
 * call that may run handlers, outside handlers. The exception of a function that a thread of the library runs
 * (RNL_OFFER_IN_THREAD) stays with that thread, and nobody throws it again: catch inside such a function. Inside a
 * catch block call nothing of the library that may suspend the handler: the C++ run-time counts the exceptions of a
 * thread, not those of a handler. */
inline void rethrow()
{
    if (detail::caught())
        std::rethrow_exception(std::exchange(detail::caught(), nullptr));
}

} // namespace rnl

#endif
