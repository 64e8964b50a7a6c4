/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How far the owner of a window is, as its importer learns it: what decides how a put is copied. Two ranks of a hub,
 * driven by this thread; how long a store takes is said by the test. */
#include "runnel/window.h"

#include "base/sense.h"
#include "endpoint/endpoint.h"
#include "window/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#include "support/hub.h"

enum { ID = 7, NEAR_NS = 30, FAR_NS = 200, PUTS = 2000, PUT_BYTES = 4096 };
#define BOUND_NS ((uint64_t)90 * 1000 * 1000 * 1000)
static uint64_t fence_ns;

static void sense_fence(struct rnl_env *env, uint8_t *d)
{
    (void)env;
    rnl_sense_sample(d, fence_ns, 4);
}

static void put(rnl_import *m)
{
    static const uint64_t own[PUT_BYTES / 8];
    assert_int_equal(rnl_put(m, 0, own, sizeof own, 0), 0);
}

static int verdict_of_puts(rnl_import *m, uint64_t ns)
{
    fence_ns = ns;
    for (unsigned i = 0; i < PUTS; i++)
        put(m);
    return m->peer->distance & RNL_FAR;
}

/* A process that does nothing but put learns that it, or the owner, was moved to another processor. */
static void puts_alone_learn_the_distance_anew(void **state)
{
    const struct rnl_offer offer = {.size = sizeof offer, .id = ID};
    struct test_hub h;
    struct rnl_env_ops ops;
    rnl_window *w;
    rnl_import *m;
    void *at;
    (void)state;
    test_hub_open(&h, 2, NULL);
    assert_int_equal(rnl_window_alloc(h.ep[1], PUT_BYTES, &at, &w), 0);
    assert_int_equal(rnl_window_offer(w, &offer), 0);
    assert_int_equal(rnl_import_begin(h.ep[0], 1, ID, &m), 0);
    for (uint64_t end = test_now_ns() + BOUND_NS; rnl_import_state(m, NULL) == 0;) {
        assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0 && rnl_extract(h.ep[1], SIZE_MAX) >= 0);
        assert_true(test_now_ns() < end);
    }
    assert_true(rnl_import_is_direct(m));
    struct rnl_env *env = m->peer->via->env;
    uint8_t *heard = &m->peer->via->fast.conn[m->peer->at]->channel.distance;
    ops = *env->ops;
    ops.sense_fence = sense_fence;
    env->ops = &ops;
    *heard = NEAR_NS / RNL_SENSE_UNIT_NS << 1 | RNL_NEAR; /* what messages have said before */
    assert_int_equal(verdict_of_puts(m, FAR_NS), RNL_FAR);
    assert_int_equal(verdict_of_puts(m, NEAR_NS), RNL_NEAR);
    *heard = FAR_NS / RNL_SENSE_UNIT_NS << 1 | RNL_FAR; /* and newer ones */
    put(m);
    assert_int_equal(m->peer->distance & RNL_FAR, RNL_FAR);
    assert_int_equal(test_hub_close(&h), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(puts_alone_learn_the_distance_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
