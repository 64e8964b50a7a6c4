/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who sees the packets of two ranks, and can send with the address of anybody, repeats them: from where a third rank
 * lives, from another address of the sender, from nowhere. A rank that has the connection answers none of it, else two
 * datagrams would end the connection: the repeated one, and what is said to it, repeated in turn. */
#include "endpoint/net.h"
#include "remote/remote_internal.h"
#include "runnel/counters.h"
#include "support/hub.h"
#include "support/random.h"
#include "support/unit.h"
#include "support/wires.h"

enum { A, B, C, RANKS, NOTE = 1, ADDRESSES = 2, NOBODY = 9, CAUGHT = 64, LONGEST = 9000 };
#define MS ((uint64_t)1000000)

struct observer {
    struct {
        unsigned char at[LONGEST];
        uint32_t bytes;
    } packet[CAUGHT]; /* from A to B: they do not arrive */
    unsigned packets, data, challenges;
    struct {
        unsigned char at[RNL_UNKNOWN_BYTES];
    } unknown[CAUGHT]; /* of B, to anybody */
    unsigned unknowns;
};

struct fixture {
    struct test_hub h;
    struct test_wires *wires;
    struct rnl_env_ops ops; /* of B */
    unsigned came[RANKS];
};

static int take(const void *buf, size_t n, unsigned peer, void *ctx)
{
    unsigned *came = ctx;
    (void)buf, (void)n, (void)peer;
    ++*came;
    return RNL_DONE;
}

static int one_address(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    (void)env, (void)rank, (void)n, (void)out;
    return 0;
}

static void look_for(struct fixture *f, uint64_t ms)
{
    for (uint64_t until = test_wires_now_ns(f->wires) + ms * MS; test_wires_now_ns(f->wires) < until;) {
        for (unsigned i = 0; i < RANKS; i++)
            assert_true(rnl_extract(f->h.ep[i], SIZE_MAX) >= 0);
        test_wires_pass(f->wires, MS / 2);
    }
}

/* All are connected with B. `late`: only then it hears that the others have more than one address. */
static void open_them(struct fixture *f, int late)
{
    memset(f, 0, sizeof *f);
    f->wires = test_wires_new(RANKS, "", 1);
    test_wires_ticks(f->wires);
    test_wires_addresses(f->wires, ADDRESSES);
    test_hub_open(&f->h, RANKS, NULL);
    for (unsigned i = 0; i < RANKS; i++) {
        test_wires_attach(f->wires, f->h.ep[i]);
        assert_int_equal(rnl_handler_whole(f->h.ep[i], NOTE, take, &f->came[i], 0), NOTE);
    }
    struct rnl_env *env = f->h.ep[B]->env;
    const struct rnl_env_ops *known = env->ops;
    f->ops = *known;
    f->ops.alternate_address = one_address;
    if (late)
        env->ops = &f->ops;
    assert_int_equal(rnl_send(f->h.ep[A], B, NOTE, "a", 1), 0);
    assert_int_equal(rnl_send(f->h.ep[C], B, NOTE, "c", 1), 0);
    look_for(f, 100);
    assert_int_equal(f->came[B], 2);
    env->ops = known;
    assert_int_equal(!f->h.ep[B]->peer[A].conn->remote->paths, late);
}

static int observes(void *arg, unsigned from, unsigned to, unsigned way, unsigned char *at, uint32_t bytes)
{
    struct observer *o = arg;
    (void)way;
    unsigned type = at[0] >> 4;
    if (from == B && bytes == RNL_UNKNOWN_BYTES && type == RNL_PACKET_UNKNOWN && o->unknowns < CAUGHT)
        memcpy(o->unknown[o->unknowns++].at, at, bytes);
    if (from != A || to != B)
        return 1;
    if (o->packets < CAUGHT && bytes >= RNL_UNKNOWN_BYTES) {
        memcpy(o->packet[o->packets].at, at, bytes);
        o->packet[o->packets++].bytes = bytes;
        o->data += type == RNL_PACKET_DATA;
        o->challenges += type == RNL_PACKET_PATH;
    }
    return 0;
}

/* Each packet that was caught arrives at B from there, and each UNKNOWN at A from everywhere where B lives. */
static void repeat(struct fixture *f, struct observer *o, unsigned from, unsigned way)
{
    const struct rnl_remote *b = f->h.ep[B]->remote;
    struct rnl_peer_info info;
    uint64_t strays = b->c->strays;
    unsigned n = o->packets; /* A says more meanwhile */
    for (unsigned k = 0; k < n; k++)
        test_wires_forge(f->wires, from, way, B, o->packet[k].at, o->packet[k].bytes);
    look_for(f, 5);
    assert_int_equal(b->c->strays, strays + n);
    for (unsigned k = 0; k < o->unknowns; k++)
        for (unsigned at = 0; at < ADDRESSES; at++)
            test_wires_forge(f->wires, B, at, A, o->unknown[k].at, RNL_UNKNOWN_BYTES);
    look_for(f, 5);
    assert_int_equal(rnl_peer(f->h.ep[A], B, &info), 0);
    assert_int_not_equal(info.state, RNL_PEER_DEAD);
    assert_int_equal(o->unknowns, 0);
}

static void nothing_is_said_of(int late)
{
    static struct observer o;
    struct fixture f;
    open_them(&f, late);
    memset(&o, 0, sizeof o);
    test_wires_tapped(f.wires, observes, &o);
    assert_int_equal(rnl_send(f.h.ep[A], B, NOTE, test_pattern(1, 0), 40), 0);
    for (unsigned k = 0; k < 100 && (o.data == 0 || o.challenges < 2 * ADDRESSES); k++)
        look_for(&f, 10);
    assert_true(o.data > 0 && o.challenges >= 2 * ADDRESSES && o.packets < CAUGHT / 2);
    repeat(&f, &o, C, 0);
    repeat(&f, &o, late ? A : C, 1);
    repeat(&f, &o, A, NOBODY);
    assert_int_equal(f.came[B], 2);
    test_wires_tapped(f.wires, NULL, NULL);
    look_for(&f, 2000);
    assert_int_equal(f.came[B], 3);
    assert_int_equal(test_hub_close(&f.h), 0);
    test_wires_free(f.wires);
}

static void what_is_repeated_from_where_another_lives_has_no_answer(void **state)
{
    (void)state;
    nothing_is_said_of(0);
}

/* The job says that it is one of the sender's; when the connection was made it did not. */
static void nor_from_an_address_that_is_new(void **state)
{
    (void)state;
    nothing_is_said_of(1);
}

static void forged_greetings_are_counted(void **state)
{
    static const struct rnl_job_keys guessed;
    const struct rnl_hello h = {.src = A, .dst = B, .src_incarnation = 1, .flags = RNL_HELLO_WANTS_REPLY};
    const struct rnl_unknown u = {.connection = 1, .number = 1};
    unsigned char hello[RNL_HELLO_BYTES], unknown[RNL_UNKNOWN_BYTES];
    struct fixture f;
    (void)state;
    open_them(&f, 0);
    const struct rnl_counters *c = rnl_get_counters(f.h.ep[B]);
    uint64_t refused = c->packets_refused;
    assert_int_equal(rnl_hello_encode(hello, sizeof hello, &guessed, &h), sizeof hello);
    assert_int_equal(rnl_unknown_encode(unknown, sizeof unknown, &guessed, A, &u), sizeof unknown);
    test_wires_forge(f.wires, A, 0, B, hello, sizeof hello);
    look_for(&f, 5);
    assert_int_equal(c->packets_refused, refused + 1);
    test_wires_forge(f.wires, A, 0, B, unknown, sizeof unknown);
    look_for(&f, 5);
    assert_int_equal(c->packets_refused, refused + 2);
    assert_int_equal(test_hub_close(&f.h), 0);
    test_wires_free(f.wires);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_repeated_from_where_another_lives_has_no_answer),
        cmocka_unit_test(nor_from_an_address_that_is_new),
        cmocka_unit_test(forged_greetings_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
