/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_mpi.c - MPI's queues on FM 1.1 and on FM 2.x: tags, sources and communicators match, in order, whether a receive
 * or its message comes first; what a match goes through is what it costs. */
#include "sim/myrinet/systems/mpi/mpi.h"
#include "tests/myrinet/sides.h"

enum { LONG = 6000, MANY = 20 };

struct heard {
    uint32_t wrong, checks;
    uint64_t cost_ps[2];
};

static void fill(struct myri_side *s, uint32_t word, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_host_set_word(s->host, s->out + i, word);
}

static void expect(struct heard *h, struct mpi_state *m, uint32_t at, const struct mpi_envelope *got, uint32_t source,
                   uint32_t tag, uint32_t word, uint32_t bytes)
{
    h->checks++;
    h->wrong += got->source != source || got->tag != tag || got->bytes != bytes;
    for (uint32_t i = 0; i < bytes; i += 4)
        h->wrong += myri_host_word(m->side->host, at + i) != word;
}

static void receive(struct heard *h, struct mpi_state *m, const struct mpi_communicator *c, uint32_t from, uint32_t tag,
                    uint32_t at, uint32_t source, uint32_t is_tag, uint32_t word, uint32_t bytes)
{
    struct mpi_envelope got = {0};
    struct mpi_request *r = mpi_irecv(m, c, from, tag, at, LONG);
    if (r && mpi_wait(m, r, &got, RNL_SIM_NEVER))
        expect(h, m, at, &got, source, is_tag, word, bytes);
}

static void talk(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct heard *h = all->arg;
    struct mpi_state *m = s->state;
    struct mpi_communicator other;
    mpi_comm_dup(m, &m->world, &other);
    if (s->node) { /* 1 and 2 send; 2 a little later */
        myri_task_spend(t, s->node * (uint64_t)500000000, "wait");
        fill(s, 100 * s->node, LONG);
        mpi_send(m, &m->world, 0, 5, s->out, LONG);
        for (uint32_t k = 0; k < MANY; k++) {
            fill(s, 100 * s->node + k, 40);
            mpi_send(m, &m->world, 0, 10 + k, s->out, 40);
        }
        fill(s, 77, 8);
        mpi_send(m, &other, 0, 5, s->out, 8);
        return;
    }
    uint32_t at = s->out + LONG, posted_at = s->out;
    struct mpi_envelope got = {0};
    struct mpi_request *posted = mpi_irecv(m, &m->world, 2, 5, posted_at, LONG); /* posted before it is sent */
    receive(h, m, &other, 1, 5, at, 1, 5, 77, 8); /* the last one of node 1's, by its communicator */
    uint64_t from = myri_hw_now(s->hw);
    receive(h, m, &m->world, 1, 10 + MANY - 1, at, 1, 10 + MANY - 1, 100 + MANY - 1, 40); /* behind all others */
    h->cost_ps[0] = myri_hw_now(s->hw) - from;
    from = myri_hw_now(s->hw);
    receive(h, m, &m->world, 1, 10, at, 1, 10, 100, 40); /* nearly first */
    h->cost_ps[1] = myri_hw_now(s->hw) - from;
    receive(h, m, &m->world, 1, MPI_ANY, at, 1, 5, 100, LONG); /* of any tag: the oldest */
    for (uint32_t k = 1; k + 1 < MANY; k++)
        receive(h, m, &m->world, MPI_ANY, 10 + k, at, 1, 10 + k, 100 + k, 40);
    if (mpi_wait(m, posted, &got, RNL_SIM_NEVER))
        expect(h, m, posted_at, &got, 2, 5, 200, LONG);
    for (uint32_t k = 0; k < MANY; k++)
        receive(h, m, &m->world, 2, MPI_ANY, at, 2, 10 + k, 200 + k, 40);
    receive(h, m, &other, MPI_ANY, MPI_ANY, at, 2, 5, 77, 8);
}

static void matches_on(const char *system, const char *on)
{
    static struct sides all;
    struct heard h = {0};
    make_sides(&all, system, on, 3, LONG, 1);
    all.arg = &h;
    open_sides(&all);
    start_sides(&all, talk);
    if (myri_hw_run(all.hw) < 0)
        fail_msg("%s: %s", system, rnl_last_error()->text);
    assert_int_equal(h.wrong, 0);
    assert_int_equal(h.checks, 2 * (MANY + 2));
    /* the last of a queue costs at least a look at each before it: link, context, tag */
    uint64_t operation = all.hw->t.operation;
    assert_true(h.cost_ps[0] >= h.cost_ps[1] + (MANY - 2) * 9 * operation);
    const struct mpi_state *m = all.side[0].state;
    assert_null(m->posted);
    assert_null(m->unexpected);
    free_sides(&all);
}

static void tags_sources_and_communicators_match_in_order(void **state)
{
    (void)state;
    matches_on("mpi-fm1", "H-S");
    matches_on("mpi-fm2", "H-FM2");
}

/* On a host that copies slowly most messages of a stream are in MPI's pool before the first receive returns. */
static void what_comes_before_the_first_receive_returns_takes_its_time(void **state)
{
    (void)state;
    struct myri_outcome mpi, fm;
    struct myri_experiment x = experiment("mpi-fm1", "H-S", MYRI_STREAM_RATE, 2048);
    x.machine.v[MYRI_M_copy_rate] = 8;
    x.count = 100;
    assert_int_equal(myri_experiment_run(&x, &mpi), 0);
    x.system = myri_system_find("fm1");
    assert_int_equal(myri_experiment_run(&x, &fm), 0);
    assert_true(mpi.value < 0.5 * fm.value &&
                mpi.value > 0.2 * fm.value); /* three copies at the receiver, of FM's one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_sources_and_communicators_match_in_order),
        cmocka_unit_test(what_comes_before_the_first_receive_returns_takes_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
