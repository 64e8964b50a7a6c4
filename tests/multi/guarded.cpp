/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guarded.cpp - two ranks; the handlers of rank 1 throw, in the midst of messages and of others' exceptions, and the
 * endpoint serves as before. Rank 1 prints "ok". With an argument, whole, stream or death, that handler is not
 * guarded: rank 1 has to end in it, although it calls extract where it catches all. */
#include <runnel/fm.h>
#include <runnel/guarded.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

enum { STREAM = 1, WHOLE, QUIET, LAST, ROUNDS = 200, LONG = 100000 };

static unsigned char buf[LONG];
static unsigned came, thrown, last;

[[noreturn]] static void fail(const char *what)
{
    std::printf("not ok - %s: %s\n", what, rnl_last_error()->text);
    std::exit(1);
}

static void must(const char *what, int64_t status)
{
    if (status < 0)
        fail(what);
}

/* Throws after half of the message has come, which it waits for. */
static int on_stream(rnl_stream *s, unsigned, void *)
{
    static thread_local unsigned char half[LONG / 2];
    must("rnl_receive", rnl_receive(s, half, sizeof half));
    came++;
    throw std::runtime_error("stream " + std::to_string(half[0]));
}

static int on_whole(const void *p, size_t n, unsigned, void *)
{
    came++;
    if (n != 5 || std::memcmp(p, "whole", 5) != 0)
        fail("what came");
    throw 7;
}

static int on_quiet(const void *, size_t, unsigned, void *) noexcept
{
    came++;
    return RNL_DONE;
}

static int on_last(const void *, size_t, unsigned, void *)
{
    last = 1;
    return RNL_DONE;
}

static int fm_throws(FM_stream *, unsigned)
{
    throw 1;
}
static_assert(std::is_same_v<decltype(rnl::guarded<fm_throws, FM_QUIT>), int (*const)(FM_stream *, unsigned) noexcept>);

static void send_long(rnl_endpoint *ep)
{
    rnl_message m{};
    rnl_stream *to;
    m.peer = 1, m.handler = STREAM, m.bound = sizeof buf;
    must("rnl_begin", rnl_begin(ep, &m, &to));
    must("rnl_piece", rnl_piece(to, buf, sizeof buf));
    must("rnl_end", rnl_end(to));
}

/* Through a pointer, so that the compiler takes the call for one that may throw. */
static int64_t (*volatile extract)(rnl_endpoint *, size_t) = rnl_extract;

static void on_death(void *, unsigned, rnl_death_reason)
{
    throw std::runtime_error("death");
}

static void unguarded(rnl_endpoint *ep, const char *which)
{
    const bool whole = std::strcmp(which, "whole") == 0;
    rnl_on_death(ep, on_death, nullptr);
    must("rnl_handler_stream", rnl_handler_stream(ep, STREAM, on_stream, nullptr));
    must("rnl_handler_whole", rnl_handler_whole(ep, WHOLE, on_whole, nullptr, 0));
    if (rnl_rank(ep) == 0 && std::strcmp(which, "death") == 0)
        std::_Exit(0);
    if (rnl_rank(ep) == 0 && whole) {
        must("rnl_send", rnl_send(ep, 1, WHOLE, "whole", 5));
    } else if (rnl_rank(ep) == 0) {
        send_long(ep);
    }
    while (rnl_rank(ep) == 1) {
        try {
            must("rnl_extract", extract(ep, SIZE_MAX));
        } catch (...) {
            fail("an exception came through extract");
        }
    }
    must("rnl_close", rnl_close(ep));
}

int main(int argc, char **argv)
{
    rnl_endpoint *ep;
    must("rnl_open", rnl_open(&ep, nullptr));
    if (argc > 1) {
        unguarded(ep, argv[1]);
        return 0;
    }
    must("rnl_handler_stream", rnl_handler_stream(ep, STREAM, rnl::guarded<on_stream>, nullptr));
    must("rnl_handler_whole", rnl_handler_whole(ep, WHOLE, rnl::guarded<on_whole>, nullptr, 0));
    must("rnl_handler_whole", rnl_handler_whole(ep, QUIET, rnl::guarded<on_quiet>, nullptr, 0));
    must("rnl_handler_whole", rnl_handler_whole(ep, LAST, rnl::guarded<on_last>, nullptr, 0));
    if (rnl::guarded<fm_throws, FM_QUIT>(nullptr, 0) != FM_QUIT)
        fail("what a guarded handler of fm.h returns");
    try {
        rnl::rethrow();
        fail("rethrow has nothing");
    } catch (int) {
    }
    if (rnl_rank(ep) == 0) {
        for (unsigned i = 0; i < ROUNDS; i++) {
            buf[0] = static_cast<unsigned char>(i);
            send_long(ep);
            must("rnl_send", rnl_send(ep, 1, WHOLE, "whole", 5));
            must("rnl_send", rnl_send(ep, 1, QUIET, "", 0));
        }
        must("rnl_send", rnl_send(ep, 1, LAST, "", 0));
    } else {
        while (!last) {
            must("rnl_extract", rnl_extract(ep, SIZE_MAX));
            try {
                rnl::rethrow();
            } catch (const std::runtime_error &e) {
                thrown += std::strncmp(e.what(), "stream ", 7) == 0;
            } catch (int seven) {
                thrown += seven == 7;
            }
        }
        if (came != 3 * ROUNDS || thrown != 2 * ROUNDS)
            std::printf("not ok - %u handlers ran, %u exceptions were thrown again\n", came, thrown);
        else
            std::printf("ok\n");
    }
    must("rnl_close", rnl_close(ep));
    return 0;
}
