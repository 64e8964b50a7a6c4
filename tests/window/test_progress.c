/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rnl_progress_start: what peers do with the windows of an owner that computes and calls nothing, over window endpoints
 * and carried by the endpoint itself, as between hosts. */
#include "runnel/adapter.h"
#include "runnel/window.h"

#include "endpoint/endpoint.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/hub.h"

enum { END = 1000000, ID = 7, BYTES = 100000, BOUND_S = 90, WORD = 8, HANDLER = 3, COMPOSING, POSTED };
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

static void say(struct scene *s, int step)
{
    atomic_store(&s->step, step);
}

/* Calls nothing of the library. */
static void compute(struct scene *s, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->step) < step) {
        TEST_MUST(test_now_ns() < end);
        sched_yield();
    }
}

static void progress(struct test_thread *t)
{
    int64_t did = rnl_wait(t->ep, 1000000);
    TEST_MUST(did >= 0 || did == RNL_TIMED_OUT);
}

static void await(struct scene *s, struct test_thread *t, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->step) < step) {
        progress(t);
        TEST_MUST(test_now_ns() < end);
    }
}

static void count(const struct scene *s, _Atomic unsigned *all, _Atomic unsigned *elsewhere)
{
    if (!pthread_equal(pthread_self(), s->thread))
        atomic_fetch_add(elsewhere, 1);
    atomic_fetch_add(all, 1);
}

static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
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

static int on_admit(void *ctx, unsigned peer)
{
    struct scene *s = ctx;
    (void)peer;
    count(s, &s->asked, &s->asked_elsewhere);
    return 0;
}

static int on_message(rnl_stream *stream, unsigned peer, void *ctx)
{
    struct scene *s = ctx;
    uint64_t word;
    (void)peer;
    TEST_MUST(rnl_receive(stream, &word, sizeof word) == 0);
    count(s, &s->messages, &s->messages_elsewhere);
    return RNL_DONE;
}

static void offer(struct scene *s, struct test_thread *t)
{
    void *at;
    s->thread = pthread_self();
    TEST_MUST(rnl_window_alloc(t->ep, BYTES, &at, &s->w) == 0);
    s->at = at;
    const struct rnl_offer o = {
        .size = sizeof o, .id = ID, .flags = s->flags, .admit = s->admit, .notify = on_note, .ctx = s};
    TEST_MUST(rnl_window_offer(s->w, &o) == 0);
}

static rnl_import *import(struct test_thread *t)
{
    rnl_import *m;
    TEST_MUST(rnl_window_import(t->ep, 0, ID, BOUND_NS, &m, NULL) == 0);
    return m;
}

static void body(struct test_thread *t)
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

static void play(const struct scene *s)
{
    for (unsigned apart = getenv("RNL_TEST_REMOTE") != NULL; apart < 2; apart++) {
        struct scene copy = *s;
        copy.flags |= RNL_OFFER_CARRIED;
        copy.apart = apart;
        assert_int_equal(test_hub_threads(s->ranks ? s->ranks : 2, NULL, body, &copy), 0);
    }
}

/* ---- all accesses ---- */

static void accesses_owner(struct scene *s, struct test_thread *t)
{
    offer(s, t);
    compute(s, 1);
    TEST_MUST(rnl_extract(t->ep, SIZE_MAX) >= 0);
    TEST_MUST(s->at[5] == 0x5a && s->at[70000] == 0x5a);
    await(s, t, END);
}

static void accesses_importer(struct scene *s, struct test_thread *t)
{
    static unsigned char own[80000], back[80000];
    uint64_t was;
    rnl_import *m = import(t); /* the owner does not call for the first contact either */
    memset(own, 0x5a, sizeof own);
    for (unsigned i = 1; i <= 20; i++) {
        TEST_MUST(rnl_put(m, 5, own, i * 4000, 0) == 0 && rnl_quiet(t->ep, 0, BOUND_NS) == 0);
        TEST_MUST(rnl_get(m, 5, back, i * 4000) == 0 && memcmp(own, back, i * 4000) == 0);
        TEST_MUST(rnl_fetch_add(m, 90000, 3, &was) == 0 && was == (i - 1) * 3);
    }
    TEST_MUST(rnl_compare_swap(m, 90000, 60, 7, &was) == 0 && was == 60);
    TEST_MUST(rnl_atomic_any(m, 90000, 8, RNL_ATOMIC_XOR, 1, 0, NULL) == 0 && rnl_quiet(t->ep, 0, BOUND_NS) == 0);
    TEST_MUST(rnl_atomic_any(m, 90000, 8, RNL_ATOMIC_SWAP, 9, 0, &was) == 0 && was == 6);
    say(s, 1);
    say(s, END);
}

static void an_owner_that_computes_is_served(void **state)
{
    (void)state;
    play(&(struct scene){.owner = accesses_owner, .importer = accesses_importer});
}

/* ---- functions of the program ---- */

static void unmarked_owner(struct scene *s, struct test_thread *t)
{
    offer(s, t);
    await(s, t, 1); /* it is asked about the import */
    TEST_MUST(atomic_load(&s->asked) == 1);
    say(s, 2);
    compute(s, 3);
    TEST_MUST(atomic_load(&s->notes) == 0 && atomic_load(&s->messages) == 0);
    while (atomic_load(&s->notes) < 5 || atomic_load(&s->messages) < 5)
        progress(t);
    TEST_MUST(atomic_load(&s->notes_elsewhere) == 0 && atomic_load(&s->messages_elsewhere) == 0);
    TEST_MUST(atomic_load(&s->asked_elsewhere) == 0);
    say(s, END);
}

static void unmarked_importer(struct scene *s, struct test_thread *t)
{
    const uint64_t word = 1;
    uint64_t was;
    rnl_import *m = import(t);
    say(s, 1);
    await(s, t, 2); /* from here on it computes */
    for (unsigned i = 0; i < 5; i++)
        TEST_MUST(rnl_put(m, WORD, &word, 8, RNL_PUT_NOTIFY) == 0);
    TEST_MUST(rnl_quiet(t->ep, 0, BOUND_NS) == 0);
    for (unsigned i = 0; i < 5; i++)
        TEST_MUST(rnl_send(t->ep, 0, HANDLER, &word, sizeof word) == 0);
    if (!s->apart) /* else it waits behind the messages of the program */
        for (unsigned i = 0; i < 50; i++)
            TEST_MUST(rnl_fetch_add(m, 0, 1, &was) == 0 && was == i);
    say(s, 3);
    await(s, t, END);
}

static void functions_that_are_not_marked_run_in_the_owner(void **state)
{
    (void)state;
    play(&(struct scene){.owner = unmarked_owner, .importer = unmarked_importer, .admit = on_admit});
}

/* What the thread has left at the head of its lane is seen by the owner's first look. */
static void head_owner(struct scene *s, struct test_thread *t)
{
    offer(s, t);
    compute(s, 1);
    if (!s->apart)
        TEST_MUST(rnl_look(t->ep) == 1);
    await(s, t, END);
    TEST_MUST(atomic_load(&s->messages) == 1);
}

static void head_importer(struct scene *s, struct test_thread *t)
{
    uint64_t word = 1;
    rnl_import *m = import(t);
    TEST_MUST(rnl_fetch_add(m, 0, 1, &word) == 0 && rnl_send(t->ep, 0, HANDLER, &word, sizeof word) == 0);
    for (unsigned i = 1; i < 10 && !s->apart; i++) /* the thread has passed it */
        TEST_MUST(rnl_fetch_add(m, 0, 1, &word) == 0 && word == i);
    say(s, 1);
    while (atomic_load(&s->messages) < 1)
        progress(t);
    say(s, END);
}

static void a_message_that_is_left_is_seen_at_once(void **state)
{
    (void)state;
    play(&(struct scene){.owner = head_owner, .importer = head_importer});
}

/* The import comes while the owner computes, and is answered when it calls. */
static void late_owner(struct scene *s, struct test_thread *t)
{
    offer(s, t);
    compute(s, 1);
    for (unsigned i = 0; i < 200; i++) /* time for the thread to take it in: if it is slow, there is nothing to see */
        usleep(100);
    TEST_MUST(atomic_load(&s->asked) == 0);
    await(s, t, END);
    TEST_MUST(atomic_load(&s->asked) == 1 && atomic_load(&s->asked_elsewhere) == 0);
}

static void late_importer(struct scene *s, struct test_thread *t)
{
    rnl_import *m;
    int status = rnl_import_begin(t->ep, 0, ID, &m);
    TEST_MUST(status == 0);
    say(s, 1);
    while ((status = rnl_import_state(m, NULL)) == 0)
        progress(t);
    TEST_MUST(status == 1);
    say(s, END);
}

static void an_import_about_which_the_program_is_asked_waits(void **state)
{
    (void)state;
    play(&(struct scene){.owner = late_owner, .importer = late_importer, .admit = on_admit});
}

static void marked_owner(struct scene *s, struct test_thread *t)
{
    offer(s, t);
    compute(s, 1);
    TEST_MUST(atomic_load(&s->notes_elsewhere) == 6 && atomic_load(&s->asked_elsewhere) == 1);
    await(s, t, END);
}

static void marked_importer(struct scene *s, struct test_thread *t)
{
    const uint64_t word = 1;
    rnl_import *m = import(t);
    for (unsigned i = 0; i < 6; i++)
        TEST_MUST(rnl_put(m, WORD, &word, 8, RNL_PUT_NOTIFY) == 0);
    while (atomic_load(&s->notes) < 6)
        progress(t);
    say(s, 1);
    say(s, END);
}

static void functions_that_are_marked_run_meanwhile(void **state)
{
    (void)state;
    play(&(struct scene){
        .flags = RNL_OFFER_IN_THREAD, .owner = marked_owner, .importer = marked_importer, .admit = on_admit});
}

/* ---- by turns ---- */

enum { TURNS = 60 };

/* Computes for longer and longer, sends, waits, and uses its window by turns with the thread. */
static void turns_owner(struct scene *s, struct test_thread *t)
{
    const uint64_t *sum = NULL;
    offer(s, t);
    sum = (const uint64_t *)(const void *)s->at;
    for (unsigned i = 0; i < TURNS; i++) {
        uint64_t until = test_now_ns() + (uint64_t)(i % 13) * 400000;
        do
            sched_yield();
        while (test_now_ns() < until);
        TEST_MUST(rnl_send(t->ep, 1, HANDLER, &until, sizeof until) == 0);
        TEST_MUST(rnl_extract(t->ep, SIZE_MAX) >= 0);
        TEST_MUST(__atomic_load_n(sum, __ATOMIC_ACQUIRE) <= TURNS * 4);
        if (i % 20 == 0)
            progress(t);
    }
    await(s, t, END);
    while (atomic_load(&s->messages) < 2 * TURNS || atomic_load(&s->notes) < TURNS)
        progress(t);
    TEST_MUST(*sum == TURNS * 4);
}

static void turns_importer(struct scene *s, struct test_thread *t)
{
    uint64_t was, word = 5;
    rnl_import *m = import(t);
    for (unsigned i = 0; i < TURNS; i++) {
        TEST_MUST(rnl_fetch_add(m, 0, 4, &was) == 0 && was == i * 4);
        TEST_MUST(rnl_put(m, WORD, &word, 8, RNL_PUT_NOTIFY) == 0);
        TEST_MUST(rnl_send(t->ep, 0, HANDLER, &word, sizeof word) == 0);
    }
    TEST_MUST(rnl_quiet(t->ep, 0, BOUND_NS) == 0);
    while (atomic_load(&s->messages) < TURNS)
        progress(t);
    say(s, END);
}

static void owner_and_thread_alternate(void **state)
{
    (void)state;
    play(&(struct scene){.owner = turns_owner, .importer = turns_importer});
}

/* The thread always has something to do. */
static void asking_owner(struct scene *s, struct test_thread *t)
{
    offer(s, t);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
        while (atomic_load(&t->ep->turn.holder) == RNL_TURN_OWNER) { /* asleep or not */
            TEST_MUST(test_now_ns() < end);
            sched_yield();
        }
        TEST_MUST(rnl_extract(t->ep, SIZE_MAX) >= 0);
    }
    say(s, END);
}

static void asking_importer(struct scene *s, struct test_thread *t)
{
    uint64_t was, end = test_now_ns() + (uint64_t)BOUND_NS;
    rnl_import *m = import(t);
    for (uint64_t i = 0; atomic_load(&s->step) < END; i++) {
        TEST_MUST(rnl_fetch_add(m, 0, 1, &was) == 0 && was == i);
        TEST_MUST(test_now_ns() < end);
    }
}

static void an_owner_that_asks_gets_its_turn(void **state)
{
    (void)state;
    play(&(struct scene){.owner = asking_owner, .importer = asking_importer});
}

/* ---- messages in pieces, and limits ---- */

enum { COMPOSED = 20, LONGEST = 300000 };
static const size_t composed_bytes[] = {16, 16, 600, 40, LONGEST}; /* a cell, twice alike; an extent; a cell; chunks */

static int on_composed(rnl_stream *stream, unsigned peer, void *ctx)
{
    static unsigned char bytes[LONGEST];
    struct scene *s = ctx;
    unsigned i = atomic_load(&s->messages);
    size_t n = composed_bytes[i % 5];
    (void)peer;
    TEST_MUST(rnl_receive(stream, bytes, n) == 0);
    for (size_t k = 0; k < n; k++)
        TEST_MUST(bytes[k] == (unsigned char)(i + (k >= n / 2)));
    atomic_fetch_add(&s->messages, 1);
    return RNL_DONE;
}

static int on_posted(rnl_stream *stream, unsigned peer, void *ctx)
{
    struct scene *s = ctx;
    char text[8];
    (void)peer;
    TEST_MUST(rnl_receive(stream, text, sizeof text) == 0 && memcmp(text, "8 bytes", 8) == 0);
    atomic_fetch_add(&s->posted, 1);
    return RNL_DONE;
}

/* Begins a message, computes until the thread has worked, goes on, computes again, and ends it. */
static void composing_owner(struct scene *s, struct test_thread *t)
{
    static unsigned char bytes[LONGEST];
    s->posts = t->ep;
    offer(s, t);
    for (unsigned i = 0; i < COMPOSED; i++) {
        const struct rnl_message b = {.peer = 1, .handler = COMPOSING, .bound = composed_bytes[i % 5]};
        rnl_stream *stream;
        TEST_MUST(rnl_begin(t->ep, &b, &stream) == 0);
        for (unsigned half = 0; half < 2; half++) {
            memset(bytes, (int)(i + half), b.bound / 2);
            TEST_MUST(rnl_piece(stream, bytes, b.bound / 2) == 0);
            if ((i + half) % 3 == 0)
                continue; /* the thread has no time to take its turn */
            unsigned before = atomic_load(&s->notes);
            say(s, (int)(2 * i + half + 1));
            for (uint64_t end = test_now_ns() + (uint64_t)BOUND_NS; atomic_load(&s->notes) == before; sched_yield())
                TEST_MUST(test_now_ns() < end);
        }
        TEST_MUST(rnl_end(stream) == 0);
        while (atomic_load(&s->posted) < atomic_load(&s->notes)) /* else the next one begins behind what was posted */
            progress(t);
    }
    TEST_MUST(atomic_load(&s->notes_elsewhere) == atomic_load(&s->notes));
    say(s, 2 * COMPOSED + 1);
    await(s, t, END);
}

static void composing_importer(struct scene *s, struct test_thread *t)
{
    const uint64_t word = 1;
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    rnl_import *m = import(t);
    TEST_MUST(rnl_handler_stream(t->ep, COMPOSING, on_composed, s) == COMPOSING);
    TEST_MUST(rnl_handler_stream(t->ep, POSTED, on_posted, s) == POSTED);
    for (int step = 0, now; (now = atomic_load(&s->step)) <= 2 * COMPOSED;) {
        if (now > step)
            TEST_MUST(rnl_put(m, WORD, &word, 8, RNL_PUT_NOTIFY) == 0);
        step = now;
        progress(t);
        TEST_MUST(test_now_ns() < end);
    }
    while (atomic_load(&s->messages) < COMPOSED || atomic_load(&s->posted) < atomic_load(&s->notes))
        progress(t);
    say(s, END);
}

static void a_message_in_pieces_outlasts_turns(void **state)
{
    (void)state;
    play(&(struct scene){.flags = RNL_OFFER_IN_THREAD, .owner = composing_owner, .importer = composing_importer});
}

/* What extracts with limits take in, of nine messages of 8 bytes and three of 600. */
static void extract_by_limits(bool served, int64_t *took)
{
    static const size_t limits[] = {0, 1, 20, 0, 8, 601, SIZE_MAX};
    static unsigned char bytes[600];
    struct test_hub h;
    struct scene s = {.thread = pthread_self()};
    test_hub_open(&h, 2, NULL);
    if (served)
        assert_int_equal(rnl_progress_start(h.ep[0]), 0);
    assert_int_equal(rnl_handler_stream(h.ep[0], HANDLER, on_message, &s), HANDLER);
    for (unsigned i = 0; i < 12; i++) {
        const struct rnl_message b = {.peer = 0, .handler = HANDLER, .bound = i < 9 ? 8 : sizeof bytes};
        rnl_stream *stream;
        assert_int_equal(rnl_begin(h.ep[1], &b, &stream), 0);
        assert_int_equal(rnl_piece(stream, bytes, b.bound), 0);
        assert_int_equal(rnl_end(stream), 0);
    }
    for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
        took[2 * i] = rnl_extract(h.ep[0], limits[i]);
        took[2 * i + 1] = atomic_load(&s.messages);
    }
    assert_int_equal(test_hub_close(&h), 0);
}

static void limits_hold_as_without_the_thread(void **state)
{
    int64_t took[2][14];
    (void)state;
    if (getenv("RNL_TEST_REMOTE")) {
        puts("skip: between hosts time decides what has arrived when a call begins");
        skip();
    }
    extract_by_limits(false, took[0]);
    extract_by_limits(true, took[1]);
    assert_memory_equal(took[0], took[1], sizeof took[0]);
    assert_int_equal(took[0][0], 0);
    assert_int_equal(took[0][3], 1);
    assert_int_equal(took[0][13], 12);
}

/* ---- revoke, fork, death, the end ---- */

static void revoke_owner(struct scene *s, struct test_thread *t)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    for (unsigned i = 0; i < 30; i++) {
        offer(s, t);
        while (TEST_MUST(test_now_ns() < end),
               __atomic_load_n((uint64_t *)(void *)s->at, __ATOMIC_ACQUIRE) < 3 + i % 3) /* they come meanwhile */
            sched_yield();
        TEST_MUST(rnl_window_revoke(s->w, i % 2 ? BOUND_NS : 0) == 0);
        uint64_t last = *(uint64_t *)(void *)s->at;
        for (unsigned k = 0; k < 5; k++) {
            usleep(200); /* whoever comes late would be seen: not seeing it says nothing */
            TEST_MUST(*(volatile uint64_t *)(void *)s->at == last);
        }
        TEST_MUST(rnl_window_free(s->w) == 0);
    }
    say(s, END);
}

static void revoke_importer(struct scene *s, struct test_thread *t)
{
    while (atomic_load(&s->step) < END) {
        rnl_import *m;
        uint64_t was;
        int status = rnl_window_import(t->ep, 0, ID, 1000000, &m, NULL);
        TEST_MUST(status == 0 || status == RNL_TIMED_OUT);
        while (status == 0)
            status = rnl_fetch_add(m, 0, 1, &was);
        if (status == RNL_ERR_REVOKED)
            TEST_MUST(rnl_import_drop(m) == 0);
        TEST_MUST(status == RNL_TIMED_OUT || status == RNL_ERR_REVOKED);
    }
}

static void a_revoke_while_the_thread_works(void **state)
{
    (void)state;
    play(&(struct scene){.owner = revoke_owner, .importer = revoke_importer});
}

static void fork_owner(struct scene *s, struct test_thread *t)
{
    int status;
    offer(s, t);
    compute(s, 1);
    pid_t child = fork();
    TEST_MUST(child >= 0);
    if (child == 0)
        _exit(rnl_extract(t->ep, SIZE_MAX) == RNL_ERR_FORKED && rnl_window_revoke(s->w, 0) == RNL_ERR_FORKED ? 0 : 1);
    TEST_MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    say(s, 2);
    compute(s, 3);
    await(s, t, END);
}

static void fork_importer(struct scene *s, struct test_thread *t)
{
    uint64_t was;
    rnl_import *m = import(t);
    for (unsigned i = 0; i < 100; i++)
        TEST_MUST(rnl_fetch_add(m, 0, 1, &was) == 0 && was == i);
    say(s, 1);
    await(s, t, 2);
    for (unsigned i = 100; i < 200; i++)
        TEST_MUST(rnl_fetch_add(m, 0, 1, &was) == 0 && was == i);
    say(s, 3);
    say(s, END);
}

static void a_fork_leaves_the_thread_with_the_parent(void **state)
{
    (void)state;
    play(&(struct scene){.owner = fork_owner, .importer = fork_importer});
}

/* One of two importers dies; the other is served as before. */
static void a_dead_peer_holds_nobody_up(void **state)
{
    struct test_hub h;
    struct scene s = {.flags = RNL_OFFER_CARRIED};
    struct test_thread t;
    rnl_import *m[3];
    uint64_t was;
    (void)state;
    test_hub_open(&h, 3, NULL);
    assert_int_equal(rnl_progress_start(h.ep[0]), 0);
    t = (struct test_thread){.ep = h.ep[0]};
    offer(&s, &t);
    for (unsigned i = 1; i < 3; i++)
        assert_int_equal(rnl_window_import(h.ep[i], 0, ID, BOUND_NS, &m[i], NULL), 0);
    assert_int_equal(rnl_fetch_add(m[1], 0, 1, &was), 0);
    test_hub_kill(&h, 1, RNL_DEATH_SIGNAL, 9);
    for (unsigned i = 1; i < 50; i++) {
        assert_int_equal(rnl_fetch_add(m[2], 0, 1, &was), 0);
        assert_int_equal(was, i);
    }
    for (uint64_t end = test_now_ns() + (uint64_t)BOUND_NS; rnl_window_importers(s.w, NULL, 0) != 1;) {
        assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0);
        assert_true(test_now_ns() < end);
    }
    assert_int_equal(rnl_quiet(h.ep[0], 1, 0), RNL_ERR_PEER_DEAD);
    (void)test_hub_close(&h);
}

/* Each fence of the thread that takes its turn meets a call that has just begun, for a while. */
enum { CALLS = 20 };
static rnl_endpoint *fenced;
static _Atomic unsigned fences;
static int fence_late(struct rnl_env *env)
{
    (void)env;
    if (atomic_fetch_add(&fences, 1) < CALLS)
        atomic_fetch_add(&fenced->turn.calls, 2);
    return 0;
}

static void a_call_that_begins_before_the_fence_wins(void **state)
{
    struct test_hub h;
    struct rnl_env_ops ops;
    (void)state;
    test_hub_open(&h, 1, NULL);
    fenced = h.ep[0];
    ops = *fenced->env->ops;
    ops.heavy_fence = fence_late;
    atomic_store(&fences, 0);
    if (fenced->env->facts.have_membarrier) { /* else the thread asks for none */
        fenced->env->ops = &ops;
        assert_int_equal(rnl_progress_start(fenced), 0);
        for (uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
             !atomic_load(&fenced->turn.serves) && atomic_load(&fenced->turn.holder) != RNL_TURN_ASLEEP;) {
            assert_true(test_now_ns() < end);
            sched_yield();
        }
        assert_true(atomic_load(&fences) > CALLS);
    }
    assert_true(rnl_extract(fenced, SIZE_MAX) >= 0);
    assert_int_equal(atomic_load(&fenced->turn.serves), 0);
    assert_int_equal(test_hub_close(&h), 0);
}

/* A call that lasts is not taken for computing. */
static int on_long(rnl_stream *stream, unsigned peer, void *ctx)
{
    const rnl_endpoint *ep = ctx;
    (void)stream, (void)peer;
    for (unsigned i = 0; i < 200; i++) {
        usleep(100);
        TEST_MUST(!atomic_load(&ep->turn.serves));
    }
    return RNL_DONE;
}

static void a_handler_that_lasts_keeps_the_turn(void **state)
{
    struct test_hub h;
    (void)state;
    test_hub_open(&h, 1, NULL);
    assert_int_equal(rnl_handler_stream(h.ep[0], HANDLER, on_long, h.ep[0]), HANDLER);
    assert_int_equal(rnl_progress_start(h.ep[0]), 0);
    assert_int_equal(rnl_send(h.ep[0], 0, HANDLER, "", 1), 0);
    assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0);
    assert_int_equal(test_hub_close(&h), 0);
}

static int on_start(rnl_stream *stream, unsigned peer, void *ctx)
{
    (void)stream, (void)peer;
    TEST_MUST(rnl_progress_start(ctx) == RNL_ERR_CONTEXT);
    return RNL_DONE;
}

static void where_it_cannot_be_started(void **state)
{
    const struct rnl_options shared = {.size = sizeof shared, .flags = RNL_SHARED};
    struct test_hub h;
    (void)state;
    test_hub_open(&h, 1, &shared);
    assert_int_equal(rnl_progress_start(h.ep[0]), RNL_ERR_UNSUPPORTED);
    assert_int_equal(test_hub_close(&h), 0);
    test_hub_open(&h, 1, NULL);
    assert_int_equal(rnl_handler_stream(h.ep[0], HANDLER, on_start, h.ep[0]), HANDLER);
    assert_int_equal(rnl_send(h.ep[0], 0, HANDLER, "", 1), 0);
    assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0);
    assert_int_equal(test_hub_close(&h), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_that_computes_is_served),
        cmocka_unit_test(functions_that_are_not_marked_run_in_the_owner),
        cmocka_unit_test(a_message_that_is_left_is_seen_at_once),
        cmocka_unit_test(an_import_about_which_the_program_is_asked_waits),
        cmocka_unit_test(functions_that_are_marked_run_meanwhile),
        cmocka_unit_test(owner_and_thread_alternate),
        cmocka_unit_test(an_owner_that_asks_gets_its_turn),
        cmocka_unit_test(a_message_in_pieces_outlasts_turns),
        cmocka_unit_test(limits_hold_as_without_the_thread),
        cmocka_unit_test(a_revoke_while_the_thread_works),
        cmocka_unit_test(a_fork_leaves_the_thread_with_the_parent),
        cmocka_unit_test(a_dead_peer_holds_nobody_up),
        cmocka_unit_test(a_call_that_begins_before_the_fence_wins),
        cmocka_unit_test(a_handler_that_lasts_keeps_the_turn),
        cmocka_unit_test(where_it_cannot_be_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
