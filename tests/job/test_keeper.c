/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_keeper.c - the keepers of a job on several hosts, with two ranks each, in one process: they talk over loopback,
 * and time is ours. What a host that is cut off says goes to a port that nobody listens at. */
#include "job/keeper_in.h"
#include "job/net.h"
#include "job/played.h"

enum { HOSTS_MOST = 3, EACH = 2, S = 1000 };

struct host {
    struct rnl_keeper plan;
    struct keep k;
    struct rnl_here here[HOSTS_MOST]; /* as this host knows them */
    uint8_t stopped;
};
struct jobs {
    uint32_t hosts, size, host_of[HOSTS_MOST * EACH];
    struct rnl_host at[HOSTS_MOST];
    struct host host[HOSTS_MOST];
    struct played rank[HOSTS_MOST * EACH];
    uint16_t port[HOSTS_MOST], nowhere;
    int before, silent;
};

/* Whether it would make another step: one without ranks may be done. */
static int goes_on(struct host *h)
{
    return !h->stopped && !h->k.ended && (!h->k.said_over || rnl_keep_stays(&h->k, now));
}

/* Until `until`, each keeper when it wants to; nothing takes time. */
static void go_on(struct jobs *j, uint64_t until)
{
    for (;;) {
        uint64_t next = until;
        for (int round = 0; round < 4; round++) /* for answers to answers */
            for (uint32_t h = 0; h < j->hosts; h++)
                if (goes_on(&j->host[h]))
                    rnl_keep_step(&j->host[h].k, now);
        if (now >= until)
            return;
        for (uint32_t h = 0; h < j->hosts; h++) {
            uint64_t at = rnl_keep_deadline_ns(&j->host[h].k);
            if (goes_on(&j->host[h]) && at < next)
                next = at;
        }
        now = next > now ? next : now + 1;
    }
}

/* What `from` says to `to` is lost. */
static void cut(struct jobs *j, uint32_t from, uint32_t to)
{
    j->host[from].here[to].probe_port = j->nowhere;
}

static void mend(struct jobs *j, uint32_t from, uint32_t to)
{
    j->host[from].here[to].probe_port = j->port[to];
}

static void begin(struct jobs *j, uint32_t hosts)
{
    struct rnl_socket_addr at;
    memset(j, 0, sizeof *j);
    j->hosts = hosts;
    j->size = hosts * EACH;
    j->before = descriptors();
    assert_int_equal(rnl_net_open(RNL_NET_LOOPBACK, 1, &j->silent, &at), 0);
    j->nowhere = at.port;
    for (uint32_t h = 0; h < hosts; h++) {
        struct rnl_here *here = &j->host[h].here[h];
        struct rnl_keeper *plan = &j->host[h].plan;
        assert_int_equal(rnl_keeper_open(plan, EACH, 1, here), 0);
        plan->size = j->size;
        plan->hosts = hosts;
        plan->host = here->host = h;
        plan->host_of = j->host_of;
        plan->at = j->at;
        plan->here = j->host[h].here;
        here->ways = 1;
        memcpy(here->way[0].ip, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 127, 0, 0, 1}, 16);
        j->port[h] = here->probe_port;
        j->at[h].count = EACH;
        for (uint32_t i = 0; i < EACH; i++)
            j->host_of[h * EACH + i] = h;
    }
    for (uint32_t h = 0; h < hosts; h++)
        for (uint32_t other = 0; other < hosts; other++)
            j->host[h].here[other] = j->host[other].here[other];
    for (uint32_t h = 0; h < hosts; h++) {
        j->host[h].k.plan = &j->host[h].plan;
        assert_int_equal(rnl_keep_begin(&j->host[h].k, now), 0);
        j->host[h].plan.probe = -1; /* the search has it */
    }
    go_on(j, now + 100 * MS);
    for (uint32_t i = 0; i < j->size; i++) {
        assert_non_null(j->host[j->host_of[i]].k.agent);
        enter(j->host[j->host_of[i]].k.agent, &j->rank[i], i);
    }
    go_on(j, now + 100 * MS);
}

static void finish(struct jobs *j)
{
    for (uint32_t i = 0; i < j->size; i++)
        quit(&j->rank[i]);
    for (uint32_t h = 0; h < j->hosts; h++) {
        struct host *host = &j->host[h];
        rnl_agent_free(host->k.agent);
        rnl_search_free(host->k.search);
        for (uint32_t other = 0; other < j->hosts; other++)
            rnl_words_free(&host->k.other[other].words);
        free(host->k.other);
        free(host->here[h].port);
        free(host->plan.sockets); /* what is open there was the agent's */
        close(host->plan.listener);
    }
    close(j->silent);
    assert_int_equal(descriptors(), j->before);
}

/* Each rank of `host` hears that the ranks of `lost` are silent, and nothing else. */
static void hear_of_loss(const struct jobs *j, uint32_t host, uint32_t lost)
{
    for (uint32_t i = host * EACH; i < host * EACH + EACH; i++) {
        for (uint32_t k = lost * EACH; k < lost * EACH + EACH; k++)
            hears_death(&j->rank[i], k, RNL_DEATH_HOST, 0);
        hears_nothing(&j->rank[i]);
    }
}

static void nobody_hears(const struct jobs *j)
{
    for (uint32_t i = 0; i < j->size; i++)
        hears_nothing(&j->rank[i]);
}

/* The last ranks of that host are gone; whether its keeper may end. */
static int ends_with_its_ranks(struct jobs *j, uint32_t host)
{
    for (uint32_t i = host * EACH; i < host * EACH + EACH; i++)
        rnl_agent_exited(j->host[host].k.agent, i, 0, 0, now);
    return !rnl_keep_stays(&j->host[host].k, now);
}

/* ---- what is promised ---- */

static struct jobs j;

static void a_death_is_told_on_all_hosts(void **state)
{
    (void)state;
    begin(&j, 3);
    nobody_hears(&j);
    rnl_agent_exited(j.host[2].k.agent, 5, SIGKILL, 0, now);
    go_on(&j, now + 100 * MS);
    for (uint32_t i = 0; i < 5; i++)
        hears_death(&j.rank[i], 5, RNL_DEATH_SIGNAL, SIGKILL);
    finish(&j);
}

static void who_is_idle_is_not_lost(void **state)
{
    (void)state;
    begin(&j, 3);
    go_on(&j, now + 600ull * S * MS);
    nobody_hears(&j);
    for (uint32_t h = 0; h < 3; h++)
        assert_false(j.host[h].k.ended);
    finish(&j);
}

/* Its keeper was killed, or the host has no power: in a job in which nobody says anything. */
static void an_idle_host_that_falls_silent_is_lost(void **state)
{
    (void)state;
    begin(&j, 3);
    go_on(&j, now + 100ull * S * MS);
    j.host[1].stopped = 1;
    go_on(&j, now + 17ull * S * MS); /* 18 s since its last word at least */
    nobody_hears(&j);
    go_on(&j, now + 15ull * S * MS); /* 25, and the next time that somebody looks */
    hear_of_loss(&j, 0, 1);
    hear_of_loss(&j, 2, 1);
    assert_false(j.host[0].k.ended || j.host[2].k.ended);
    go_on(&j, now + 600ull * S * MS); /* the others go on */
    hears_nothing(&j.rank[0]);
    hears_nothing(&j.rank[4]);
    assert_false(ends_with_its_ranks(&j, 0)); /* the leader stays for host 2 */
    (void)ends_with_its_ranks(&j, 2);
    go_on(&j, now + 100 * MS);
    assert_true(ends_with_its_ranks(&j, 2) && ends_with_its_ranks(&j, 0));
    finish(&j);
}

/* A way that is cut in one direction only: the host is given up, and must not hear that the others live on. */
static void a_host_that_is_given_up_ends(void **state)
{
    (void)state;
    begin(&j, 3);
    cut(&j, 1, 0);
    go_on(&j, now + 33ull * S * MS);
    hear_of_loss(&j, 0, 1);
    hear_of_loss(&j, 2, 1);
    assert_false(j.host[1].k.ended);
    mend(&j, 1, 0); /* too late */
    go_on(&j, now + 33ull * S * MS);
    assert_true(j.host[1].k.ended);
    assert_false(j.host[0].k.ended || j.host[2].k.ended);
    hears_nothing(&j.rank[0]);
    hears_nothing(&j.rank[4]);
    finish(&j);
}

static void without_the_leader_all_end(void **state)
{
    (void)state;
    begin(&j, 3);
    go_on(&j, now + 50ull * S * MS);
    j.host[0].stopped = 1;
    go_on(&j, now + 17ull * S * MS);
    assert_false(j.host[1].k.ended || j.host[2].k.ended);
    go_on(&j, now + 15ull * S * MS);
    assert_true(j.host[1].k.ended && j.host[2].k.ended);
    finish(&j);
}

/* The whole host slept: the others were not silent, it was not there. */
static void who_was_stopped_itself_blames_nobody(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 2; h++) {
        begin(&j, 2);
        go_on(&j, now + 50ull * S * MS);
        cut(&j, 1 - h, h); /* a socket's buffer keeps nothing while its host sleeps */
        j.host[h].stopped = 1;
        go_on(&j, now + 20ull * S * MS);
        j.host[1 - h].stopped = 1;
        now += 30ull * S * MS;
        mend(&j, 1 - h, h);
        j.host[h].stopped = j.host[1 - h].stopped = 0;
        go_on(&j, now + 100ull * S * MS);
        assert_false(j.host[0].k.ended || j.host[1].k.ended);
        nobody_hears(&j);
        finish(&j);
    }
}

/* The leader has no rank any more, and passes on what the others say. */
static void the_leader_stays_until_the_others_have_ended(void **state)
{
    (void)state;
    begin(&j, 3);
    assert_false(ends_with_its_ranks(&j, 0));
    go_on(&j, now + 100ull * S * MS);
    assert_true(rnl_keep_stays(&j.host[0].k, now));
    hears_death(&j.rank[2], 0, RNL_DEATH_EXIT, 0);
    hears_death(&j.rank[2], 1, RNL_DEATH_EXIT, 0);
    rnl_agent_exited(j.host[2].k.agent, 5, SIGSEGV, 0, now);
    go_on(&j, now + 100 * MS);
    hears_death(&j.rank[2], 5, RNL_DEATH_SIGNAL, SIGSEGV);
    (void)ends_with_its_ranks(&j, 2);
    go_on(&j, now + 100 * MS);
    assert_false(rnl_keep_stays(&j.host[2].k, now));
    assert_true(rnl_keep_stays(&j.host[0].k, now));
    assert_false(ends_with_its_ranks(&j, 1)); /* the leader has not had its last word */
    go_on(&j, now + 100 * MS);
    assert_false(rnl_keep_stays(&j.host[1].k, now));
    assert_false(rnl_keep_stays(&j.host[0].k, now));
    finish(&j);
}

/* Nobody is there to have its last word: it is said for 5 s, and no longer. */
static void the_last_word_is_not_said_for_ever(void **state)
{
    (void)state;
    begin(&j, 2);
    j.host[0].stopped = 1;
    assert_false(ends_with_its_ranks(&j, 1));
    go_on(&j, now + 4ull * S * MS);
    assert_true(rnl_keep_stays(&j.host[1].k, now));
    go_on(&j, now + 2ull * S * MS);
    assert_false(rnl_keep_stays(&j.host[1].k, now));
    finish(&j);
}

/* Words of a death are lost for a while: they arrive, once. */
static void what_is_lost_is_said_again(void **state)
{
    (void)state;
    begin(&j, 2);
    cut(&j, 1, 0);
    cut(&j, 0, 1);
    rnl_agent_exited(j.host[1].k.agent, 2, 0, 3, now);
    go_on(&j, now + 3ull * S * MS);
    hears_nothing(&j.rank[0]);
    mend(&j, 1, 0);
    go_on(&j, now + 3ull * S * MS); /* and now what the leader has had is not heard */
    hears_death(&j.rank[0], 2, RNL_DEATH_EXIT, 3);
    hears_death(&j.rank[1], 2, RNL_DEATH_EXIT, 3);
    mend(&j, 0, 1);
    go_on(&j, now + 60ull * S * MS);
    hears_nothing(&j.rank[0]);
    hears_nothing(&j.rank[1]);
    assert_false(rnl_words_waits(&j.host[1].k.other[0].words));
    finish(&j);
}

/* A keeper whose ranks are none of host 1's speaks of them. */
static void a_host_speaks_of_its_own_ranks_only(void **state)
{
    const struct rnl_word lie = {.kind = RNL_WORD_GONE, .rank = 2, .why = RNL_DEATH_SIGNAL, .detail = SIGKILL},
                          far = {.kind = RNL_WORD_GONE, .rank = 1000, .why = RNL_DEATH_SIGNAL},
                          truth = {.kind = RNL_WORD_GONE, .rank = 4, .why = RNL_DEATH_SIGNAL, .detail = SIGBUS};
    (void)state;
    begin(&j, 3);
    assert_int_equal(rnl_words_put(&j.host[2].k.other[0].words, &lie, now), 0);
    assert_int_equal(rnl_words_put(&j.host[2].k.other[0].words, &far, now), 0);
    assert_int_equal(rnl_words_put(&j.host[2].k.other[0].words, &truth, now), 0);
    go_on(&j, now + 1ull * S * MS);
    hears_death(&j.rank[0], 4, RNL_DEATH_SIGNAL, SIGBUS);
    hears_nothing(&j.rank[0]);
    finish(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_is_told_on_all_hosts),
        cmocka_unit_test(who_is_idle_is_not_lost),
        cmocka_unit_test(an_idle_host_that_falls_silent_is_lost),
        cmocka_unit_test(a_host_that_is_given_up_ends),
        cmocka_unit_test(without_the_leader_all_end),
        cmocka_unit_test(who_was_stopped_itself_blames_nobody),
        cmocka_unit_test(the_leader_stays_until_the_others_have_ended),
        cmocka_unit_test(the_last_word_is_not_said_for_ever),
        cmocka_unit_test(what_is_lost_is_said_again),
        cmocka_unit_test(a_host_speaks_of_its_own_ranks_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
