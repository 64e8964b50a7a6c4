/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows between threads of a hub, direct and carried: puts, gets, atomics, notifications, their order and their
 * errors. */
#include "runnel/window.h"

#include "endpoint/endpoint.h"
#include "window/window_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/hub.h"
#include "support/random.h"

enum { END = 1000000, ID = 7, BYTES = 300000, BOUND_S = 90 };
#define BOUND_NS ((int64_t)BOUND_S * 1000 * 1000 * 1000)

/* What the sides of a test share. */
struct scene {
    uint32_t flags; /* of the offer */
    bool apart;     /* the sides cannot meet, as if they were on two hosts */
    _Atomic int step;
    void (*owner)(struct scene *, struct test_thread *);
    void (*importer)(struct scene *, struct test_thread *);
    unsigned char *at;
    rnl_window *w;
    rnl_import *m;
    unsigned notes;
    size_t offset[8], n[8];
};

static void fill(unsigned char *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(i * 31 + i / 253 + seed);
}

static bool is_filled(const unsigned char *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != (unsigned char)(i * 31 + i / 253 + seed))
            return false;
    return true;
}

static void progress(struct test_thread *t)
{
    int64_t did = rnl_wait(t->ep, 1000000);
    TEST_MUST(did >= 0 || did == RNL_TIMED_OUT);
}

static void say(struct scene *s, int step)
{
    atomic_store(&s->step, step);
}

static void await(struct scene *s, struct test_thread *t, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->step) < step) {
        progress(t);
        TEST_MUST(test_now_ns() < end);
    }
}

static void progress_now(struct test_thread *t)
{
    TEST_MUST(rnl_extract(t->ep, SIZE_MAX) >= 0);
}

static void await_now(struct scene *s, struct test_thread *t, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->step) < step) {
        progress_now(t);
        TEST_MUST(test_now_ns() < end);
    }
}

static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    struct scene *s = ctx;
    TEST_MUST(w == s->w && peer == 1);
    if (s->notes < 8) {
        s->offset[s->notes] = offset;
        s->n[s->notes] = n;
    }
    s->notes++;
}

static void offer(struct scene *s, struct test_thread *t)
{
    const struct rnl_offer o = {.size = sizeof o, .id = ID, .flags = s->flags, .notify = on_note, .ctx = s};
    void *at;
    TEST_MUST(rnl_window_alloc(t->ep, BYTES, &at, &s->w) == 0);
    s->at = at;
    TEST_MUST(rnl_window_offer(s->w, &o) == 0);
}

static void import(struct scene *s, struct test_thread *t)
{
    size_t bytes;
    TEST_MUST(rnl_window_import(t->ep, 0, ID, BOUND_NS, &s->m, &bytes) == 0);
    TEST_MUST(bytes >= BYTES && bytes % 4096 == 0);
    TEST_MUST(rnl_import_is_direct(s->m) == (!(s->flags & RNL_OFFER_CARRIED) && !s->apart));
}

static void body(struct test_thread *t)
{
    struct scene *s = t->arg;
    if (s->apart)
        t->ep->env->open = NULL;
    (t->rank == 0 ? s->owner : s->importer)(s, t);
    while (atomic_load(&s->step) < END) /* both are through */
        progress(t);
}

static void play(struct scene *s)
{
    static const uint32_t flags[] = {RNL_OFFER_CARRIED, 0, 0};
    const bool only_apart = getenv("RNL_TEST_REMOTE") != NULL;
    for (unsigned i = only_apart ? 2 : 0; i < 3; i++) {
        struct scene copy = *s;
        copy.flags = flags[i];
        copy.apart = i == 2;
        assert_int_equal(test_hub_threads(2, NULL, body, &copy), 0);
    }
}

/* ---- puts and gets ---- */

static void puts_owner(struct scene *s, struct test_thread *t)
{
    offer(s, t);
    await(s, t, 1);
    TEST_MUST(is_filled(s->at + 5, BYTES - 5, 1));
    TEST_MUST(s->at[0] == 0 && s->at[4] == 0);
    s->at[3] = 77;
    say(s, 2);
    await(s, t, END);
}

static void puts_importer(struct scene *s, struct test_thread *t)
{
    unsigned char *own = malloc(BYTES), *back = malloc(BYTES);
    import(s, t);
    fill(own, BYTES, 1);
    for (size_t at = 0, n = 1; at < BYTES - 5; at += n, n = n * 2 + 1) {
        if (n > BYTES - 5 - at)
            n = BYTES - 5 - at;
        TEST_MUST(rnl_put(s->m, 5 + at, own + at, n, 0) == 0);
    }
    TEST_MUST(rnl_quiet(t->ep, 0, BOUND_NS) == 0);
    say(s, 1);
    await(s, t, 2);
    TEST_MUST(rnl_get(s->m, 5, back, BYTES - 5) == 0 && is_filled(back, BYTES - 5, 1));
    TEST_MUST(rnl_get(s->m, 3, back, 1) == 0 && back[0] == 77);
    TEST_MUST(rnl_put(s->m, BYTES + 10000, own, 1, 0) == RNL_ERR_PAST_END);
    TEST_MUST(rnl_put(s->m, 8, own, SIZE_MAX - 4, 0) == RNL_ERR_PAST_END);
    TEST_MUST(rnl_get(s->m, SIZE_MAX, back, 2) == RNL_ERR_PAST_END);
    TEST_MUST(rnl_put(s->m, 0, own, 1, 64) == RNL_ERR_ARG);
    TEST_MUST(rnl_import_drop(s->m) == 0);
    free(own);
    free(back);
    say(s, END);
}

static void puts_land_and_are_got(void **state)
{
    (void)state;
    play(&(struct scene){.owner = puts_owner, .importer = puts_importer});
}

/* ---- order ---- */

enum { LITMUS = 1500, LITMUS_BYTES = 60000, LITMUS_AT = 72 };

/* Whoever sees the last word sees all of the put, and of those before it. */
static void litmus_owner(struct scene *s, struct test_thread *t)
{
    const uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    uint64_t *word = NULL, seen = 0;
    offer(s, t);
    word = (uint64_t *)(void *)(s->at + LITMUS_AT);
    const size_t last = LITMUS_BYTES / 8 - 1;
    for (uint64_t turn = 1; turn <= LITMUS; turn++) {
        while ((seen = __atomic_load_n(&word[last], __ATOMIC_ACQUIRE)) != turn) {
            TEST_MUST(seen < turn && test_now_ns() < end);
            for (unsigned k = 0; k < 200 && __atomic_load_n(&word[last], __ATOMIC_RELAXED) == seen; k++)
                ;
            progress_now(t);
        }
        for (size_t i = 0; i < last; i++)
            TEST_MUST(word[i] == turn);
        TEST_MUST(*(uint64_t *)(void *)s->at == turn);
        say(s, (int)turn);
    }
    say(s, END);
}

static void litmus_importer(struct scene *s, struct test_thread *t)
{
    static uint64_t own[LITMUS_BYTES / 8];
    import(s, t);
    for (uint64_t turn = 1; turn <= LITMUS; turn++) {
        for (size_t i = 0; i < LITMUS_BYTES / 8; i++)
            own[i] = turn;
        TEST_MUST(rnl_put(s->m, 0, own, 8, 0) == 0);
        TEST_MUST(rnl_put(s->m, LITMUS_AT, own, sizeof own, 0) == 0);
        await_now(s, t, (int)turn);
    }
}

static void the_last_word_comes_last(void **state)
{
    (void)state;
    play(&(struct scene){.owner = litmus_owner, .importer = litmus_importer});
}

/* ---- notifications ---- */

static void notes_owner(struct scene *s, struct test_thread *t)
{
    offer(s, t);
    TEST_MUST(rnl_notify_unblock(t->ep) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_notify_block(t->ep) == 0 && rnl_notify_block(t->ep) == 0);
    await(s, t, 1);
    TEST_MUST(s->notes == 0);
    TEST_MUST(rnl_notify_unblock(t->ep) == 0);
    TEST_MUST(rnl_extract(t->ep, SIZE_MAX) >= 0 && s->notes == 0);
    TEST_MUST(rnl_notify_unblock(t->ep) == 0);
    while (s->notes < 3)
        TEST_MUST(rnl_notify_wait(t->ep, BOUND_NS) > 0);
    TEST_MUST(s->offset[0] == 8 && s->n[0] == 8 && s->offset[1] == 100 && s->n[1] == 5000 && s->n[2] == 0);
    TEST_MUST(is_filled(s->at + 100, 5000, 3));
    TEST_MUST(rnl_notify_wait(t->ep, 1000000) == RNL_TIMED_OUT);
    say(s, END);
}

static void notes_importer(struct scene *s, struct test_thread *t)
{
    unsigned char own[5000];
    fill(own, sizeof own, 3);
    import(s, t);
    TEST_MUST(rnl_put(s->m, 0, own, 8, 0) == 0);
    TEST_MUST(rnl_put(s->m, 8, own, 8, RNL_PUT_NOTIFY) == 0);
    TEST_MUST(rnl_put(s->m, 100, own, 5000, RNL_PUT_NOTIFY) == 0);
    TEST_MUST(rnl_put(s->m, 100, own, 0, RNL_PUT_NOTIFY) == 0);
    TEST_MUST(rnl_quiet(t->ep, 0, BOUND_NS) == 0);
    say(s, 1);
    await(s, t, END);
}

static void notifications_wait_while_blocked(void **state)
{
    (void)state;
    play(&(struct scene){.owner = notes_owner, .importer = notes_importer});
}

/* ---- atomics ---- */

static void atomics_owner(struct scene *s, struct test_thread *t)
{
    uint64_t word = 40;
    uint32_t half[2] = {0xffffffff, 5};
    offer(s, t);
    memcpy(s->at + 64, &word, 8);
    memcpy(s->at + 72, half, 8);
    say(s, 1);
    await(s, t, END);
    memcpy(half, s->at + 72, 8);
    TEST_MUST(half[0] == 1 && half[1] == 5);
}

static void atomics_importer(struct scene *s, struct test_thread *t)
{
    uint64_t was = 0;
    rnl_token token = {0};
    await(s, t, 1);
    import(s, t);
    TEST_MUST(rnl_fetch_add(s->m, 64, 2, &was) == 0 && was == 40);
    TEST_MUST(rnl_compare_swap(s->m, 64, 41, 9, &was) == 0 && was == 42);
    TEST_MUST(rnl_compare_swap(s->m, 64, 42, 9, &was) == 0 && was == 42);
    TEST_MUST(rnl_atomic_any(s->m, 64, 8, RNL_ATOMIC_SWAP, 12, 0, &was) == 0 && was == 9);
    TEST_MUST(rnl_atomic_any(s->m, 64, 8, RNL_ATOMIC_OR, 3, 0, NULL) == 0);
    TEST_MUST(rnl_atomic_any(s->m, 64, 8, RNL_ATOMIC_AND, 6, 0, &was) == 0 && was == 15);
    TEST_MUST(rnl_atomic_async(s->m, 64, 8, RNL_ATOMIC_XOR, 1, 0, &was, &token) == 0);
    while (rnl_token_state(&token) == 1)
        progress(t);
    TEST_MUST(rnl_token_state(&token) == 0 && was == 6);
    TEST_MUST(rnl_atomic_any(s->m, 72, 4, RNL_ATOMIC_ADD, 2, 0, &was) == 0 && was == 0xffffffff);
    TEST_MUST(rnl_atomic_any(s->m, 68, 8, RNL_ATOMIC_ADD, 2, 0, &was) == RNL_ERR_ARG);
    TEST_MUST(rnl_atomic_any(s->m, 64, 2, RNL_ATOMIC_ADD, 2, 0, &was) == RNL_ERR_ARG);
    say(s, END);
}

static void atomics_give_the_value_before(void **state)
{
    (void)state;
    play(&(struct scene){.owner = atomics_owner, .importer = atomics_importer});
}

/* ---- the end of an offer ---- */

static void revoke_owner(struct scene *s, struct test_thread *t)
{
    unsigned peer = 9;
    const struct rnl_offer o = {.size = sizeof o, .id = ID, .flags = s->flags};
    offer(s, t);
    TEST_MUST(rnl_window_offer(s->w, &o) == RNL_BUSY);
    await(s, t, 1);
    TEST_MUST(rnl_window_importers(s->w, &peer, 1) == 1 && peer == 1);
    TEST_MUST(rnl_window_revoke(s->w, BOUND_NS) == 0);
    TEST_MUST(rnl_window_importers(s->w, &peer, 1) == 0);
    TEST_MUST(s->at[0] == 4);
    s->at[0] = 5;
    say(s, 2);
    await(s, t, 3);
    TEST_MUST(s->at[0] == 5);
    TEST_MUST(rnl_window_offer(s->w, &o) == 0);
    await(s, t, END);
    TEST_MUST(s->at[0] == 6);
    TEST_MUST(rnl_window_free(s->w) == 0);
}

static void revoke_importer(struct scene *s, struct test_thread *t)
{
    unsigned char own = 4;
    rnl_import *none;
    TEST_MUST(rnl_window_import(t->ep, 0, 12345, 0, &none, NULL) == RNL_TIMED_OUT);
    TEST_MUST(rnl_window_import(t->ep, 0, 12345, 1000000, &none, NULL) == RNL_TIMED_OUT);
    TEST_MUST(rnl_window_import(t->ep, 2, 12345, 1000000, &none, NULL) == RNL_ERR_RANK);
    import(s, t);
    TEST_MUST(rnl_put(s->m, 0, &own, 1, 0) == 0 && rnl_quiet(t->ep, 0, BOUND_NS) == 0);
    say(s, 1);
    await(s, t, 2);
    for (uint64_t until = test_now_ns() + BOUND_NS; rnl_import_state(s->m, NULL) != RNL_ERR_REVOKED;) {
        progress(t); /* a carried import ends at once for the owner, and for us when the word of it comes */
        TEST_MUST(test_now_ns() < until);
    }
    TEST_MUST(rnl_put(s->m, 0, &own, 1, 0) == RNL_ERR_REVOKED && rnl_get(s->m, 0, &own, 1) == RNL_ERR_REVOKED);
    TEST_MUST(rnl_import_drop(s->m) == 0);
    say(s, 3);
    import(s, t); /* waits until it is offered again */
    own = 6;
    TEST_MUST(rnl_put(s->m, 0, &own, 1, 0) == 0 && rnl_quiet(t->ep, 0, BOUND_NS) == 0);
    say(s, END);
}

static void a_revoked_window_is_out_of_reach(void **state)
{
    (void)state;
    play(&(struct scene){.owner = revoke_owner, .importer = revoke_importer});
}

/* ---- meeting ---- */

enum { LOOKS = 300 };

static void offer_own(struct test_thread *t)
{
    const struct rnl_offer o = {.size = sizeof o, .id = ID};
    void *at;
    rnl_window *w;
    TEST_MUST(rnl_window_alloc(t->ep, BYTES, &at, &w) == 0 && rnl_window_offer(w, &o) == 0);
}

static void import_other(const struct scene *s, struct test_thread *t)
{
    rnl_import *m;
    TEST_MUST(rnl_window_import(t->ep, !t->rank, ID, BOUND_NS, &m, NULL) == 0);
    TEST_MUST(rnl_import_is_direct(m) == !s->apart);
}

/* Asks the other side to meet, then for a while hears only what comes to its window endpoint. A number is reserved for
 * the other side, as it is where the messages of two processes of one host take the network. */
static void deaf_side(struct scene *s, struct test_thread *t)
{
    rnl_import *m;
    offer_own(t);
    TEST_MUST(rnl_import_begin(t->ep, !t->rank, ID, &m) == 0);
    struct rnl_windows *ws = t->ep->windows;
    struct window_peer *p = ws->peer[!t->rank];
    if (ws->inner && !p->reserved) {
        const struct rnl_meet_ops *meet = ws->inner->env->meet;
        TEST_MUST(meet->reserve(ws->inner->env, t->ep->env, p->rank, &p->reserved, &p->port) == 0);
    }
    say(s, 1);
    for (unsigned i = 0; i < LOOKS; i++) {
        (void)t->ep->window_ops->arm(t->ep);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    import_other(s, t);
    await(s, t, END);
}

static void other_side(struct scene *s, struct test_thread *t)
{
    offer_own(t);
    while (atomic_load(&s->step) < 1)
        progress_now(t);
    import_other(s, t);
    say(s, END);
}

/* Which side comes to the other one depends on their addresses, so each is the deaf one once. */
static void a_peer_that_comes_before_its_reply_is_known(void **state)
{
    (void)state;
    play(&(struct scene){.owner = deaf_side, .importer = other_side});
    play(&(struct scene){.owner = other_side, .importer = deaf_side});
}

/* ---- peers that take over or make up ---- */

enum { HOSTILE = 1, HONEST };

/* Makes rank 0, a peer with a window and the hostile one, all driven by this thread. */
static void three(struct test_hub *h, rnl_import **m)
{
    struct test_thread t;
    test_hub_open(h, 3, NULL);
    t = (struct test_thread){.ep = h->ep[HONEST]};
    offer_own(&t);
    assert_int_equal(rnl_import_begin(h->ep[0], HONEST, ID, m), 0);
    for (uint64_t end = test_now_ns() + (uint64_t)BOUND_NS; rnl_import_state(*m, NULL) == 0;) {
        assert_true(rnl_extract(h->ep[HONEST], SIZE_MAX) >= 0 && rnl_extract(h->ep[0], SIZE_MAX) >= 0);
        assert_true(test_now_ns() < end);
    }
    assert_int_equal(rnl_import_state(*m, NULL), 1);
}

/* The hostile peer sends a message of windows to rank 0. */
static void forge(struct test_hub *h, unsigned kind, const void *body, size_t n, size_t answer)
{
    const struct rnl_message b = {.handler = RNL_LIBRARY_ID + kind, .bound = n, .answer = answer, .flags = RNL_NO_WAIT};
    rnl_stream *s;
    int status;
    for (uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
         (status = rnl_begin(h->ep[HOSTILE], &b, &s)) == RNL_NO_ROOM;) {
        assert_true(rnl_extract(h->ep[0], SIZE_MAX) >= 0 && rnl_extract(h->ep[HOSTILE], SIZE_MAX) >= 0);
        assert_true(test_now_ns() < end);
    }
    assert_int_equal(status, 0);
    assert_int_equal(rnl_piece(s, body, n), 0);
    assert_int_equal(rnl_end(s), 0);
}

static int close_three(struct test_hub *h)
{
    test_hub_kill(h, HOSTILE, RNL_DEATH_SIGNAL, 9);
    return test_hub_close(h);
}

/* A peer that names another one's address as its own gets nothing of that one's. */
static void a_peer_cannot_take_the_place_of_another(void **state)
{
    const struct rnl_admit all = {.flags = RNL_ADMIT_ANYONE};
    struct test_hub h;
    struct window_meet forged = {.key = {1}};
    rnl_import *m;
    uint64_t was;
    (void)state;
    three(&h, &m);
    const struct rnl_windows *ws = h.ep[0]->windows;
    char *to = forged.address;
    char address[RNL_ADDRESS_BYTES];
    assert_int_equal(rnl_address(h.ep[HONEST]->windows->inner, &all, NULL, NULL, address, sizeof address), 0);
    /* Rank 0 goes to the greater text: a zero before root's number makes it that; another user's is so by chance. */
    assert_true(strlen(address) + 2 <= sizeof forged.address);
    memcpy(to, address, 5);
    to[5] = '0';
    strcpy(to + 5 + (geteuid() == 0), address + 5);
    const uint32_t at = ws->peer[HONEST]->at;
    forge(&h, WINDOW_MEET, &forged, sizeof forged, sizeof forged);
    for (unsigned i = 0; i < LOOKS; i++)
        for (unsigned k = 0; k < 3; k++)
            assert_true(rnl_extract(h.ep[k], SIZE_MAX) >= 0);
    assert_int_equal(ws->bound[at], 1 + HONEST);
    assert_int_equal(ws->peer[HOSTILE]->link == WINDOW_AWAITED || ws->peer[HOSTILE]->via == h.ep[0], 1);
    assert_int_equal(rnl_fetch_add(m, 0, 1, &was), 0);
    assert_int_equal(was, 0);
    (void)close_three(&h);
}

static const struct rnl_handler *hears_nothing(struct rnl_endpoint *ep, unsigned id)
{
    (void)ep, (void)id;
    return NULL;
}

/* Revokes of what was never granted are kept while an answer is awaited, in bounded memory. */
static void what_a_peer_revokes_early_takes_bounded_memory(void **state)
{
    struct test_hub h;
    rnl_import *m, *waits;
    (void)state;
    three(&h, &m);
    struct rnl_window_ops deaf = *h.ep[HOSTILE]->window_ops;
    deaf.handler = hears_nothing;
    h.ep[HOSTILE]->window_ops = &deaf;
    assert_int_equal(rnl_import_begin(h.ep[0], HOSTILE, ID, &waits), 0);
    struct rnl_windows *ws = h.ep[0]->windows;
    rnl_window_apart(ws, ws->peer[HOSTILE]);
    assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0); /* it asks, and nobody answers */
    for (uint32_t i = 0; i < 2 * WINDOW_EARLY; i++) {
        const struct window_revoked r = {.tag = i, .grant = i};
        forge(&h, WINDOW_REVOKED, &r, sizeof r, 0);
        assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0);
    }
    for (uint64_t end = test_now_ns() + (uint64_t)BOUND_NS; ws->peer[HOSTILE]->early_count < WINDOW_EARLY;) {
        assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0 && rnl_extract(h.ep[HOSTILE], SIZE_MAX) >= 0);
        assert_true(test_now_ns() < end);
    }
    assert_int_equal(ws->peer[HOSTILE]->early_count, WINDOW_EARLY);
    (void)close_three(&h);
}

/* The window endpoint finds another process at the address than the peer's. */
static int32_t another_pid(struct rnl_env *env, uint32_t rank)
{
    (void)env, (void)rank;
    return 1;
}

static void a_peer_is_the_process_that_it_was(void **state)
{
    struct test_hub h;
    struct test_thread t;
    struct rnl_env_ops ops[2];
    rnl_import *m;
    (void)state;
    test_hub_open(&h, 2, NULL);
    t = (struct test_thread){.ep = h.ep[0]};
    offer_own(&t);
    t.ep = h.ep[1];
    offer_own(&t); /* either of them may be the one that goes */
    assert_int_equal(rnl_import_begin(h.ep[1], 0, ID, &m), 0);
    for (uint64_t end = test_now_ns() + (uint64_t)BOUND_NS; rnl_import_state(m, NULL) == 0;) {
        for (unsigned i = 0; i < 2; i++) {
            rnl_endpoint *inner = h.ep[i]->windows->inner;
            if (inner && inner->env->ops->pid_of != another_pid) {
                ops[i] = *inner->env->ops;
                ops[i].pid_of = another_pid;
                inner->env->ops = &ops[i];
            }
            assert_true(rnl_extract(h.ep[i], SIZE_MAX) >= 0);
        }
        assert_true(test_now_ns() < end);
    }
    assert_int_equal(rnl_import_state(m, NULL), 1);
    assert_int_equal(rnl_import_is_direct(m), 0);
    assert_int_equal(test_hub_close(&h), 0);
}

/* A peer that the window endpoint has left is gone there, and the number is for whoever comes next. */
static void the_number_of_a_peer_that_was_left_is_for_the_next_one(void **state)
{
    struct test_hub h;
    rnl_import *m;
    (void)state;
    three(&h, &m);
    struct rnl_windows *ws = h.ep[0]->windows;
    const uint32_t at = ws->peer[HONEST]->at;
    assert_ptr_equal(ws->peer[HONEST]->via, ws->inner);
    rnl_window_leave_due(ws, at);
    for (unsigned i = 0; i < LOOKS && !ws->inner->peer[at].left; i++)
        rnl_window_links(ws);
    assert_int_equal(ws->inner->peer[at].left, 1);
    assert_int_equal(ws->bound[at], 0); /* else the next one would be left, too */
    (void)close_three(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_land_and_are_got),
        cmocka_unit_test(the_last_word_comes_last),
        cmocka_unit_test(notifications_wait_while_blocked),
        cmocka_unit_test(atomics_give_the_value_before),
        cmocka_unit_test(a_revoked_window_is_out_of_reach),
        cmocka_unit_test(a_peer_that_comes_before_its_reply_is_known),
        cmocka_unit_test(a_peer_cannot_take_the_place_of_another),
        cmocka_unit_test(what_a_peer_revokes_early_takes_bounded_memory),
        cmocka_unit_test(a_peer_is_the_process_that_it_was),
        cmocka_unit_test(the_number_of_a_peer_that_was_left_is_for_the_next_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
