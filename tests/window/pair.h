/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.h - the owner of a window and its importer, each a process, which were introduced to each other. */
#ifndef RNL_TESTS_WINDOW_PAIR_H
#define RNL_TESTS_WINDOW_PAIR_H

#include "endpoint/endpoint.h"
#include "runnel/window.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/must.h"

enum { PAGE = 4096, BYTES = 4 * PAGE, ID = 3 };
#define BOUND_NS ((int64_t)30 * 1000 * 1000 * 1000)

struct shared { /* by both processes */
    _Atomic int step;
    _Atomic uint64_t word;
};

struct side {
    rnl_endpoint *ep;
    unsigned peer;
    struct shared *shared;
    pid_t other; /* of the owner: the importer's process */
};

static inline void say(struct side *s, int step)
{
    atomic_store(&s->shared->step, step);
}

static inline void progress(struct side *s)
{
    int64_t did = rnl_wait(s->ep, 1000000);
    TEST_MUST(did >= 0 || did == RNL_TIMED_OUT);
}

static inline void await(struct side *s, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->shared->step) < step) {
        progress(s);
        TEST_MUST(test_now_ns() < end);
    }
}

#define UNTIL(s, x)                                              \
    do {                                                         \
        uint64_t until_end = test_now_ns() + (uint64_t)BOUND_NS; \
        while (!(x)) {                                           \
            progress(s);                                         \
            TEST_MUST(test_now_ns() < until_end);                \
        }                                                        \
    } while (0)

/* Calls nothing of the library meanwhile. */
static inline void compute_until(struct side *s, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->shared->step) < step) {
        TEST_MUST(test_now_ns() < end);
        test_sleep_ms(1);
    }
}

static inline rnl_window *window(struct side *s, uint32_t id, uint32_t flags, unsigned char **at)
{
    const struct rnl_offer o = {.size = sizeof o, .id = id, .flags = flags};
    rnl_window *w;
    void *p;
    TEST_MUST(rnl_window_alloc(s->ep, BYTES, &p, &w) == 0);
    TEST_MUST(rnl_window_offer(w, &o) == 0);
    *at = p;
    return w;
}

static inline rnl_import *import(struct side *s)
{
    rnl_import *m;
    TEST_MUST(rnl_window_import(s->ep, s->peer, ID, BOUND_NS, &m, NULL) == 0);
    return m;
}

static uid_t stranger; /* the importer's user, if it is another one */

static inline void become_stranger(void)
{
    TEST_MUST(!stranger || setresuid(stranger, stranger, stranger) == 0);
}

/* Runs importer in a process of its own, introduced to this one. */
static inline void play(const char *name, void (*owner)(struct side *), void (*importer)(struct side *))
{
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE};
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    struct shared *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct side s = {.shared = shared};
    int pair[2], status;
    TEST_MUST(shared != MAP_FAILED && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    fflush(stdout);
    pid_t child = fork();
    TEST_MUST(child >= 0);
    if (child == 0)
        become_stranger();
    TEST_MUST(child || prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); /* the child outlives no test that has failed */
    TEST_MUST(rnl_open(&s.ep, &alone) == 0);
    TEST_MUST(rnl_introduce(s.ep, pair[child == 0], child ? RNL_ACCEPT : RNL_OFFER, stranger ? &anyone : NULL, BOUND_NS,
                            &s.peer) == 0);
    close(pair[0]);
    close(pair[1]);
    if (child == 0) {
        importer(&s);
        TEST_MUST(rnl_close(s.ep) == 0);
        _exit(0);
    }
    s.other = child;
    owner(&s);
    TEST_MUST(rnl_close(s.ep) == 0);
    TEST_MUST(waitpid(child, &status, 0) == child);
    TEST_MUST(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    munmap(shared, PAGE);
    printf("ok - %s\n", name);
}

#endif
