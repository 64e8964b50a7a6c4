/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The agent: places, segments, deaths, the close. What it makes of ranks that do wrong: test_agent_wrong.c. */
#include "job/played.h"
#include "job/waitfd.h"

static void welcome_tells_a_rank_its_place(void **state)
{
    (void)state;
    struct job j = job_of(2);
    const struct rnl_msg_welcome *w = &j.rank[1].welcome;
    assert_int_equal(w->rank, 1);
    assert_int_equal(w->size, SIZE);
    assert_int_not_equal(w->incarnation, j.rank[0].welcome.incarnation);
    assert_string_equal(w->host, "here");
    assert_memory_equal(w->key, "a key of thirty-two bytes......", 32);
    const struct rnl_status_page *s = j.rank[0].status;
    assert_int_equal(s->magic, RNL_STATUS_MAGIC);
    assert_int_equal(s->size, SIZE);
    assert_int_equal(s->rank[1].state, RNL_RANK_JOINED);
    assert_int_equal(s->rank[2].state, RNL_RANK_STARTING);
    assert_int_equal(s->rank[1].pid, getpid());
    end(&j);
}

static void a_segment_goes_to_both_sides_and_the_agent_keeps_none(void **state)
{
    (void)state;
    struct job j = job_of(2);
    int before = descriptors(), one = -1, two = -1, none = -1;
    uint32_t news = j.rank[1].status->rank[1].news, bell = j.rank[1].bells[1].word;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 1 << 20, &one), RNL_SEGMENT_FOUND);
    assert_int_equal(j.rank[1].status->rank[1].news, news + 1);
    assert_int_equal(j.rank[1].bells[1].word, bell + 1);
    struct rnl_event e = next_event(&j.rank[1]);
    assert_int_equal(e.kind, RNL_EVENT_CONNECT);
    assert_int_equal(e.rank, 0);
    assert_int_equal(e.incarnation, j.rank[0].welcome.incarnation);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 4096, &none), RNL_SEGMENT_BYTES);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 1 << 20, &two), RNL_SEGMENT_FOUND);
    hears_nothing(&j.rank[0]); /* who asked first needs no telling */
    have(j.a, &j.rank[1], 0);
    have(j.a, &j.rank[0], 1);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 1 << 20, &none), RNL_SEGMENT_TWICE);
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 1 << 20, &none), RNL_SEGMENT_TWICE);
    struct stat s, t;
    fstat(one, &s);
    fstat(two, &t);
    assert_int_equal(s.st_ino, t.st_ino);
    assert_int_equal(s.st_size, 1 << 20);
    assert_int_equal(rnl_memfd_check(one, 1 << 20, F_SEAL_SEAL), 0);
    assert_int_equal(ftruncate(one, 1), -1);
    assert_int_equal(fcntl(two, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(one);
    close(two);
    assert_int_equal(descriptors(), before);
    assert_int_equal(ask_segment(j.a, &j.rank[0], 2, (uint64_t)1 << 60, &none), RNL_SEGMENT_BYTES);
    end(&j);
}

/* A descriptor can be lost on its way into a full table, and mapping can fail: whoever has not said that it has the
 * segment is given it again. */
static void a_segment_is_given_until_it_is_had(void **state)
{
    (void)state;
    struct job j = job_of(2);
    struct stat s, t;
    int before = descriptors(), one = -1, again = -1, two = -1, none = -1;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 4096, &one), RNL_SEGMENT_FOUND);
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 4096, &again), RNL_SEGMENT_FOUND);
    fstat(one, &s);
    fstat(again, &t);
    assert_int_equal(s.st_ino, t.st_ino);
    have(j.a, &j.rank[0], 1);
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 4096, &none), RNL_SEGMENT_TWICE);
    assert_int_equal(next_event(&j.rank[1]).kind, RNL_EVENT_CONNECT);
    hears_nothing(&j.rank[1]); /* once */
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 4096, &two), RNL_SEGMENT_FOUND);
    close(two);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 4096, &two), RNL_SEGMENT_FOUND);
    fstat(two, &t);
    assert_int_equal(s.st_ino, t.st_ino);
    have(j.a, &j.rank[1], 0);
    close(one);
    close(again);
    close(two);
    assert_int_equal(descriptors(), before);
    have(j.a, &j.rank[1], 2); /* a lie */
    assert_int_equal(j.rank[0].status->rank[1].state, RNL_RANK_DEAD);
    end(&j);
}

static void who_parts_is_dead_for_the_other_alone(void **state)
{
    (void)state;
    struct job j = job_of(3);
    struct rnl_msg msg = {.kind = RNL_MSG_DISCONNECT, .u.peer = {.rank = 1}};
    for (int i = 0; i < 100; i++) { /* it is told once */
        say(j.rank[0].sock, &msg, -1);
        rnl_agent_step(j.a, now);
    }
    struct rnl_event e = next_event(&j.rank[1]);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.rank, 0);
    assert_int_equal(e.incarnation, j.rank[0].welcome.incarnation);
    assert_int_equal(e.why, RNL_DEATH_DISCONNECTED);
    hears_nothing(&j.rank[1]);
    hears_nothing(&j.rank[2]);
    assert_int_equal(j.rank[0].status->rank[0].state, RNL_RANK_JOINED);
    assert_int_equal(j.rank[0].status->rank[1].state, RNL_RANK_JOINED);
    msg.u.peer.rank = 0; /* from itself */
    say(j.rank[0].sock, &msg, -1);
    rnl_agent_step(j.a, now);
    assert_int_equal(j.rank[1].status->rank[0].state, RNL_RANK_DEAD);
    end(&j);
}

static void a_death_is_told_everywhere(void **state)
{
    (void)state;
    struct job j = job_of(3);
    struct rnl_waitfd wait = RNL_WAITFD_NONE;
    assert_int_equal(rnl_waitfd_new(&wait, &j.rank[0].bells[0]), 0);
    struct pollfd p = {.fd = wait.epoll, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    uint32_t news[2], bell[2];
    for (int i = 0; i < 2; i++) {
        news[i] = j.rank[i].status->rank[i].news;
        bell[i] = j.rank[i].bells[i].word;
    }
    rnl_agent_exited(j.a, 2, SIGKILL, 0, now);
    assert_int_equal(poll(&p, 1, 0), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(j.rank[i].status->rank[i].news, news[i] + 1);
        assert_int_equal(j.rank[i].bells[i].word, bell[i] + 1);
        struct rnl_event e = next_event(&j.rank[i]);
        assert_int_equal(e.kind, RNL_EVENT_DEATH);
        assert_int_equal(e.rank, 2);
        assert_int_equal(e.why, RNL_DEATH_SIGNAL);
        assert_int_equal(e.detail, SIGKILL);
        hears_nothing(&j.rank[i]);
    }
    assert_int_equal(j.rank[0].status->rank[2].state, RNL_RANK_DEAD);
    assert_int_equal(j.rank[0].status->rank[2].detail, SIGKILL);
    struct rnl_agent_death d;
    assert_int_equal(rnl_agent_next_death(j.a, &d), 0); /* the launcher told us */
    int none;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 2, 4096, &none), RNL_SEGMENT_DEAD);
    /* rank 3 joins late and hears of it behind its welcome; rank 1 then ends with a status before it says anything */
    enter(j.a, &j.rank[3], 3);
    assert_int_equal(next_event(&j.rank[3]).rank, 2);
    rnl_agent_exited(j.a, 1, 0, 5, now);
    struct rnl_event e = next_event(&j.rank[3]);
    assert_int_equal(e.why, RNL_DEATH_EXIT);
    assert_int_equal(e.detail, 5);
    rnl_waitfd_free(&wait);
    end(&j);
}

static void a_rank_that_ends_without_joining_is_reported(void **state)
{
    (void)state;
    struct job j = job_of(1);
    rnl_agent_exited(j.a, 3, 0, 0, now);
    struct rnl_event e = next_event(&j.rank[0]);
    assert_int_equal(e.why, RNL_DEATH_NEVER_JOINED);
    assert_int_equal(e.rank, 3);
    end(&j);
}

static void what_the_dead_had_made_is_still_handed_over(void **state)
{
    (void)state;
    struct job j = job_of(2);
    int one = -1, two = -1;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 8192, &one), RNL_SEGMENT_FOUND);
    rnl_agent_exited(j.a, 0, SIGKILL, 0, now);
    assert_int_equal(next_event(&j.rank[1]).kind, RNL_EVENT_CONNECT);
    assert_int_equal(next_event(&j.rank[1]).kind, RNL_EVENT_DEATH);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 8192, &two), RNL_SEGMENT_FOUND);
    close(one);
    close(two);
    end(&j);
}

static void a_segment_waits_for_a_rank_that_joins_late(void **state)
{
    (void)state;
    struct job j = job_of(2);
    int one = -1, two = -1;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 3, 8192, &one), RNL_SEGMENT_FOUND);
    rnl_agent_exited(j.a, 1, SIGKILL, 0, now); /* not one of the two */
    enter(j.a, &j.rank[3], 3);
    struct rnl_event e = next_event(&j.rank[3]);
    assert_int_equal(e.kind, RNL_EVENT_CONNECT);
    assert_int_equal(e.rank, 0);
    assert_int_equal(next_event(&j.rank[3]).kind, RNL_EVENT_DEATH);
    hears_nothing(&j.rank[3]);
    assert_int_equal(ask_segment(j.a, &j.rank[3], 0, 8192, &two), RNL_SEGMENT_FOUND);
    struct stat s, t;
    fstat(one, &s);
    fstat(two, &t);
    assert_int_equal(s.st_ino, t.st_ino);
    close(one);
    close(two);
    end(&j);
}

static void the_close_needs_two_quiet_waves(void **state)
{
    (void)state;
    struct job j = job_of(3);
    for (int i = 0; i < 3; i++)
        report(&j.rank[i], 0, 10);
    rnl_agent_step(j.a, now);
    hears_nothing(&j.rank[0]); /* rank 3 lives and has not joined */
    rnl_agent_exited(j.a, 3, 0, 0, now);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next_event(&j.rank[i]).kind, RNL_EVENT_DEATH);
        struct rnl_event e = next_event(&j.rank[i]);
        assert_int_equal(e.kind, RNL_EVENT_CLOSE_REQUEST);
        assert_int_equal(e.wave, 1);
        report(&j.rank[i], 1, 10);
    }
    rnl_agent_step(j.a, now);
    for (int i = 0; i < 3; i++)
        assert_int_equal(next_event(&j.rank[i]).kind, RNL_EVENT_CLOSE_DONE);
    /* after that nobody's end is a death */
    struct rnl_msg leave = {.kind = RNL_MSG_LEAVE};
    say(j.rank[0].sock, &leave, -1);
    rnl_agent_step(j.a, now);
    rnl_agent_exited(j.a, 0, 0, 0, now);
    rnl_agent_exited(j.a, 1, 0, 0, now);
    hears_nothing(&j.rank[2]);
    assert_int_equal(j.rank[2].status->rank[0].state, RNL_RANK_LEFT);
    assert_int_equal(j.rank[2].status->rank[1].state, RNL_RANK_LEFT);
    end(&j);
}

static void leaving_before_the_close_is_a_death(void **state)
{
    (void)state;
    struct job j = job_of(2);
    struct rnl_msg leave = {.kind = RNL_MSG_LEAVE};
    say(j.rank[0].sock, &leave, -1);
    rnl_agent_exited(j.a, 0, 0, 0, now);
    struct rnl_event e = next_event(&j.rank[1]);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.why, RNL_DEATH_EXIT);
    hears_nothing(&j.rank[1]);
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(welcome_tells_a_rank_its_place),
        cmocka_unit_test(a_segment_goes_to_both_sides_and_the_agent_keeps_none),
        cmocka_unit_test(a_segment_is_given_until_it_is_had),
        cmocka_unit_test(who_parts_is_dead_for_the_other_alone),
        cmocka_unit_test(a_death_is_told_everywhere),
        cmocka_unit_test(a_rank_that_ends_without_joining_is_reported),
        cmocka_unit_test(what_the_dead_had_made_is_still_handed_over),
        cmocka_unit_test(a_segment_waits_for_a_rank_that_joins_late),
        cmocka_unit_test(the_close_needs_two_quiet_waves),
        cmocka_unit_test(leaving_before_the_close_is_a_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
