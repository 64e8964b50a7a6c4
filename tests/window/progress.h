/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress.h - scenes of an owner whose endpoint a thread of the library serves, and of those that import its window:
 * each is played over window endpoints, and carried by the endpoint itself, as between hosts. */
#ifndef RNL_TESTS_WINDOW_PROGRESS_H
#define RNL_TESTS_WINDOW_PROGRESS_H

#include "runnel/adapter.h"
#include "runnel/window.h"

#include "endpoint/endpoint.h"
#include "support/hub.h"
#include "support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END = 1000000, ID = 7, BYTES = 100000, BOUND_S = 90, WORD = 8, HANDLER = 3, POSTED };
#define BOUND_NS ((int64_t)BOUND_S * 1000 * 1000 * 1000)

struct scene {
    uint32_t flags;
    bool apart;
    unsigned ranks;
    _Atomic int step;
    void (*owner)(struct scene *, struct test_thread *);
    void (*importer)(struct scene *, struct test_thread *);
    unsigned char *at;
    rnl_window *w;
    rnl_window_admit *admit;
    pthread_t thread;    /* the owner's */
    rnl_endpoint *posts; /* what notifications post a message to rank 1 of */
    _Atomic unsigned notes, notes_elsewhere, asked, asked_elsewhere, messages, messages_elsewhere, posted;
};

static inline void say(struct scene *s, int step)
{
    atomic_store(&s->step, step);
}

/* Calls nothing of the library. */
static inline void compute(struct scene *s, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->step) < step) {
        TEST_MUST(test_now_ns() < end);
        sched_yield();
    }
}

static inline void progress(struct test_thread *t)
{
    int64_t did = rnl_wait(t->ep, 1000000);
    TEST_MUST(did >= 0 || did == RNL_TIMED_OUT);
}

static inline void await(struct scene *s, struct test_thread *t, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->step) < step) {
        progress(t);
        TEST_MUST(test_now_ns() < end);
    }
}

static inline void count(const struct scene *s, _Atomic unsigned *all, _Atomic unsigned *elsewhere)
{
    if (!pthread_equal(pthread_self(), s->thread))
        atomic_fetch_add(elsewhere, 1);
    atomic_fetch_add(all, 1);
}

static inline void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    struct scene *s = ctx;
    (void)w, (void)peer, (void)offset, (void)n;
    if (s->posts) {
        static const struct rnl_buffer text = {"8 bytes", 8};
        const struct rnl_message b = {.peer = 1, .handler = POSTED, .bound = 8};
        TEST_MUST(!s->posts->fast.open_short); /* the owner's fast path looks there before it has the turn */
        TEST_MUST(rnl_post(s->posts, &b, &text, 1, NULL, NULL) == 0);
    }
    count(s, &s->notes, &s->notes_elsewhere);
}

static inline int on_admit(void *ctx, unsigned peer)
{
    struct scene *s = ctx;
    (void)peer;
    count(s, &s->asked, &s->asked_elsewhere);
    return 0;
}

static inline int on_message(rnl_stream *stream, unsigned peer, void *ctx)
{
    struct scene *s = ctx;
    uint64_t word;
    (void)peer;
    TEST_MUST(rnl_receive(stream, &word, sizeof word) == 0);
    count(s, &s->messages, &s->messages_elsewhere);
    return RNL_DONE;
}

static inline void offer(struct scene *s, struct test_thread *t)
{
    void *at;
    s->thread = pthread_self();
    TEST_MUST(rnl_window_alloc(t->ep, BYTES, &at, &s->w) == 0);
    s->at = at;
    const struct rnl_offer o = {
        .size = sizeof o, .id = ID, .flags = s->flags, .admit = s->admit, .notify = on_note, .ctx = s};
    TEST_MUST(rnl_window_offer(s->w, &o) == 0);
}

static inline rnl_import *import(struct test_thread *t)
{
    rnl_import *m;
    TEST_MUST(rnl_window_import(t->ep, 0, ID, BOUND_NS, &m, NULL) == 0);
    return m;
}

static inline void body(struct test_thread *t)
{
    struct scene *s = t->arg;
    TEST_MUST(rnl_progress_start(t->ep) == 0 && rnl_progress_start(t->ep) == 0);
    if (s->apart)
        t->ep->env->open = NULL;
    TEST_MUST(rnl_handler_stream(t->ep, HANDLER, on_message, s) == HANDLER);
    (t->rank == 0 ? s->owner : s->importer)(s, t);
    while (atomic_load(&s->step) < END)
        progress(t);
}

static inline void play(const struct scene *s)
{
    for (unsigned apart = getenv("RNL_TEST_REMOTE") != NULL; apart < 2; apart++) {
        struct scene copy = *s;
        copy.flags |= RNL_OFFER_CARRIED;
        copy.apart = apart;
        assert_int_equal(test_hub_threads(s->ranks ? s->ranks : 2, NULL, body, &copy), 0);
    }
}

#endif
