/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_agent_hosts.c - three agents of one job: a leader without ranks, and two hosts of two ranks each. What they
 * publish each other goes through queues of ours, so it can be late, lost and made up. */
#include "job/agent_internal.h"
#include "job/net.h"
#include "job/played.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { WORDS = 64 };

struct queue {
    struct rnl_word word[WORDS];
    unsigned first, end;
};
struct hosts {
    struct rnl_agent *leader, *at[2];
    struct queue up[2], down[2];
    struct played rank[4];
    int before;
};

static void keep(struct queue *q, const struct rnl_word *w)
{
    assert_true(q->end < WORDS);
    q->word[q->end++] = *w;
}

static struct hosts *now_testing;

static void from_leader(void *arg, const struct rnl_word *w)
{
    (void)arg;
    keep(&now_testing->down[0], w);
    keep(&now_testing->down[1], w);
}

static void from_host(void *arg, const struct rnl_word *w)
{
    keep(&now_testing->up[(size_t)(uintptr_t)arg], w);
}

static void deliver(struct hosts *h)
{
    int more = 1;
    while (more) {
        more = 0;
        for (int i = 0; i < 2; i++) {
            for (struct queue *q = &h->up[i]; q->first < q->end; more = 1)
                assert_int_equal(rnl_agent_word(h->leader, &q->word[q->first++], now), 0);
            for (struct queue *q = &h->down[i]; q->first < q->end; more = 1)
                assert_int_equal(rnl_agent_word(h->at[i], &q->word[q->first++], now), 0);
        }
    }
}

static struct rnl_agent *agent_on(struct rnl_agent_options *opt)
{
    struct rnl_agent *a;
    opt->size = 4;
    strcpy(opt->host, "somewhere");
    assert_int_equal(rnl_agent_new(opt, &a), 0);
    return a;
}

static void open_hosts(struct hosts *h)
{
    struct rnl_rank_location places[4];
    struct rnl_socket_addr at[2];
    memset(h, 0, sizeof *h);
    memset(places, 0, sizeof places);
    now_testing = h;
    h->before = descriptors();
    h->leader = agent_on(&(struct rnl_agent_options){.publish = from_leader});
    for (uint32_t i = 0; i < 4; i++)
        places[i] = (struct rnl_rank_location){.host = i / 2};
    for (uint32_t i = 0; i < 2; i++) {
        int sockets[2];
        assert_int_equal(rnl_net_open(RNL_NET_LOOPBACK, 2, sockets, at), 0);
        h->at[i] = agent_on(&(struct rnl_agent_options){.publish = from_host,
                                                        .arg = (void *)(uintptr_t)i,
                                                        .first = 2 * i,
                                                        .count = 2,
                                                        .places = places,
                                                        .sockets = sockets});
    }
}

static void enter_all(struct hosts *h)
{
    for (uint32_t i = 0; i < 4; i++)
        enter(h->at[i / 2], &h->rank[i], i);
    deliver(h);
}

static void close_hosts(struct hosts *h)
{
    for (int i = 0; i < 4; i++)
        quit(&h->rank[i]);
    rnl_agent_free(h->at[0]);
    rnl_agent_free(h->at[1]);
    rnl_agent_free(h->leader);
    assert_int_equal(descriptors(), h->before);
}

static void hears_death_only(const struct played *p, uint32_t rank, int why, int detail)
{
    hears_death(p, rank, why, detail);
    hears_nothing(p);
}

static void a_death_is_told_on_all_hosts_once(void **state)
{
    struct hosts h;
    (void)state;
    open_hosts(&h);
    enter_all(&h);
    assert_int_equal(is_dumped(h.leader->key), 0);
    assert_int_equal(is_dumped(h.leader), 1);
    assert_int_equal(h.rank[0].welcome.flags & RNL_WELCOME_NETWORK, RNL_WELCOME_NETWORK);
    rnl_agent_exited(h.at[1], 3, SIGKILL, 0, now);
    hears_death_only(&h.rank[2], 3, RNL_DEATH_SIGNAL, SIGKILL); /* before the leader says anything */
    hears_nothing(&h.rank[0]);
    deliver(&h);
    hears_death_only(&h.rank[0], 3, RNL_DEATH_SIGNAL, SIGKILL);
    hears_death_only(&h.rank[1], 3, RNL_DEATH_SIGNAL, SIGKILL);
    hears_nothing(&h.rank[2]);
    rnl_agent_lost(h.leader, 2, now); /* its host is gone */
    deliver(&h);
    hears_death_only(&h.rank[0], 2, RNL_DEATH_HOST, 0);
    close_hosts(&h);
}

static void who_comes_late_hears_of_the_dead(void **state)
{
    struct hosts h;
    (void)state;
    open_hosts(&h);
    enter(h.at[0], &h.rank[0], 0);
    rnl_agent_exited(h.at[0], 0, 0, 5, now);
    deliver(&h);
    enter(h.at[1], &h.rank[2], 2);
    hears_death_only(&h.rank[2], 0, RNL_DEATH_EXIT, 5);
    close_hosts(&h);
}

static void hears_close(const struct played *p, enum rnl_event_kind kind, uint64_t wave)
{
    struct rnl_event e = next_event(p);
    assert_int_equal(e.kind, kind);
    if (kind == RNL_EVENT_CLOSE_REQUEST)
        assert_int_equal(e.wave, wave);
}

static void report_all(struct hosts *h, uint64_t wave)
{
    for (int i = 0; i < 4; i++)
        report(&h->rank[i], wave, 7);
    rnl_agent_step(h->at[0], now);
    rnl_agent_step(h->at[1], now);
    deliver(h);
}

static void hosts_close_together(void **state)
{
    struct hosts h;
    (void)state;
    open_hosts(&h);
    enter_all(&h);
    report_all(&h, 0);
    for (int i = 0; i < 4; i++)
        hears_close(&h.rank[i], RNL_EVENT_CLOSE_REQUEST, 1);
    report_all(&h, 1);
    for (int i = 0; i < 4; i++) /* the second wave brought the same */
        hears_close(&h.rank[i], RNL_EVENT_CLOSE_DONE, 0);
    const struct rnl_msg leave = {.kind = RNL_MSG_LEAVE};
    say(h.rank[0].sock, &leave, -1);
    rnl_agent_step(h.at[0], now);
    deliver(&h);
    hears_nothing(&h.rank[1]); /* no death */
    hears_nothing(&h.rank[2]);
    close_hosts(&h);
}

static void a_wave_that_nobody_asked_for_is_a_lie(void **state)
{
    struct hosts h;
    struct rnl_agent_death d;
    (void)state;
    open_hosts(&h);
    enter_all(&h);
    report(&h.rank[1], 9, 7);
    rnl_agent_step(h.at[0], now);
    assert_int_equal(rnl_agent_next_death(h.at[0], &d), 1);
    assert_int_equal(d.rank, 1);
    assert_int_equal(d.why, RNL_DEATH_BROKEN);
    deliver(&h);
    hears_death_only(&h.rank[3], 1, RNL_DEATH_BROKEN, 0);
    close_hosts(&h);
}

static void no_memory_is_shared_between_hosts(void **state)
{
    struct hosts h;
    struct rnl_agent_death d;
    int fd = -1;
    struct rnl_msg ask = {.kind = RNL_MSG_SEGMENT, .u.segment = {1, 2, 4096}};
    (void)state;
    open_hosts(&h);
    enter_all(&h);
    assert_int_equal(ask_segment(h.at[0], &h.rank[0], 1, 4096, &fd), RNL_SEGMENT_FOUND);
    close(fd);
    say(h.rank[1].sock, &ask, -1);
    rnl_agent_step(h.at[0], now);
    assert_int_equal(rnl_agent_next_death(h.at[0], &d), 1);
    assert_int_equal(d.rank, 1);
    assert_int_equal(d.why, RNL_DEATH_BROKEN);
    close_hosts(&h);
}

/* Rank 3's process is ours to stop. */
static pid_t open_with_child(struct hosts *h)
{
    open_hosts(h);
    enter_all(h);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int fd = 3; fd < 256; fd++)
            close(fd);  /* the sockets that it has of ours would stay open */
        raise(SIGSTOP); /* only now: it would outlive a test that fails */
        for (;;)
            pause();
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    rnl_agent_started(h->at[1], 3, child);
    h->at[1]->rank[3].joined = child;
    return child;
}

static void look(struct hosts *h)
{
    rnl_agent_step(h->at[0], now);
    rnl_agent_step(h->at[1], now);
    deliver(h);
}

static void signal_and_wait(struct hosts *h, pid_t child, int signal, int runs)
{
    kill(child, signal);
    for (int i = 0; i < 10000 && rnl_agent_runs(h->at[1], 3, now) != runs; i++)
        usleep(1000);
    assert_int_equal(rnl_agent_runs(h->at[1], 3, now), runs);
}

static void report_some(struct hosts *h, uint32_t first, uint32_t last, uint64_t wave)
{
    for (uint32_t i = first; i <= last; i++)
        report(&h->rank[i], wave, 7);
    look(h);
}

/* Whoever is stopped holds the close up for as long as it is; its agent knows who it is and since when. */
static void the_close_waits_for_one_that_is_stopped(void **state)
{
    struct hosts h;
    uint64_t since;
    (void)state;
    pid_t child = open_with_child(&h);
    signal_and_wait(&h, child, SIGCONT, 1);
    assert_false(rnl_agent_stopped(h.at[1], 3, &since));
    report_some(&h, 0, 2, 0);
    signal_and_wait(&h, child, SIGSTOP, 0);
    uint64_t first = now;
    for (int i = 0; i < 1000; i++, now += 1000000000) {
        assert_int_equal(rnl_agent_runs(h.at[1], 3, now), 0);
        look(&h);
    }
    assert_true(rnl_agent_stopped(h.at[1], 3, &since));
    assert_true(since == first);
    assert_false(rnl_agent_stopped(h.at[1], 2, &since));
    assert_false(rnl_agent_stopped(h.leader, 3, &since)); /* another host's */
    for (int i = 0; i < 4; i++)
        hears_nothing(&h.rank[i]);
    signal_and_wait(&h, child, SIGCONT, 1);
    assert_false(rnl_agent_stopped(h.at[1], 3, &since));
    report_some(&h, 3, 3, 0);
    for (int i = 0; i < 4; i++)
        hears_close(&h.rank[i], RNL_EVENT_CLOSE_REQUEST, 1);
    signal_and_wait(&h, child, SIGSTOP, 0);
    report_some(&h, 0, 2, 1);
    kill(child, SIGKILL); /* as --stopped-after does */
    assert_int_equal(waitpid(child, NULL, 0), child);
    rnl_agent_exited(h.at[1], 3, SIGKILL, 0, now);
    assert_false(rnl_agent_stopped(h.at[1], 3, &since));
    look(&h);
    for (int i = 0; i < 3; i++) {
        hears_death(&h.rank[i], 3, RNL_DEATH_SIGNAL, SIGKILL);
        hears_close(&h.rank[i], RNL_EVENT_CLOSE_REQUEST, 2);
    }
    close_hosts(&h);
}

static void who_parts_tells_the_other_host(void **state)
{
    struct hosts h;
    struct rnl_msg part = {.kind = RNL_MSG_DISCONNECT, .u.peer = {.rank = 3}};
    (void)state;
    open_hosts(&h);
    enter_all(&h);
    for (int i = 0; i < 3; i++) {
        say(h.rank[0].sock, &part, -1);
        rnl_agent_step(h.at[0], now);
    }
    deliver(&h);
    hears_death_only(&h.rank[3], 0, RNL_DEATH_DISCONNECTED, 0);
    hears_nothing(&h.rank[1]);
    hears_nothing(&h.rank[2]);
    close_hosts(&h);
}

static void words_that_cannot_be_are_refused(void **state)
{
    struct hosts h;
    static const struct rnl_word to_leader[] = {{.kind = 0},
                                                {.kind = RNL_WORD_DEATH},
                                                {.kind = RNL_WORD_REQUEST},
                                                {.kind = RNL_WORD_JOINED, .rank = 4},
                                                {.kind = RNL_WORD_DISCONNECT, .other = 4},
                                                {.kind = RNL_WORD_GONE, .why = RNL_DEATH_HOST + 1},
                                                {.kind = RNL_WORD_REPORT, .wave = 77}};
    static const struct rnl_word to_host[] = {{.kind = RNL_WORD_JOINED},
                                              {.kind = RNL_WORD_REPORT},
                                              {.kind = RNL_WORD_GONE},
                                              {.kind = RNL_WORD_DEATH, .rank = 9}};
    (void)state;
    open_hosts(&h);
    enter_all(&h);
    for (size_t i = 0; i < sizeof to_leader / sizeof to_leader[0]; i++)
        assert_true(rnl_agent_word(h.leader, &to_leader[i], now) < 0);
    for (size_t i = 0; i < sizeof to_host / sizeof to_host[0]; i++)
        assert_true(rnl_agent_word(h.at[0], &to_host[i], now) < 0);
    for (int i = 0; i < 4; i++)
        hears_nothing(&h.rank[i]);
    const struct rnl_word own = {.kind = RNL_WORD_DEATH, .rank = 0, .why = RNL_DEATH_EXIT};
    assert_int_equal(rnl_agent_word(h.at[0], &own, now), 0); /* of a rank that is ours we know better */
    assert_int_equal(h.rank[1].status->rank[0].state, RNL_RANK_JOINED);
    close_hosts(&h);
}

static void who_lives_is_vouched_for(void **state)
{
    struct hosts h;
    (void)state;
    open_hosts(&h);
    enter_all(&h);
    assert_int_equal(rnl_agent_runs(h.at[0], 0, now), 1); /* this process */
    assert_int_equal(rnl_agent_runs(h.at[0], 2, now), 0); /* another host's */
    quit(&h.rank[1]);
    memset(&h.rank[1], 0, sizeof h.rank[1]);
    rnl_agent_exited(h.at[0], 1, SIGKILL, 0, now);
    assert_int_equal(rnl_agent_runs(h.at[0], 1, now), 0);
    rnl_agent_attest(h.at[0], 3, 12345);
    assert_int_equal(h.rank[0].status->rank[3].attested_ns, 12345);
    close_hosts(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_is_told_on_all_hosts_once),
        cmocka_unit_test(who_comes_late_hears_of_the_dead),
        cmocka_unit_test(hosts_close_together),
        cmocka_unit_test(a_wave_that_nobody_asked_for_is_a_lie),
        cmocka_unit_test(no_memory_is_shared_between_hosts),
        cmocka_unit_test(the_close_waits_for_one_that_is_stopped),
        cmocka_unit_test(who_parts_tells_the_other_host),
        cmocka_unit_test(words_that_cannot_be_are_refused),
        cmocka_unit_test(who_lives_is_vouched_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
