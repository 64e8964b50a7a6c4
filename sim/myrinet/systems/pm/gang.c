/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gang.c - PM's gang scheduler; see gang.h. */
#include "sim/myrinet/systems/pm/gang.h"

#include "base/error.h"

#include <stddef.h>
#include <string.h>

enum { STOP = 1, QUIET, TURN, TURNED, GO, GONE, ENDED, QUIT };
enum { EACH = 4 }; /* words of a descriptor */
enum {
    SEND = EACH * PM_RING,
    ACCEPTED = SEND + PM_RING,
    OF = ACCEPTED + 1,
    NEXT = OF + PM_RING,
    EXPECTED = NEXT + PM_NODES
};

/* ---- a card's channel ---- */

/* Where word k of a channel lies on the card. */
static uint32_t on_card(const struct pm_gang *g, uint32_t k)
{
    uint32_t card = myri_card_symbol(g->hw, "card");
    if (k < ACCEPTED)
        return card + 4 * k;
    if (k == ACCEPTED)
        return card + (uint32_t)offsetof(struct pm_card, done);
    if (k < NEXT)
        return myri_card_symbol(g->hw, "sequence_of") + 4 * (k - OF);
    if (k < EXPECTED)
        return myri_card_symbol(g->hw, "next_sequence") + 4 * (k - NEXT);
    return myri_card_symbol(g->hw, "expected") + 4 * (k - EXPECTED);
}

static uint32_t field(const struct pm_gang *g, size_t offset)
{
    return myri_card_symbol(g->hw, "card") + (uint32_t)offset;
}

/* What it knows is in the answers: each message that was numbered has the next place of the send ring, each that was
 * taken the next one of the receive ring. */
static uint32_t place_of(const struct myri_host *h, uint32_t saved, uint32_t from)
{
    uint32_t sum = 0;
    for (uint32_t k = from; k < from + PM_NODES; k++)
        sum += myri_host_word(h, saved + 4 * k);
    return sum % PM_RING;
}

/* No message of the job that has the card is without an answer. */
static int is_quiet(struct pm_gang_node *n)
{
    for (uint32_t i = 0; i < PM_RING; i++) {
        uint32_t state = PM_POSTED;
        if (myri_task_load(n->daemon.task, on_card(n->gang, EACH * i), &state) < 0)
            return 0;
        if (state == PM_POSTED || state == PM_FLYING)
            return 0;
    }
    return 1;
}

static void save(struct pm_gang_node *n, uint32_t saved)
{
    struct myri_task *t = n->daemon.task;
    for (uint32_t k = 0; k < PM_CHANNEL; k++) {
        uint32_t word = 0;
        (void)myri_task_load(t, on_card(n->gang, k), &word);
        myri_host_set_word(t->host, saved + 4 * k, word);
    }
    myri_task_operate(t, PM_CHANNEL, "save");
}

/* The card looks at a state that is HELD no more than at one that is FREE, until it begins again. */
static void restore(struct pm_gang_node *n, uint32_t saved)
{
    struct myri_task *t = n->daemon.task;
    struct pm_gang *g = n->gang;
    const struct myri_host *h = t->host;
    uint32_t newest = PM_RING + place_of(h, saved, NEXT), oldest = newest - PM_RING, is;
    myri_task_operate(t, PM_CHANNEL, "restore");
    while (oldest != newest && myri_host_word(h, saved + 4 * EACH * (oldest % PM_RING)) == PM_FREE)
        oldest++;
    for (uint32_t k = 0; k < PM_CHANNEL; k++)
        (void)myri_task_store(t, on_card(g, k), myri_host_word(h, saved + 4 * k));
    const uint32_t turn[4] = {oldest, newest, place_of(h, saved, EXPECTED), 0};
    (void)myri_task_store_words(t, field(g, offsetof(struct pm_card, turn)), turn, 4);
    myri_task_restart(t);
    (void)myri_task_await(t, field(g, offsetof(struct pm_card, turn.ready)), 1, 0, &is);
}

/* ---- daemons ---- */

static void stop(struct pm_gang_node *n)
{
    struct myri_task *t = n->daemon.task;
    myri_task_spend(t, n->os.signal_ps, "stop");
    if (!n->job[n->runs].left) /* the daemon has the only processor, so it is in the middle of no store */
        myri_process_stop(&n->job[n->runs].process);
    (void)myri_task_store(t, field(n->gang, offsetof(struct pm_card, after_refusal)), PM_HELD);
    while (!is_quiet(n) && !n->gang->hw->fault[0])
        myri_task_spend(t, myri_machine_us(&n->gang->hw->machine, MYRI_M_look_pause), "wait");
}

static void exchange(struct pm_gang_node *n, uint32_t next)
{
    uint64_t from = myri_hw_now(n->gang->hw);
    save(n, n->job[n->runs].saved);
    restore(n, n->job[next].saved);
    n->runs = next;
    n->gang->exchanged_ps += myri_hw_now(n->gang->hw) - from;
}

static void go(struct pm_gang_node *n)
{
    (void)myri_task_store(n->daemon.task, field(n->gang, offsetof(struct pm_card, after_refusal)), PM_POSTED);
    myri_task_spend(n->daemon.task, n->os.signal_ps, "resume");
    myri_process_resume(&n->job[n->runs].process);
    n->gang->resumed_ps = myri_hw_now(n->gang->hw);
}

static void tell(struct pm_gang_node *n, uint32_t to, uint32_t kind, uint32_t job)
{
    const struct myri_letter l = {.kind = kind, .node = n->id, .word = {job}};
    myri_mail_send(&n->daemon, &n->gang->node[to].box, &l);
}

/* What all of them do, and the first with them. */
static void serve(struct pm_gang_node *n, uint32_t kind, uint32_t job)
{
    if (kind == STOP)
        stop(n);
    else if (kind == TURN)
        exchange(n, job);
    else if (kind == GO)
        go(n);
}

static void follow(struct myri_task *t, void *arg)
{
    struct pm_gang_node *n = arg;
    struct myri_letter l;
    myri_process_join(&n->daemon, &n->os, t);
    while (myri_mail_take(&n->box, &l, RNL_SIM_NEVER) && l.kind != QUIT) {
        serve(n, l.kind, l.word[0]);
        tell(n, 0, l.kind == ENDED ? ENDED : l.kind + 1, l.word[0]);
    }
    myri_process_leave(&n->daemon);
}

/* All do it; the first waits until they have. */
static void have_all(struct pm_gang_node *first, uint32_t kind, uint32_t job)
{
    struct pm_gang *g = first->gang;
    uint32_t lack = g->nodes - 1;
    struct myri_letter l;
    for (uint32_t i = 1; i < g->nodes; i++)
        tell(first, i, kind, job);
    serve(first, kind, job);
    while (lack && myri_mail_take(&first->box, &l, RNL_SIM_NEVER)) {
        lack -= l.kind == kind + 1;
        if (l.kind == ENDED)
            g->ended[l.word[0]]++;
    }
}

/* The next job that has not ended, or `jobs`. */
static uint32_t after(const struct pm_gang *g, uint32_t job)
{
    for (uint32_t i = 1; i <= g->jobs; i++)
        if (g->ended[(job + i) % g->jobs] < g->nodes)
            return (job + i) % g->jobs;
    return g->jobs;
}

static void lead(struct myri_task *t, void *arg)
{
    struct pm_gang_node *n = arg;
    struct pm_gang *g = n->gang;
    struct myri_letter l;
    myri_process_join(&n->daemon, &n->os, t);
    uint64_t until = myri_hw_now(g->hw) + n->os.switch_ps + g->quantum_ps;
    for (uint32_t next; (next = after(g, n->runs)) < g->jobs && !g->hw->fault[0];) {
        int over = g->ended[n->runs] == g->nodes;
        if (!over && myri_mail_take(&n->box, &l, next == n->runs ? RNL_SIM_NEVER : until)) { /* who is alone goes on */
            g->ended[l.word[0]] += l.kind == ENDED;
            continue;
        }
        uint64_t from = myri_hw_now(g->hw);
        if (next != n->runs) {
            have_all(n, STOP, n->runs);
            have_all(n, TURN, next);
            have_all(n, GO, next);
            g->turns++;
            g->turned_ps += g->resumed_ps - from;
        }
        /* However short it is, each process has something of it: it begins when all have the processor. */
        until = myri_hw_now(g->hw) + n->os.switch_ps + g->quantum_ps;
    }
    for (uint32_t i = 1; i < g->nodes; i++)
        tell(n, i, QUIT, 0);
    myri_process_leave(&n->daemon);
}

/* ---- jobs ---- */

int pm_gang_init(struct pm_gang *g, struct myri_hw *hw, uint32_t jobs)
{
    memset(g, 0, sizeof *g);
    if (jobs < 1 || jobs > PM_JOBS)
        return rnl_fail(RNL_ERR_ARG, "%u jobs: 1 to %d can take turns", jobs, PM_JOBS);
    g->hw = hw;
    g->nodes = hw->nodes;
    g->jobs = jobs;
    g->quantum_ps = myri_machine_us(&hw->machine, MYRI_M_quantum);
    for (uint32_t i = 0; i < g->nodes; i++) {
        struct pm_gang_node *n = &g->node[i];
        n->gang = g;
        n->id = i;
        myri_os_init(&n->os, &hw->host[i], 1);
        myri_mail_init(&n->box, &hw->host[i]);
        n->box.owner = &n->daemon;
        n->daemon.first = 1;
    }
    return 0;
}

int pm_gang_open(struct pm_gang *g, uint32_t job, struct pm *m, struct myri_side *side)
{
    struct pm_gang_node *n = &g->node[side->node];
    uint32_t saved = myri_host_take(side->host, 4 * PM_CHANNEL, 0);
    n->job[job].pm = m;
    n->job[job].saved = saved;
    n->job[job].process.stopped = job != 0;
    if (saved == MYRI_HW_NO_WATCH || pm_open(m, side) < 0)
        return -1;
    for (uint32_t k = 0; k < PM_CHANNEL; k++) {
        myri_host_set_word(side->host, saved + 4 * k, myri_card_peek(side->card, on_card(g, k)));
        myri_card_poke(side->card, on_card(g, k), 0);
    }
    return 0;
}

void pm_gang_start(struct pm_gang *g)
{
    for (uint32_t i = 0; i < g->nodes; i++) {
        struct pm_gang_node *n = &g->node[i];
        for (uint32_t k = 0; k < PM_CHANNEL; k++)
            myri_card_poke(&g->hw->card[i], on_card(g, k), myri_host_word(&g->hw->host[i], n->job[0].saved + 4 * k));
        (void)myri_hw_task(g->hw, i, i ? follow : lead, n);
    }
}

void pm_gang_join(struct pm_gang *g, uint32_t job, struct myri_side *side)
{
    struct pm_gang_node *n = &g->node[side->node];
    myri_process_join(&n->job[job].process, &n->os, side->task);
}

void pm_gang_leave(struct pm_gang *g, uint32_t job, struct myri_side *side)
{
    struct pm_gang_node *n = &g->node[side->node];
    const struct myri_letter l = {.kind = ENDED, .node = side->node, .word = {job}};
    n->job[job].left = 1;
    myri_mail_send(&n->job[job].process, &n->box, &l);
    myri_process_leave(&n->job[job].process);
}
