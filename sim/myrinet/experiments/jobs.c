/* SPDX-License-Identifier: BSD-3-Clause
 *
 * jobs.c - two jobs that take turns on the same nodes: in each, all nodes but the last send to that one, which may
 * compute after each message. What arrives is checked: its job, its sender, that it is the next one of that sender, and
 * all of its words. Checking takes no time on the machine. */
#include "sim/myrinet/experiments/internal.h"

#include "base/error.h"
#include "sim/myrinet/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { JOBS = 2 };

struct jobs {
    const struct myri_experiment *x;
    struct myri_outcome *out;
    struct myri_hw *hw;
    void *turns;
    uint32_t nodes;
    struct myri_side side[JOBS * SIDES]; /* of job * nodes + node */
    uint32_t next[JOBS][SIDES];          /* number of the next message of that sender */
};

/* Word k of message `number`; the last one is the number itself, from 1, with who says so. */
static uint32_t word_of(uint32_t job, uint32_t node, uint32_t number, uint32_t k, uint32_t words)
{
    uint32_t who = job << 5 | node;
    return k + 1 == words ? who << 24 | (number & 0xffffff) : 0x9e3779b9u * (number + k) ^ who << 24;
}

static void take(struct jobs *j, uint32_t job, const struct myri_side *s, uint32_t bytes)
{
    uint32_t words = j->x->bytes / 4, last = myri_side_word(s, s->got + j->x->bytes - 4);
    uint32_t node = last >> 24 & 0x1f, right = bytes == j->x->bytes && last >> 29 == job && node < j->nodes;
    for (uint32_t k = 0; right && k < words; k++)
        right = myri_side_word(s, s->got + 4 * k) == word_of(job, node, j->next[job][node] + 1, k, words);
    j->out->received++;
    if (!right)
        myri_experiment_wrong(j->out, j->hw, s->node);
    if (right)
        j->next[job][node]++;
}

static void task(struct myri_task *t, void *arg)
{
    struct jobs *j = arg;
    uint32_t i = 0, words = j->x->bytes / 4;
    while (j->side[i].task != t)
        i++;
    struct myri_side *s = &j->side[i];
    uint32_t job = i / j->nodes, last = j->nodes - 1;
    j->x->system->turns->join(j->turns, job, s);
    for (uint32_t n = 1; s->node != last && n <= j->x->count && !j->hw->fault[0]; n++) {
        for (uint32_t k = 0; k < words; k++)
            myri_side_set_word(s, s->out + 4 * k, word_of(job, s->node, n, k, words));
        j->out->sent++;
        s->system->send(s, last, j->x->bytes);
    }
    for (uint32_t n = 0; s->node == last && n < j->x->count * last && !j->hw->fault[0]; n++) {
        take(j, job, s, s->system->receive(s, j->x->bytes, RNL_SIM_NEVER));
        if (j->x->slow_us > 0)
            myri_task_spend(t, (uint64_t)(j->x->slow_us * 1e6), "compute");
    }
    if (s->system->finish)
        s->system->finish(s);
    j->x->system->turns->leave(j->turns, job, s);
}

static int open_sides(struct jobs *j)
{
    const struct myri_experiment *x = j->x;
    for (uint32_t i = 0; i < JOBS * j->nodes; i++) {
        struct myri_side *s = &j->side[i];
        s->system = x->system;
        s->hw = j->hw;
        s->node = i % j->nodes;
        s->nodes = j->nodes;
        s->host = &j->hw->host[s->node];
        s->card = &j->hw->card[s->node];
        s->processes = 1;
        s->packet = x->packet;
        s->buffers = x->buffers;
        s->largest = s->reach = x->bytes;
        s->state = calloc(1, x->system->state_bytes);
        if (!s->state)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a side");
        if (myri_side_begin(s, 2 * x->bytes + 2 * j->hw->page) < 0)
            return rnl_fail(RNL_ERR_ARG, "%s: %s", x->system->name, j->hw->fault);
    }
    j->turns = x->system->turns->open(j->hw, j->side, JOBS);
    if (!j->turns)
        return rnl_fail(RNL_ERR_ARG, "%s: %s", x->system->name, j->hw->fault[0] ? j->hw->fault : "no memory for jobs");
    for (uint32_t i = 0; i < JOBS * j->nodes; i++)
        j->side[i].task = myri_hw_task(j->hw, j->side[i].node, task, j);
    return 0;
}

static int run(struct jobs *j)
{
    const struct myri_experiment *x = j->x;
    char name[80];
    snprintf(name, sizeof name, "%s.hex", x->system->object);
    const struct myri_data *object = myri_data_find(name);
    if (!object)
        return rnl_fail(RNL_ERR_ARG, "there is no firmware %s", name);
    int rc = myri_hw_new(&x->machine, j->nodes, x->seed, object->bytes, object->n, &j->hw);
    if (rc < 0)
        return myri_experiment_named(x, rc);
    myri_experiment_conditions(x, j->hw);
    /* Nothing takes a millisecond a message, but for what the receiver computes; and ten seconds beside. */
    j->hw->horizon_ps = (uint64_t)x->count * j->nodes * JOBS *
                            (1000000000u + (uint64_t)x->bytes * 1000000 + (uint64_t)(x->slow_us * 1e6)) +
                        10000000000000u;
    rc = open_sides(j);
    rc = rc < 0 ? rc : myri_hw_power(j->hw);
    rc = rc < 0 ? rc : myri_hw_run(j->hw);
    if (rc < 0 && (j->hw->count.packets_bad || j->hw->count.packets_lost) && x->system->on_crc)
        return rnl_fail(RNL_ERR_ABORTED,
                        "%s does not recover from a wrong CRC, nor from a packet that the network loses: %s; packets "
                        "lost: %" PRIu64 ", and so %u of %u messages",
                        x->system->name, x->system->on_crc, j->hw->count.packets_bad + j->hw->count.packets_lost,
                        j->out->sent - j->out->received, j->out->sent);
    if (rc < 0)
        return rc;
    double exchange_us, turn_us;
    uint32_t turns = x->system->turns->taken(j->turns, &exchange_us, &turn_us); /* one at least, to the second job */
    j->out->value = (x->measure == MYRI_SWITCH_COST ? exchange_us : turn_us) / turns;
    j->out->count = j->hw->count;
    j->out->events = rnl_sim_events(j->hw->sim);
    j->out->end_ps = myri_hw_now(j->hw);
    for (uint32_t i = 0; i < j->nodes; i++) {
        j->out->instructions += j->hw->card[i].cpu.instructions;
        j->out->skipped += j->hw->card[i].skipped;
        j->out->worked += j->hw->card[i].worked;
    }
    return 0;
}

int myri_experiment_jobs(const struct myri_experiment *x, struct myri_outcome *out)
{
    struct jobs *j = calloc(1, sizeof *j);
    if (!j)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an experiment");
    j->x = x;
    j->out = out;
    j->nodes = (x->senders ? x->senders : 1) + 1;
    int rc = run(j);
    for (uint32_t i = 0; i < JOBS * j->nodes; i++)
        myri_side_end(&j->side[i]);
    myri_hw_free(j->hw); /* its events may lie in what is freed behind it */
    free(j->turns);
    for (uint32_t i = 0; i < JOBS * j->nodes; i++)
        free(j->side[i].state);
    free(j);
    return rc;
}
