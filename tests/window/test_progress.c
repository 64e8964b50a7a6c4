/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_progress.c - rnl_progress_start: what peers do with the windows of an owner that computes and calls nothing;
 * which functions of the program run meanwhile, and which wait for it; revoke, fork and death. */
#include "window/progress.h"

#include <sys/wait.h>
#include <unistd.h>

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
        cmocka_unit_test(a_revoke_while_the_thread_works),
        cmocka_unit_test(a_fork_leaves_the_thread_with_the_parent),
        cmocka_unit_test(a_dead_peer_holds_nobody_up),
        cmocka_unit_test(where_it_cannot_be_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
