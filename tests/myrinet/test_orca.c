/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_orca.c - Orca's shared objects on the papers' machine: copies that all nodes write at once stay equal, each
 * operation is executed once at each copy and in one order with those that are called; operations wait for their guards
 * at their own node, at another, and at all copies. */
#include "sim/myrinet/systems/orca/jacobi.h"
#include "tests/myrinet/sides.h"

enum { NODES = 8, EACH = 6, SLOTS = 3, LARGEST = 9000, ROUNDS = 100 };
/* A bounded buffer, which puts and gets wait for; and a log, which waits for nobody. */
enum { PUT = 0, GET = 1, APPEND = 0, ASK = 1, READ = 2 };

struct buffer {
    uint32_t words[NODES * ROUNDS], n, slots;
};

struct log {
    uint32_t words[NODES * (EACH + 1)], n;
};

struct member {
    struct orca orca;
    struct buffer here, everywhere;
    struct log log, asked;
    struct orca_object *buffer[NODES], *shared, *logged, *asks;
    uint32_t area, got[4 * EACH], gots, wrong;
    int done;
};

struct all {
    struct member m[NODES];
    uint32_t slow_us, taken[NODES][ROUNDS + 1];
};

static int put(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    struct buffer *b = x->state;
    if (b->n == b->slots)
        return 0;
    b->words[b->n++] = myri_host_word(o->side->host, a->in);
    return 1;
}

static int get(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    struct buffer *b = x->state;
    if (b->n == 0)
        return 0;
    myri_host_set_word(o->side->host, a->out, b->words[0]);
    a->out_bytes = 4;
    memmove(b->words, b->words + 1, --b->n * sizeof b->words[0]);
    return 1;
}

static int append(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    struct log *l = x->state;
    struct member *me = o->owner;
    const struct all *g = o->side->handled_arg;
    uint32_t word = myri_host_word(o->side->host, a->in);
    for (uint32_t i = 0; i < a->in_bytes; i += 4)
        me->wrong += myri_host_word(o->side->host, a->in + i) != word;
    if (l->n < NODES * (EACH + 1))
        l->words[l->n++] = word;
    if (g->slow_us && o->side->node == o->side->nodes - 1)
        myri_task_spend(o->side->task, g->slow_us * (uint64_t)1000000, "slow");
    return 1;
}

/* Of an object with one copy: how long the log is at its node, which is not shorter than it was at the caller's. */
static int ask(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    struct member *me = o->owner;
    me->wrong += me->log.n < myri_host_word(o->side->host, a->in);
    myri_host_set_word(o->side->host, a->out, me->log.n);
    a->out_bytes = 4;
    ((struct log *)x->state)->n++;
    return 1;
}

static int is_long(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    return ((struct log *)x->state)->n >= myri_host_word(o->side->host, a->in);
}

static const struct orca_type buffers = {{[PUT] = put, [GET] = get}, 1u << PUT | 1u << GET};
static const struct orca_type logs = {{[APPEND] = append, [ASK] = ask, [READ] = is_long}, 1u << APPEND | 1u << ASK};

static void invoke(struct member *me, struct orca_object *x, uint32_t operation, uint32_t word, uint32_t bytes)
{
    const struct myri_side *s = me->orca.side;
    struct orca_arguments a = {.in = me->area, .in_bytes = bytes, .out = me->area + LARGEST};
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_host_set_word(s->host, me->area + i, word);
    if (!orca_invoke(&me->orca, x, operation, &a))
        me->wrong++;
}

static uint32_t result(const struct member *me)
{
    return myri_host_word(me->orca.side->host, me->area + LARGEST);
}

/* Others may still wait for what this node has to execute. */
static void finish(const struct sides *sides, struct member *me)
{
    const struct myri_side *s = me->orca.side;
    const struct all *g = sides->arg;
    static const int never;
    uint32_t all_done = 0;
    me->done = 1;
    while (all_done < s->nodes && !s->hw->fault[0]) {
        (void)panda_wait(&me->orca.on.panda, &never, myri_hw_now(s->hw) + 500000000);
        all_done = 0;
        for (uint32_t i = 0; i < s->nodes; i++)
            all_done += g->m[i].done != 0;
    }
}

/* Buffers are of three kinds: of the node before, of one's own, of all. A node puts into that of the next one, whose
 * buffer has half the room; those who get wait. */
static void everybody(struct myri_task *t, void *arg)
{
    struct sides *sides = arg;
    struct myri_side *s = side_of(sides, t);
    struct all *g = sides->arg;
    struct member *me = &g->m[s->node];
    uint32_t next = (s->node + 1) % s->nodes, me_up = s->node << 16;
    for (uint32_t k = 0; k < EACH; k++) {
        static const uint32_t sizes[] = {4, 248, 8999 & ~3u, 100};
        invoke(me, me->logged, APPEND, me_up | k, sizes[(s->node + k) % 4]);
        invoke(me, me->asks, ASK, me->log.n, 4); /* of the node before, by a call */
        me->wrong += me->log.n < result(me);     /* nor is it shorter here afterwards */
        invoke(me, me->buffer[next], PUT, me_up | k, 4);
        if (k % 2 == 1) { /* two that the node before has put */
            for (int i = 0; i < 2; i++) {
                invoke(me, me->buffer[s->node], GET, 0, 4);
                me->got[me->gots++] = result(me);
            }
        }
        if ((k + s->node) % 2)
            panda_compute(&me->orca.on.panda, 700000000);
        invoke(me, me->shared, s->node % 2 ? GET : PUT, me_up | k, 4);
        if (s->node % 2)
            me->got[me->gots++] = result(me);
    }
    invoke(me, me->logged, READ, s->nodes * EACH, 4); /* waits */
    invoke(me, me->logged, APPEND, 0xffff, 4);
    invoke(me, me->logged, READ, s->nodes * (EACH + 1), 4);
    finish(sides, me);
}

static void open_member(struct member *me, struct myri_side *s, const char *system)
{
    enum panda_below below = strcmp(system, "orca-initial") == 0    ? PANDA_ON_FM1
                             : strcmp(system, "orca-ethernet") == 0 ? PANDA_ON_FLIP
                                                                    : PANDA_ON_FMMC;
    if (below != PANDA_ON_FMMC) {
        me->orca.on.panda.lacks = PANDA_INITIAL;
        me->orca.lacks = (struct orca_lacks){1, 1};
    }
    me->orca.owner = me;
    me->here.slots = me->everywhere.slots = SLOTS;
    me->area = myri_host_take(s->host, 2 * LARGEST + 8, 0);
    assert_int_equal(orca_open(&me->orca, s, below), 0);
    for (uint32_t i = 0; i < s->nodes; i++)
        me->buffer[i] = orca_new(&me->orca, &buffers, i, &me->here);
    me->shared = orca_new(&me->orca, &buffers, ORCA_EVERYWHERE, &me->everywhere);
    me->logged = orca_new(&me->orca, &logs, ORCA_EVERYWHERE, &me->log);
    struct orca_object *asks = NULL;
    for (uint32_t i = 0; i < s->nodes && me->orca.objects < ORCA_OBJECTS; i++) {
        asks = orca_new(&me->orca, &logs, i, &me->asked);
        if (i == (s->node + s->nodes - 1) % s->nodes) /* the last one in the tree of a multicast */
            me->asks = asks;
    }
}

static void open_all(struct sides *sides, struct all *g, const char *system, uint32_t nodes)
{
    memset(g, 0, sizeof *g);
    make_sides(sides, system, "H-A", nodes, LARGEST, nodes);
    sides->arg = g;
    for (uint32_t i = 0; i < nodes; i++) {
        sides->side[i].handled_arg = g;
        open_member(&g->m[i], &sides->side[i], system);
    }
}

static void all_at_once(const char *system, uint32_t nodes, uint32_t slow_us)
{
    static struct sides sides;
    static struct all g;
    open_all(&sides, &g, system, nodes);
    g.slow_us = slow_us;
    start_sides(&sides, everybody);
    if (myri_hw_run(sides.hw) < 0)
        fail_msg("%s, %u nodes: %s", system, nodes, rnl_last_error()->text);
    uint32_t taken[NODES][EACH] = {{0}}, put_and_got = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        struct member *me = &g.m[i];
        uint32_t before = (i + nodes - 1) % nodes, nth = 0;
        if (me->wrong || !me->done)
            fail_msg("%s: %u wrong at node %u of %u, done %d", system, me->wrong, i, nodes, me->done);
        /* one order of all writes, each once, and equal copies */
        assert_int_equal(me->asked.n, EACH);
        assert_int_equal(me->orca.on.panda.handled, nodes * (2 * EACH + 1)); /* reads of a copy are local */
        assert_int_equal(me->everywhere.n, g.m[0].everywhere.n);
        assert_memory_equal(me->everywhere.words, g.m[0].everywhere.words, sizeof me->everywhere.words);
        assert_memory_equal(me->log.words, g.m[0].log.words, nodes * EACH * sizeof me->log.words[0]);
        for (uint32_t k = 0; k < me->gots; k++) {
            uint32_t word = me->got[k], from = word >> 16;
            if (from == before && (i % 2 == 0 || (word & 0xffff) == nth)) { /* of its own buffer, in order */
                nth += (word & 0xffff) == nth;
            }
            if (i % 2 == 0)
                assert_int_equal(word, before << 16 | k);
            put_and_got++;
            taken[from][word & 0xffff]++;
        }
        assert_true(nth == EACH);
    }
    assert_int_equal(put_and_got, nodes * EACH + nodes / 2 * EACH);
    for (uint32_t i = 0; i < nodes; i++) /* each word of a buffer once, and those of the shared one, too */
        for (uint32_t k = 0; k < EACH; k++)
            assert_true(taken[i][k] >= 1 && taken[i][k] <= 2);
    free_sides(&sides);
}

static void copies_that_all_write_stay_equal_and_guards_wait(void **state)
{
    (void)state;
    static const char *const systems[] = {"orca", "orca-initial", "orca-generic", "orca-ethernet"};
    for (size_t k = 0; k < sizeof systems / sizeof systems[0]; k++)
        for (uint32_t nodes = 2; nodes <= 6; nodes += 2)
            all_at_once(systems[k], nodes, 0);
}

/* Node 0 puts into its own buffer, which others put into, too, while the first of them get from it: one at a time, and
 * all wait there. Node 0's put wakes one whose reply lets others' puts in. */
static void many_at_one(struct myri_task *t, void *arg)
{
    struct sides *sides = arg;
    struct myri_side *s = side_of(sides, t);
    struct all *g = sides->arg;
    struct member *me = &g->m[s->node];
    uint32_t last[NODES] = {0};
    for (uint32_t k = 1; k <= ROUNDS && !s->hw->fault[0]; k++) {
        int gets = s->node > 0 && s->node <= (s->nodes - 1) / 2;
        invoke(me, me->buffer[0], gets ? GET : PUT, s->node << 16 | k, 4);
        me->wrong += me->orca.on.panda.arrived != NULL; /* what came meanwhile has been handled */
        if (gets) {                                     /* those of each node in order */
            uint32_t from = result(me) >> 16, nth = result(me) & 0xffff;
            me->wrong += from >= s->nodes || nth <= last[from % NODES];
            last[from % NODES] = nth;
            g->taken[from % NODES][nth % (ROUNDS + 1)]++;
        } else if (s->node) {
            panda_compute(&me->orca.on.panda, 100000000 * (uint64_t)(1 + (k * 7 + s->node) % 5));
        } else if (k % 3 == 1) {
            panda_compute(&me->orca.on.panda, 200000000);
        }
    }
    finish(sides, me);
}

static void those_that_wait_at_one_node_are_executed_once_each(void **state)
{
    (void)state;
    static const char *const systems[] = {"orca", "orca-initial", "orca-generic"};
    static struct sides sides;
    static struct all g;
    for (uint32_t k = 0; k < 3 * (NODES - 2); k++) {
        uint32_t nodes = 3 + k / 3, got = 0;
        const char *system = systems[k % 3];
        open_all(&sides, &g, system, nodes);
        for (uint32_t i = 0; i < nodes; i++)
            g.m[i].here.slots = NODES * ROUNDS; /* puts do not wait */
        start_sides(&sides, many_at_one);
        if (myri_hw_run(sides.hw) < 0)
            fail_msg("%s, %u nodes: %s", system, nodes, rnl_last_error()->text);
        for (uint32_t i = 0; i < nodes; i++) {
            if (g.m[i].wrong || !g.m[i].done)
                fail_msg("%s: %u wrong at node %u of %u, done %d", system, g.m[i].wrong, i, nodes, g.m[i].done);
            for (uint32_t nth = 0; nth <= ROUNDS; nth++) {
                assert_true(g.taken[i][nth] <= 1);
                got += g.taken[i][nth];
            }
        }
        assert_int_equal(got, (nodes - 1) / 2 * ROUNDS);
        assert_int_equal(g.m[0].here.n, (nodes - (nodes - 1) / 2) * ROUNDS - got);
        free_sides(&sides);
    }
}

static void a_slow_copy_holds_nothing_back_for_good(void **state)
{
    (void)state;
    all_at_once("orca", 4, 5000);
    all_at_once("orca-initial", 4, 5000);
    all_at_once("orca-ethernet", 4, 5000);
}

enum { EQUATIONS = 11, ITERATIONS = 150 };

struct solving {
    struct orca orca[NODES];
    struct jacobi jacobi[NODES];
    uint32_t sum[NODES];
};

static void solve(struct myri_task *t, void *arg)
{
    struct sides *sides = arg;
    struct solving *g = sides->arg;
    uint32_t me = side_of(sides, t)->node;
    g->sum[me] = jacobi_run(&g->jacobi[me], &g->orca[me], ITERATIONS);
}

/* However many nodes have a part of it: as each row is computed alike, to the bit. */
static void a_program_comes_to_the_same_on_any_number_of_nodes(void **state)
{
    (void)state;
    static struct sides sides;
    static struct solving g;
    uint32_t alone = 0;
    for (uint32_t nodes = 1; nodes <= NODES; nodes += nodes < 4 ? 1 : 2) {
        memset(&g, 0, sizeof g);
        make_sides(&sides, "orca", "H-A", nodes, 1000, nodes);
        sides.arg = &g;
        for (uint32_t i = 0; i < nodes; i++) {
            assert_int_equal(orca_open(&g.orca[i], &sides.side[i], PANDA_ON_FMMC), 0);
            jacobi_open(&g.jacobi[i], &g.orca[i], EQUATIONS);
        }
        start_sides(&sides, solve);
        if (myri_hw_run(sides.hw) < 0)
            fail_msg("%u nodes: %s", nodes, rnl_last_error()->text);
        alone = nodes == 1 ? g.sum[0] : alone;
        for (uint32_t i = 0; i < nodes; i++) {
            assert_int_equal(g.sum[i], alone);
            assert_int_equal(g.orca[i].on.panda.handled, nodes > 1 ? nodes * ITERATIONS : 0);
            for (uint32_t k = 0; k < EQUATIONS; k++) /* 11 x and the ten others are 1 */
                assert_true(g.jacobi[i].x[k] > 1.0 / 21 - 1e-5 && g.jacobi[i].x[k] < 1.0 / 21 + 1e-5);
        }
        free_sides(&sides);
    }
}

static double of(const char *system, enum myri_measure what, uint32_t bytes)
{
    struct myri_outcome out;
    struct myri_experiment x = experiment(system, "H-A", what, bytes);
    x.count = what == MYRI_TURNS ? 2 : 30;
    x.receivers = what == MYRI_TURNS ? 7 : 0;
    if (myri_experiment_run(&x, &out) < 0)
        fail_msg("%s: %s", system, rnl_last_error()->text);
    assert_int_equal(out.received, out.sent);
    assert_int_equal(out.wrong, 0);
    return out.value;
}

static void an_invocation_is_a_call_or_a_multicast_and_its_marshalling(void **state)
{
    (void)state;
    double roi = of("orca", MYRI_CALL, 4), rpc = of("panda", MYRI_CALL, 4 + ORCA_HEADER);
    assert_true(roi > rpc + 20);
    assert_true(of("orca", MYRI_TURNS, 4) > of("panda", MYRI_TURNS, 4 + ORCA_HEADER) + 20);
    assert_true(of("orca-generic", MYRI_CALL, 4) > roi + 20);
    assert_true(of("orca-initial", MYRI_CALL, 4) > of("panda-initial", MYRI_CALL, 20) + 20);
    /* each byte is copied twice more than in a call */
    double copy = 2 / machine("H-A").v[MYRI_M_copy_rate], rate = of("orca", MYRI_CALL_RATE, 100000);
    double without = 1 / (1 / of("panda", MYRI_CALL_RATE, 100000) + copy);
    assert_true(rate > 0.95 * without && rate < 1.02 * without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_that_all_write_stay_equal_and_guards_wait),
        cmocka_unit_test(those_that_wait_at_one_node_are_executed_once_each),
        cmocka_unit_test(a_slow_copy_holds_nothing_back_for_good),
        cmocka_unit_test(a_program_comes_to_the_same_on_any_number_of_nodes),
        cmocka_unit_test(an_invocation_is_a_call_or_a_multicast_and_its_marshalling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
