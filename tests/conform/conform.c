/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conform.c - runs bodies over a fixture; what bodies share. */
#include "conform/conform.h"

#include <stdio.h>

#include "net/fault/fault.h"
#include "support/unit.h"

enum { CASES_MAX = 64, DEFAULT_SEED = 20 };

struct run {
    struct conform_case c;
    const struct conform_body *body;
    int made;
};

uint64_t conform_now(struct rnl_transport *t)
{
    return t->env->ops->now_ns(t->env);
}

void conform_step(struct conform_case *c)
{
    if (c->fixture->step)
        c->fixture->step(&c->net);
}

uint32_t conform_from(struct conform_case *c)
{
    (void)c;
    return 0;
}

uint32_t conform_to(struct conform_case *c)
{
    return c->fixture->places > 1 ? 1 : 0;
}

struct rnl_transport *conform_sender(struct conform_case *c)
{
    return c->net.t[conform_from(c)];
}

struct rnl_transport *conform_receiver(struct conform_case *c)
{
    return c->net.t[conform_to(c)];
}

void conform_connect(struct conform_case *c)
{
    unsigned places = c->fixture->places;
    for (uint32_t i = 0; i < places; i++) {
        for (uint32_t to = 0; to < places; to++) {
            struct rnl_transport *t = c->net.t[i];
            if (places > 1 && i == to)
                continue;
            assert_int_equal(t->ops->add_peer(t, to, &c->net.addr[to], 1, c->net.t[to]->env->incarnation), 1);
        }
    }
    conform_step(c);
}

void conform_flush(struct conform_case *c, struct rnl_transport *t)
{
    for (int i = 0; i < 1000; i++) {
        int left = t->ops->flush(t, conform_now(t));
        assert_true(left >= 0);
        if (left == 0)
            return;
        conform_step(c);
    }
    fail_msg("flush does not end");
}

/* ---- running ---- */

static void skip_case(const struct run *r, const char *why, const char *what)
{
    print_message("skip: %s %s %s\n", r->c.fixture->name, why, what);
    skip();
}

static int wrap(struct conform_net *net, const struct conform_fixture *f)
{
    struct rnl_fault none;
    int status = rnl_fault_parse("", &none);
    for (unsigned i = 0; f->faults && i < f->places && status == 0; i++) {
        struct rnl_transport *below = net->t[i];
        if (f->faults[0])
            status = rnl_fault_wrap(&net->t[i], f->faults, conform_now(below));
        else
            status = rnl_fault_transport_new(below, &none, conform_now(below), &net->t[i]);
    }
    return status;
}

static void run_body(void **state)
{
    struct run *r = *state;
    const struct conform_fixture *f = r->c.fixture;
    const struct conform_body *b = r->body;
    if (b->needs & CONFORM_THREADS && !f->threads)
        skip_case(r, "runs here without", "threads");
    if (b->least_places && f->places < b->least_places)
        skip_case(r, "has here too few", "places");
    if (b->most_places && f->places > b->most_places)
        skip_case(r, "has here too many", "places");
    assert_int_equal(f->make(&r->c.net), 0);
    r->made = 1;
    if (b->needs & CONFORM_FD && !r->c.net.t[0]->has_fd)
        skip_case(r, "does not claim", "a descriptor");
    if (b->needs & CONFORM_ECN && !r->c.net.t[0]->has_ecn)
        skip_case(r, "does not claim", "marks for congestion");
    assert_int_equal(wrap(&r->c.net, f), 0);
    b->run(&r->c);
}

static int tear_down(void **state)
{
    struct run *r = *state;
    if (r->made)
        r->c.fixture->destroy(&r->c.net);
    r->made = 0;
    return 0;
}

int conform_run(const struct conform_fixture *fixture)
{
    static struct run runs[CASES_MAX];
    static struct CMUnitTest tests[CASES_MAX];
    const struct conform_body *lists[] = {conform_bodies, conform_traffic_bodies};
    const char *seed = getenv("RNL_SEED");
    size_t n = 0;
    for (size_t list = 0; list < sizeof lists / sizeof *lists; list++) {
        for (const struct conform_body *b = lists[list]; b && b->name && n < CASES_MAX; b++, n++) {
            runs[n] = (struct run){.c = {.fixture = fixture, .seed = seed ? strtoull(seed, NULL, 0) : DEFAULT_SEED},
                                   .body = b};
            tests[n] = (struct CMUnitTest){b->name, run_body, NULL, tear_down, &runs[n]};
        }
    }
    printf("%s, seed %llu (RNL_SEED sets another)\n", fixture->name, (unsigned long long)runs[0].c.seed);
    return _cmocka_run_group_tests(fixture->name, tests, n, NULL, NULL);
}
