/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cold connections and the lives of peers: who comes, goes, waits and dies; handlers, forks, threads. */
#include "endpoint/cold.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- peers that come, go, wait and die ---- */

static void posts_to_cold_peers_go_on(void **state)
{
    struct fixture *f = *state;
    const struct rnl_begin b = {.peer = STILL, .handler = NOTE, .bound = 2 << 20};
    const struct rnl_piece piece = {test_pattern(1, 0), 2 << 20};
    let_cool(f);
    assert_int_equal(rnl_post(f->a, &b, &piece, 1, done, f), 0);
    assert_int_equal(f->done, 0);
    env.step_ns = 1;
    assert_int_equal(rnl_wait(f->a, 200 * (int64_t)MS), RNL_TIMED_OUT);
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(env.parked[i] & RNL_ARMED_ROOM, i == f->conn->hot_index ? RNL_ARMED_ROOM : 0);
    for (int i = 0; i < 1000 && !f->done; i++) {
        drain(f->cold);
        (void)!rnl_extract(f->a, SIZE_MAX);
        valid(f->a);
    }
    assert_int_equal(f->done, 1);
    drain(f->cold);
    assert_int_equal(f->in.count, 1);
}

static void cold_peers_are_granted_what_they_want(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    struct rnl_rx *r = &f->conn->pair.rx[0];
    uint64_t wants = r->standing;
    r->standing -= 500; /* as after giving back */
    f->a->granted -= 500 * 64;
    atomic_store(&f->cold->peer[0].conn->pair.mine->wants, wants);
    for (unsigned i = 0; i < 200 && r->standing < wants; i++)
        look_around(f->a, 1);
    assert_true(r->standing >= wants);
    assert_true(is_cold(f->a, f->conn));
    atomic_store(&f->cold->peer[0].conn->pair.mine->wants, 0);
}

static void a_cold_peer_that_dies_is_heard_to_the_end(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
    take_back(f);
    test_hub_kill(&f->h, STILL, RNL_DEATH_SIGNAL, 9);
    for (int i = 0; i < 5; i++)
        (void)!rnl_extract(f->a, SIZE_MAX), valid(f->a);
    assert_int_equal(f->in.count, 1);
    assert_int_equal(f->deaths, 1);
    assert_int_equal(f->a->live, SIZE - 1);
    assert_int_equal(rnl_send(f->a, STILL, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    test_hub_kill(&f->h, 1, RNL_DEATH_SIGNAL, 9); /* and a hot one, among cold ones */
    look_around(f->a, 2);
    assert_int_equal(f->a->live, SIZE - 2);
    assert_int_equal(f->deaths, 2);
}

static void a_cold_peer_that_breaks_the_protocol_is_dead(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    atomic_store(&f->cold->peer[0].conn->pair.mine->version, 77);
    f->conn->pair.joined = 0;
    assert_int_equal(rnl_ep_ring_bell(f->a, f->conn, RNL_ARMED_LINES), 0);
    look_around(f->a, 1);
    assert_int_equal(f->deaths, 1);
    assert_int_equal(f->a->live, SIZE - 1);
    f->cold->peer[0].conn->pair.joined = 1;
}

/* A handler that connects new peers, while others are cold. */
struct greeting {
    struct fixture *f;
    unsigned sent;
};
static int greet(rnl_stream *s, unsigned peer, void *ctx)
{
    struct greeting *g = ctx;
    (void)peer;
    TEST_MUST(post_card(s->ep, SIZE + g->sent, NOTE, "hello", 5) == 0);
    g->sent++;
    return RNL_DONE;
}

static void handlers_connect_peers_while_others_are_cold(void **state)
{
    (void)state;
    struct fixture *f = calloc(1, sizeof *f);
    struct greeting g = {.f = f};
    assert_non_null(f);
    test_hub_open(&f->h, SIZE + 3, NULL);
    f->a = f->h.ep[0], f->cold = f->h.ep[STILL];
    for (unsigned i = 0; i < SIZE + 3; i++)
        assert_int_equal(rnl_handler_stream(f->h.ep[i], NOTE, inbox_stream, &f->in), NOTE);
    assert_int_equal(rnl_handler_stream(f->a, GREET, greet, &g), GREET);
    for (unsigned i = 1; i < SIZE; i++)
        assert_int_equal(rnl_send(f->h.ep[i], 0, NOTE, "x", 1), 0);
    drain(f->a);
    f->conn = f->a->peer[STILL].conn;
    take_env(f);
    let_cool(f);
    env.step_ns = 0;
    uint32_t hot = f->a->hot_count;
    f->in.count = 0;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rnl_send(f->h.ep[STILL - i], 0, GREET, "x", 1), 0);
    drain(f->a);
    valid(f->a);
    assert_int_equal(g.sent, 3);
    assert_int_equal(f->a->hot_count, hot + 6);
    for (unsigned i = 0; i < 3; i++)
        drain(f->h.ep[SIZE + i]);
    assert_int_equal(f->in.count, 3);
    f->a->env->ops = env.was;
    assert_int_equal(test_hub_close(&f->h), 0);
    inbox_free(&f->in);
    free(f);
}

static void fork_harms_nothing(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(rnl_extract(f->a, SIZE_MAX) == RNL_ERR_FORKED && rnl_wait(f->a, 0) == RNL_ERR_FORKED ? 0 : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
}

/* ---- threads ---- */

enum { LETTERS = 300 };
struct crowd {
    rnl_endpoint *shared;
    struct test_hub *h;
    _Atomic unsigned got, ends;
};
static int count(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct crowd *c = ctx;
    (void)buf, (void)n, (void)peer;
    atomic_fetch_add(&c->got, 1);
    return RNL_DONE;
}
struct writer {
    struct crowd *c;
    unsigned rank;
};
static void *write_letters(void *arg)
{
    struct writer *w = arg;
    struct test_random r = test_random_of(11, w->rank);
    for (unsigned i = 0; i < LETTERS; i++) {
        TEST_MUST(rnl_send(w->c->h->ep[w->rank], 0, NOTE, &i, sizeof i) == 0);
        if (test_random_one_in(&r, 8)) /* long enough to be cooled, now and then */
            test_sleep_ms(1 + test_random_one_in(&r, 4) * 12);
    }
    return NULL;
}
static void *read_letters(void *arg)
{
    struct crowd *c = arg;
    struct test_random r = test_random_of(12, (uint64_t)(uintptr_t)&r);
    while (atomic_load(&c->got) < LETTERS * (SIZE - 1)) {
        int64_t got = test_random_one_in(&r, 3) ? rnl_wait(c->shared, 20 * (int64_t)MS) : rnl_extract(c->shared, 100);
        TEST_MUST(got >= 0 || got == RNL_TIMED_OUT);
    }
    return NULL;
}

static void threads_share_an_endpoint_with_cold_peers(void **state)
{
    const struct rnl_options opt = {.flags = RNL_SHARED};
    struct test_hub h;
    struct crowd c = {.h = &h};
    struct writer w[SIZE];
    pthread_t writer[SIZE], reader[2];
    (void)state;
    test_hub_open(&h, SIZE, &opt);
    c.shared = h.ep[0];
    for (unsigned i = 0; i < SIZE; i++)
        assert_int_equal(rnl_handler_whole(h.ep[i], NOTE, count, &c, 0), NOTE);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&reader[i], NULL, read_letters, &c), 0);
    for (unsigned i = 1; i < SIZE; i++) {
        w[i] = (struct writer){&c, i};
        assert_int_equal(pthread_create(&writer[i], NULL, write_letters, &w[i]), 0);
    }
    for (unsigned i = 1; i < SIZE; i++)
        pthread_join(writer[i], NULL);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(reader[i], NULL);
    assert_int_equal(atomic_load(&c.got), LETTERS * (SIZE - 1));
    valid(h.ep[0]);
    assert_int_equal(test_hub_close(&h), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(posts_to_cold_peers_go_on),
        TEST(cold_peers_are_granted_what_they_want),
        TEST(a_cold_peer_that_dies_is_heard_to_the_end),
        TEST(a_cold_peer_that_breaks_the_protocol_is_dead),
        cmocka_unit_test(handlers_connect_peers_while_others_are_cold),
        TEST(fork_harms_nothing),
        cmocka_unit_test(threads_share_an_endpoint_with_cold_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
