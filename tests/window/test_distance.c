/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How far the owner of a window is, as its importer learns it: what decides how a put is copied. Two ranks of a hub,
 * driven by this thread; how long a store takes is said by the test. */
#include "runnel/window.h"

#include "base/sense.h"
#include "endpoint/endpoint.h"
#include "window/window_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#include "support/hub.h"

enum { ID = 7, NEAR_NS = 50, FAR_NS = 140, SLOW_NS = 900, FEW = 50, BYTES = 1 << 20 };
#define BOUND_NS ((uint64_t)90 * 1000 * 1000 * 1000)
static uint64_t fence_ns;
static unsigned fences;

static void sense_fence(struct rnl_env *env, uint8_t *d)
{
    (void)env;
    fences++;
    rnl_sense_sample(d, fence_ns, 4, RNL_SENSE_MIDDLE_NS);
}

struct fixture {
    struct test_hub h;
    struct rnl_env_ops ops;
    rnl_import *m;
    uint8_t *heard;
};

static void put(const struct fixture *f, size_t n)
{
    static const uint64_t own[BYTES / 8];
    assert_int_equal(rnl_put(f->m, 0, own, n, 0), 0);
}

static int verdict_of_puts(const struct fixture *f, size_t n, unsigned puts, uint64_t ns)
{
    fence_ns = ns;
    while (puts-- > 0)
        put(f, n);
    return f->m->peer->distance & RNL_FAR;
}

static int open_import(void **state)
{
    static struct fixture f;
    const struct rnl_offer offer = {.size = sizeof offer, .id = ID};
    rnl_window *w;
    void *at;
    test_hub_open(&f.h, 2, NULL);
    assert_int_equal(rnl_window_alloc(f.h.ep[1], BYTES, &at, &w), 0);
    assert_int_equal(rnl_window_offer(w, &offer), 0);
    assert_int_equal(rnl_import_begin(f.h.ep[0], 1, ID, &f.m), 0);
    for (uint64_t end = test_now_ns() + BOUND_NS; rnl_import_state(f.m, NULL) == 0;) {
        assert_true(rnl_extract(f.h.ep[0], SIZE_MAX) >= 0 && rnl_extract(f.h.ep[1], SIZE_MAX) >= 0);
        assert_true(test_now_ns() < end);
    }
    assert_true(rnl_import_is_direct(f.m));
    struct rnl_env *env = f.m->peer->via->env;
    f.heard = &f.m->peer->via->fast.conn[f.m->peer->at]->channel.distance;
    f.ops = *env->ops;
    f.ops.sense_fence = sense_fence;
    env->ops = &f.ops;
    *f.heard = NEAR_NS / RNL_SENSE_UNIT_NS << 1 | RNL_NEAR; /* what messages have said before */
    *state = &f;
    return 0;
}

static int close_import(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(test_hub_close(&f->h), 0);
    return 0;
}

/* A process that does nothing but put learns within few puts of some size that it, or the owner, was moved to another
 * processor. */
static void puts_alone_learn_the_distance_anew(void **state)
{
    static const size_t sizes[] = {4096, 64 << 10, 4096 + 8, 4096 - 1};
    const struct fixture *f = *state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(verdict_of_puts(f, sizes[i], FEW, FAR_NS), RNL_FAR);
        assert_int_equal(verdict_of_puts(f, sizes[i], FEW, NEAR_NS), RNL_NEAR);
    }
}

/* Messages that say again what they said before do not undo what puts have learnt; but newer ones that say otherwise
 * count. */
static void what_is_new_counts(void **state)
{
    const struct fixture *f = *state;
    assert_int_equal(verdict_of_puts(f, 4096, FEW, FAR_NS), RNL_FAR);
    *f->heard += 2; /* the average of what is near all the same */
    put(f, 4096);
    assert_int_equal(f->m->peer->distance & RNL_FAR, RNL_FAR);
    assert_int_equal(verdict_of_puts(f, 4096, FEW, NEAR_NS), RNL_NEAR);
    *f->heard = FAR_NS / RNL_SENSE_UNIT_NS << 1 | RNL_FAR;
    put(f, 4096);
    assert_int_equal(f->m->peer->distance & RNL_FAR, RNL_FAR);
}

/* A sample is rare while all stays as it is, and where nothing does. A third that was delayed changes nothing. */
static void samples_are_rare_and_robust(void **state)
{
    const struct fixture *f = *state;
    assert_int_equal(verdict_of_puts(f, 4096, 200, NEAR_NS), RNL_NEAR);
    fences = 0;
    assert_int_equal(verdict_of_puts(f, 4096, 320, NEAR_NS), RNL_NEAR);
    assert_in_range(fences, 5, 10);
    for (fence_ns = SLOW_NS, fences = 0; fences == 0;)
        put(f, 4096);
    assert_int_equal(f->m->peer->distance & RNL_FAR, RNL_NEAR);
    assert_int_equal(verdict_of_puts(f, 4096, 1, NEAR_NS), RNL_NEAR);
    assert_int_equal(fences, 2); /* a look at once whether it was a move */
    assert_int_equal(verdict_of_puts(f, BYTES, 320, SLOW_NS), RNL_NEAR);
    assert_int_equal(fences, 2); /* how long memory takes is no distance */
    for (fences = 0; fences < 30;) {
        fence_ns = fences % 3 ? NEAR_NS : SLOW_NS;
        put(f, 4096);
        assert_int_equal(f->m->peer->distance & RNL_FAR, RNL_NEAR);
    }
    fences = 0;
    for (unsigned i = 0; i < 320; i++) {
        fence_ns = fences % 2 ? NEAR_NS : FAR_NS + NEAR_NS;
        put(f, 4096);
    }
    assert_in_range(fences, 5, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(puts_alone_learn_the_distance_anew, open_import, close_import),
        cmocka_unit_test_setup_teardown(what_is_new_counts, open_import, close_import),
        cmocka_unit_test_setup_teardown(samples_are_rare_and_robust, open_import, close_import),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
