/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - builds the machine for an experiment, runs its tasks, and checks every message that arrives: its last word
 * counts, the rest of it is a pattern of its sender's. Checking takes no time on the machine. */
#include "sim/myrinet/experiments/run.h"

#include "base/error.h"
#include "sim/engine/random.h"
#include "sim/myrinet/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = MYRI_HW_NODES, STREAM_JITTER = 0x4a49, STREAM_PLACE = 0x504c, IDLE_US = 2000, PLACES = 1024 };

struct experiment_run {
    const struct myri_experiment *x;
    struct myri_outcome *out;
    struct myri_hw *hw;
    struct myri_side side[SIDES];
    uint32_t sides, receiver, sending; /* GOODPUT: senders that have not finished */
    uint64_t jitter_spent_ps, begin_ps, end_ps, busy_ps, jitters;
    uint32_t answered;                  /* ANSWER: questions */
    uint64_t computed_ps, computing_ps; /* what the computing came to, and how long it took */
    uint32_t seen[SIDES];               /* last word of the last message of that sender */
    uint32_t first_out[SIDES];          /* of its places */
};

static const char *const names[MYRI_MEASURES][2] = {
    {"one-way", "us"},     {"round-trip", "us"},   {"ping-rate", "MB/s"},  {"stream-rate", "MB/s"},
    {"both-rate", "MB/s"}, {"send-cost", "us"},    {"post-cost", "us"},    {"local-rate", "MB/s"},
    {"copy-rate", "MB/s"}, {"store-rate", "MB/s"}, {"plain-rate", "MB/s"}, {"pin-rate", "MB/s"},
    {"goodput", "MB/s"},   {"answer", "us"},       {"answer-cost", "us"},  {"wire-cost", "B/B"},
};

const char *myri_measure_name(enum myri_measure m)
{
    return names[m][0];
}

const char *myri_measure_unit(enum myri_measure m)
{
    return names[m][1];
}

static int gathers(const struct myri_experiment *x)
{
    return x->measure == MYRI_GOODPUT || x->measure == MYRI_WIRE_COST;
}

static uint32_t pages_of(const struct myri_experiment *x) /* bytes of the pages that a message has */
{
    uint32_t page = (uint32_t)x->machine.v[MYRI_M_page];
    return (x->bytes + page - 1) & ~(page - 1);
}

/* ---- what both ends do ---- */

static uint64_t some_of_jitter(struct experiment_run *r, const struct myri_side *s)
{
    uint64_t random = rnl_sim_random(rnl_sim_seed(r->hw->sim), STREAM_JITTER, s->node, r->jitters++);
    return rnl_sim_below(random, (uint64_t)(r->x->jitter_us * 1e6) + 1);
}

/* The host waits, and so does its card before that: two cards whose idle turns are equally long fall into step with
 * each other, and each packet then waits for the same part of a turn, whatever the hosts do. */
static void jitter(struct experiment_run *r, struct myri_side *s)
{
    uint64_t card = some_of_jitter(r, s), ps = card + some_of_jitter(r, s);
    if (card)
        myri_card_pause(s->card, card);
    myri_task_spend(s->task, ps, "jitter");
    r->jitter_spent_ps += ps;
}

static uint32_t pattern(uint32_t node, uint32_t k)
{
    return 0x9e3779b9u * (k + 1) ^ node << 24;
}

static void fill(struct myri_side *s, uint32_t bytes)
{
    for (uint32_t k = 0; k + 1 < bytes / 4; k++)
        myri_host_set_word(s->host, s->out + 4 * k, pattern(s->node, k));
}

static void send_next(struct experiment_run *r, struct myri_side *s, uint32_t to, int post)
{
    uint32_t n = r->x->bytes;
    if (r->x->places > 1) {
        uint64_t random = rnl_sim_random(rnl_sim_seed(r->hw->sim), STREAM_PLACE, s->node, r->seen[s->node]);
        s->out = r->first_out[s->node] + pages_of(r->x) * (uint32_t)rnl_sim_below(random, r->x->places);
    }
    r->out->sent++;
    myri_host_set_word(s->host, s->out + n - 4, ++r->seen[s->node] | s->node << 24);
    if (post && s->system->post)
        s->system->post(s, to, n);
    else
        s->system->send(s, to, n);
}

static int receive_next(struct experiment_run *r, struct myri_side *s, uint64_t until)
{
    uint32_t n = s->system->receive(s, r->x->bytes, until);
    if (n == 0)
        return 0;
    r->out->received++;
    if (n != r->x->bytes) {
        r->out->wrong++;
        return 1;
    }
    uint32_t last = myri_host_word(s->host, s->got + n - 4), node = last >> 24;
    int right = node < r->sides && (last & 0xffffff) <= r->seen[node] && (last & 0xffffff) > 0;
    for (uint32_t k = 0; right && k + 1 < n / 4; k++)
        right = myri_host_word(s->host, s->got + 4 * k) == pattern(node, k);
    r->out->wrong += !right;
    return 1;
}

static struct myri_side *side_of(struct experiment_run *r, struct myri_task *t)
{
    for (uint32_t i = 0; i < r->sides; i++)
        if (r->side[i].task == t)
            return &r->side[i];
    return NULL;
}

static void finish(struct myri_side *s)
{
    if (s->system->finish)
        s->system->finish(s);
}

/* ---- the tasks ---- */

static void ping_pong(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    uint32_t first = s->node == 0;
    if (first)
        r->begin_ps = myri_hw_now(r->hw);
    for (uint32_t i = 0; i < r->x->count; i++) {
        if (first) {
            jitter(r, s);
            send_next(r, s, 1, 0);
        }
        if (!receive_next(r, s, RNL_SIM_NEVER))
            return;
        if (!first) {
            jitter(r, s);
            send_next(r, s, 0, 0);
        }
    }
    if (first)
        r->end_ps = myri_hw_now(r->hw);
    finish(s);
}

static void one_way_stream(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    if (s->node != r->receiver) {
        myri_task_spend(t, 1000000 * (uint64_t)s->node, "stagger");
        for (uint32_t i = 0; i < r->x->count; i++)
            send_next(r, s, r->receiver, 0);
        r->sending--;
        finish(s);
        return;
    }
    uint32_t all = r->x->count * (r->sides - 1), got = 0;
    while (got < all) {
        int may_miss = s->system->lossy || s->system->overwrites || r->x->bad_per_2_32; /* one place is overwritten */
        uint64_t until = may_miss ? myri_hw_now(r->hw) + (uint64_t)IDLE_US * 1000000 : RNL_SIM_NEVER;
        if (!receive_next(r, s, until)) {
            if (r->sending == 0 || r->hw->fault[0])
                break;
            continue;
        }
        if (got++ == 0)
            r->begin_ps = myri_hw_now(r->hw);
        r->end_ps = myri_hw_now(r->hw);
        if (r->x->slow_us > 0)
            myri_task_spend(t, (uint64_t)(r->x->slow_us * 1e6), "compute");
    }
    finish(s);
}

static void both_ways(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    if (s->node == 0)
        r->begin_ps = myri_hw_now(r->hw);
    for (uint32_t i = 0; i < r->x->count; i++) {
        send_next(r, s, !s->node, 0);
        if (!receive_next(r, s, RNL_SIM_NEVER))
            return;
    }
    if (myri_hw_now(r->hw) > r->end_ps)
        r->end_ps = myri_hw_now(r->hw);
    finish(s);
}

static void cost_of_send(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    for (uint32_t i = 0; i < r->x->count; i++) {
        if (s->node == 0) {
            myri_task_spend(t, 200000000 + (uint64_t)r->x->bytes * 20000, "pause"); /* the one before is over */
            jitter(r, s);
            uint64_t from = myri_hw_now(r->hw);
            send_next(r, s, 1, r->x->measure == MYRI_POST_COST);
            r->busy_ps += myri_hw_now(r->hw) - from;
        } else if (!receive_next(r, s, RNL_SIM_NEVER)) {
            return;
        }
    }
    finish(s);
}

/* Node 0 asks now and then, node 1 computes, and answers in one of three ways. */
static void asker(struct myri_task *t, void *arg)
{
    enum { PAUSE_US = 200 };
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    uint64_t spread = (uint64_t)((PAUSE_US + 2 * r->x->slow_us) * 1e6); /* more than there is between two looks */
    for (uint32_t i = 0; i < r->x->count; i++) {
        uint64_t random = rnl_sim_random(rnl_sim_seed(r->hw->sim), STREAM_JITTER, s->node, r->jitters++);
        myri_task_spend(t, PAUSE_US / 2 * (uint64_t)1000000 + rnl_sim_below(random, spread), "pause");
        uint64_t from = myri_hw_now(r->hw);
        send_next(r, s, 1, 0);
        if (!receive_next(r, s, RNL_SIM_NEVER))
            return;
        r->busy_ps += myri_hw_now(r->hw) - from;
    }
    finish(s);
}

static int answer_next(struct experiment_run *r, struct myri_side *s, uint64_t until)
{
    if (!receive_next(r, s, until))
        return 0;
    send_next(r, s, 0, 0);
    r->answered++;
    return 1;
}

static void computer(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t); /* NULL: somebody else looks for messages */
    uint64_t from = myri_hw_now(r->hw), slow = (uint64_t)(r->x->slow_us * 1e6);
    while (r->answered < r->x->count && !r->hw->fault[0]) {
        myri_task_spend(t, slow, "compute");
        r->computed_ps += slow;
        if (!s || answer_next(r, s, myri_hw_now(r->hw)))
            continue;
        if (s->system->look)
            myri_task_operate(t, s->system->look, "look");
        else
            myri_task_spend(t, myri_machine_ns(&r->hw->machine, MYRI_M_poll), "poll");
    }
    r->computing_ps = myri_hw_now(r->hw) - from;
    if (s)
        finish(s);
}

static void answerer(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    uint64_t seen = 0;
    while (r->answered < r->x->count && !r->hw->fault[0]) {
        if (!t->serves) {
            if (!answer_next(r, s, RNL_SIM_NEVER))
                return;
            continue;
        }
        seen = myri_task_await_interrupt(t, seen);
        uint64_t from = myri_hw_now(r->hw);
        while (answer_next(r, s, myri_hw_now(r->hw)))
            ;
        t->host->stolen_ps += myri_hw_now(r->hw) - from; /* from who computes */
    }
    finish(s);
}

/* To the own card, in the ways that the survey's figure 2 compares. */
static void local(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    uint32_t n = r->x->bytes, page = r->hw->page, area = s->out + ((n + page - 1) & ~(page - 1));
    uint32_t words[1024] = {0}, sram = myri_card_symbol(r->hw, "card") + 64;
    r->begin_ps = myri_hw_now(r->hw);
    for (uint32_t i = 0; i < r->x->count; i++) {
        switch (r->x->measure) {
        case MYRI_STORE_RATE:
        case MYRI_PLAIN_RATE:
            for (uint32_t at = 0; at < n; at += sizeof words) {
                uint32_t k = (n - at < sizeof words ? n - at : (uint32_t)sizeof words) / 4;
                if (r->x->measure == MYRI_STORE_RATE)
                    myri_task_combine(t, sram + at, words, k);
                else
                    myri_task_store_words(t, sram + at, words, k);
            }
            break;
        case MYRI_COPY_RATE:
            myri_task_copy(t, s->out, area, n);
            s->system->send(s, 0, n);
            break;
        case MYRI_PIN_RATE:
            myri_task_spend(t,
                            myri_machine_us(&r->hw->machine, MYRI_M_system_call) +
                                (n + page - 1) / page * myri_machine_us(&r->hw->machine, MYRI_M_pin_page),
                            "pin");
            s->system->send(s, 0, n);
            break;
        default:
            s->system->send(s, 0, n);
        }
    }
    r->end_ps = myri_hw_now(r->hw);
}

/* ---- the frame ---- */

static int asks(const struct myri_experiment *x)
{
    return x->measure == MYRI_ANSWER || x->measure == MYRI_ANSWER_COST;
}

static void value_of(struct experiment_run *r)
{
    const struct myri_experiment *x = r->x;
    double span = (double)(r->end_ps - r->begin_ps) / 1e6, jittered = (double)r->jitter_spent_ps / 1e6;
    double n = x->count, bytes = x->bytes;
    switch (x->measure) {
    case MYRI_ONE_WAY:
        r->out->value = (span - jittered) / (2 * n);
        break;
    case MYRI_ROUND_TRIP:
        r->out->value = (span - jittered) / n;
        break;
    case MYRI_PING_RATE:
        r->out->value = bytes * 2 * n / (span - jittered);
        break;
    case MYRI_BOTH_RATE:
        r->out->value = 2 * n * bytes / span;
        break;
    case MYRI_STREAM_RATE:
    case MYRI_GOODPUT:
        r->out->value = r->out->received > 1 ? bytes * (r->out->received - 1) / span : 0;
        break;
    case MYRI_WIRE_COST:
        r->out->value = (double)r->hw->count.bytes_sent / (bytes * r->out->received);
        break;
    case MYRI_SEND_COST:
    case MYRI_POST_COST:
    case MYRI_ANSWER:
        r->out->value = (double)r->busy_ps / 1e6 / n;
        break;
    case MYRI_ANSWER_COST:
        r->out->value = (double)(r->computing_ps - r->computed_ps) / 1e6 / n;
        break;
    default:
        r->out->value = bytes * n / span;
    }
}

static void (*task_of(const struct myri_experiment *x, uint32_t node))(struct myri_task *, void *)
{
    switch (x->measure) {
    case MYRI_ONE_WAY:
    case MYRI_ROUND_TRIP:
    case MYRI_PING_RATE:
        return ping_pong;
    case MYRI_STREAM_RATE:
    case MYRI_GOODPUT:
    case MYRI_WIRE_COST:
        return one_way_stream;
    case MYRI_BOTH_RATE:
        return both_ways;
    case MYRI_SEND_COST:
    case MYRI_POST_COST:
        return cost_of_send;
    case MYRI_ANSWER:
    case MYRI_ANSWER_COST:
        return node == 0 ? asker : x->attention == MYRI_BY_POLLS ? computer : answerer;
    default:
        return local;
    }
}

/* The task of a side. */
static void enter(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    if (r->x->begin_ps)
        myri_task_spend(t, r->x->begin_ps, "start");
    task_of(r->x, side_of(r, t)->node)(t, r);
}

static int open_sides(struct experiment_run *r)
{
    const struct myri_experiment *x = r->x;
    for (uint32_t i = 0; i < r->sides; i++) {
        struct myri_side *s = &r->side[i];
        s->system = x->system;
        s->hw = r->hw;
        s->host = &r->hw->host[i];
        s->card = &r->hw->card[i];
        s->node = i;
        s->nodes = r->sides;
        s->processes = x->processes ? x->processes : 1;
        s->packet = x->packet;
        s->buffers = x->buffers;
        s->cold = x->cold;
        s->notify = i == 1 && asks(x) && x->attention == MYRI_BY_INTERRUPTS;
        s->largest = x->bytes;
        s->state = calloc(1, x->system->state_bytes);
        if (!s->state)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a side");
        uint32_t more = x->places > 1 ? (x->places - 1) * pages_of(x) : 0;
        s->reach = x->bytes + more;
        s->out = r->first_out[i] = myri_host_take(s->host, more + 2 * x->bytes + 2 * r->hw->page, 0);
        if (r->hw->fault[0] || x->system->open(s) < 0)
            return rnl_fail(RNL_ERR_ARG, "%s: %s", x->system->name, r->hw->fault);
        for (uint32_t at = more; at; at -= pages_of(x)) {
            s->out = r->first_out[i] + at;
            fill(s, x->bytes);
        }
        s->out = r->first_out[i];
        fill(s, x->bytes);
        s->task = myri_hw_task(r->hw, i, enter, r);
        if (s->task)
            s->task->serves = s->notify;
    }
    if (asks(x) && x->attention != MYRI_BY_POLLS)
        (void)myri_hw_task(r->hw, 1, computer, r);
    if (x->system->joined)
        x->system->joined(r->side, r->sides);
    return 0;
}

static int check(const struct myri_experiment *x)
{
    if (asks(x) && x->attention == MYRI_BY_INTERRUPTS && !x->system->notifies)
        return rnl_fail(RNL_ERR_ARG, "messages of %s do not interrupt; those of vmmc can", x->system->name);
    if (asks(x) && !(x->slow_us >= 0.01))
        return rnl_fail(RNL_ERR_ARG, "a host that computes 0 us before each look: 0.01 us at least (--slow)");

    if (x->bytes < 4 || x->bytes % 4 || x->bytes > x->system->most)
        return rnl_fail(RNL_ERR_ARG, "a message of %u bytes: %s takes whole words, 4 to %u bytes", x->bytes,
                        x->system->name, x->system->most);
    if (x->count == 0 || x->count > 10000000)
        return rnl_fail(RNL_ERR_ARG, "%u messages: an experiment has 1 to 10 million", x->count);
    uint32_t nodes = gathers(x) ? x->senders + 1 + !x->senders : 2;
    if (x->buffers && !x->system->buffers_most)
        return rnl_fail(RNL_ERR_ARG, "%u receive buffers: those of %s cannot be chosen", x->buffers, x->system->name);
    if (x->buffers && (x->buffers < nodes * x->system->buffers_least || x->buffers > x->system->buffers_most))
        return rnl_fail(RNL_ERR_ARG, "%u receive buffers: %s can have %u to %u, with %u nodes", x->buffers,
                        x->system->name, nodes * x->system->buffers_least, x->system->buffers_most, nodes);
    if (x->packet && (x->packet % 4 || x->packet < x->system->packet_least || x->packet > x->system->packet_most))
        return x->system->packet_most
                   ? rnl_fail(RNL_ERR_ARG, "packets of %u bytes: %s takes whole words, %u to %u bytes", x->packet,
                              x->system->name, x->system->packet_least, x->system->packet_most)
                   : rnl_fail(RNL_ERR_ARG, "packets of %u bytes: those of %s cannot be chosen", x->packet,
                              x->system->name);
    if (x->senders && !gathers(x))
        return rnl_fail(RNL_ERR_ARG, "%u senders: what several send is measured as goodput, or wire-cost", x->senders);
    if (x->senders > 1 && x->system->several_most && x->bytes > x->system->several_most)
        return rnl_fail(RNL_ERR_ARG,
                        "%u senders of %u bytes: who receives by %s names the sender of what is longer than %u bytes",
                        x->senders, x->bytes, x->system->name, x->system->several_most);
    uint32_t piece = x->packet ? x->packet : x->system->piece;
    if (x->system->by_page && piece > x->machine.v[MYRI_M_page])
        piece = (uint32_t)x->machine.v[MYRI_M_page];
    if (x->senders > 1 && x->system->piece && x->bytes > piece)
        return rnl_fail(RNL_ERR_ARG,
                        "%u senders of %u bytes: receivers of %s take from several what comes as one, up to %u bytes",
                        x->senders, x->bytes, x->system->name, piece);
    if (x->processes > 1 && x->processes > x->system->processes_most)
        return rnl_fail(RNL_ERR_ARG, "%u processes: the card of %s can have %u attached", x->processes, x->system->name,
                        x->system->processes_most ? x->system->processes_most : 1);
    if (x->senders >= SIDES)
        return rnl_fail(RNL_ERR_ARG, "%u senders: there can be up to %d", x->senders, SIDES - 1);
    int two = x->measure < MYRI_LOCAL_RATE || gathers(x) || asks(x);
    if (x->places > 1 && !two)
        return rnl_fail(RNL_ERR_ARG, "%u places: who is alone sends from one", x->places);
    if (x->places > PLACES)
        return rnl_fail(RNL_ERR_ARG, "%u places to send from: there can be up to %d", x->places, PLACES);
    if (two ? !x->system->receive : x->system->receive != NULL)
        return rnl_fail(RNL_ERR_ARG, "%s of %s cannot be measured", myri_measure_name(x->measure), x->system->name);
    return 0;
}

/* A system that takes the network to be reliable has lost a message or a credit for good: whatever the run came to,
 * that is its end, and why. */
static int lost_by_crc(const struct experiment_run *r, int rc)
{
    const struct myri_hw *hw = r->hw;
    if (hw->count.packets_bad == 0 || !r->x->system->on_crc || (rc == 0 && r->x->system->lossy))
        return rc;
    return rnl_fail(RNL_ERR_ABORTED,
                    "%s does not recover from a wrong CRC: %s; packets lost: %" PRIu64
                    ", the first, of %u bytes, from node %u to node %u at %.3f us, and so %u of %u messages",
                    r->x->system->name, r->x->system->on_crc, hw->count.packets_bad, hw->first_bad.bytes,
                    hw->first_bad.from, hw->first_bad.to, (double)hw->first_bad.at_ps / 1e6,
                    r->out->sent - r->out->received, r->out->sent);
}

static int run(struct experiment_run *r)
{
    const struct myri_experiment *x = r->x;
    const struct myri_data *object = NULL;
    char name[80];
    snprintf(name, sizeof name, "%s.hex", x->system->object);
    if (!x->object && !(object = myri_data_find(name)))
        return rnl_fail(RNL_ERR_ARG, "there is no firmware %s", name);
    r->sides = gathers(x) ? (x->senders ? x->senders : 1) + 1 : x->system->receive ? 2 : 1;
    r->receiver = r->sides - 1;
    r->sending = r->sides - 1;
    int rc = myri_hw_new(&x->machine, r->sides, x->seed, x->object ? x->object : (const void *)object->bytes,
                         x->object ? x->object_bytes : object->n, &r->hw);
    if (rc < 0)
        return rc;
    r->hw->no_skip = x->no_skip;
    r->hw->bad_per_2_32 = x->bad_per_2_32;
    r->hw->tracer = x->tracer;
    r->hw->tracer_arg = x->tracer_arg;
    if (x->tracer && !x->object) {
        snprintf(name, sizeof name, "%s.lines", x->system->object);
        const struct myri_data *lines = myri_data_find(name);
        rc = lines ? myri_hw_name_parts(r->hw, (const char *)lines->bytes) : 0;
    }
    /* Nothing takes a millisecond a message, and two seconds beside. */
    r->hw->horizon_ps = (uint64_t)x->count * r->sides * (1000000000u + (uint64_t)x->bytes * 1000000) + 2000000000000u;
    for (uint32_t i = 0; x->profile && rc == 0 && i < r->sides; i++)
        rc = myri_lanai_profile(&r->hw->card[i].cpu);
    if (rc == 0)
        rc = open_sides(r);
    if (rc == 0)
        rc = myri_hw_power(r->hw);
    if (rc == 0)
        rc = lost_by_crc(r, myri_hw_run(r->hw));
    if (rc < 0)
        return rc;
    if (x->measure == MYRI_WIRE_COST && r->out->received == 0)
        return rnl_fail(RNL_ERR_ARG, "none of %u messages was received, so there is no cost of one: take more",
                        r->out->sent);
    value_of(r);
    if (!isfinite(r->out->value)) /* fm1-link hands over all that its card has counted, at one tick */
        return rnl_fail(RNL_ERR_ARG, "%u messages of %u bytes were all there at one time, which is no rate: take more",
                        r->out->received, x->bytes);
    r->out->count = r->hw->count;
    r->out->events = rnl_sim_events(r->hw->sim);
    r->out->end_ps = myri_hw_now(r->hw);
    for (uint32_t i = 0; i < r->sides; i++) {
        r->out->instructions += r->hw->card[i].cpu.instructions;
        r->out->skipped += r->hw->card[i].skipped;
    }
    if (x->inspect)
        x->inspect(x->inspect_arg, r->hw, r->side);
    return 0;
}

int myri_experiment_run(const struct myri_experiment *x, struct myri_outcome *out)
{
    int rc = check(x);
    if (rc < 0)
        return rc;
    struct experiment_run *r = calloc(1, sizeof *r);
    if (!r)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an experiment");
    struct myri_outcome outcome = {0};
    r->x = x;
    r->out = &outcome;
    rc = run(r);
    for (uint32_t i = 0; i < r->sides; i++) {
        if (r->side[i].state && x->system->close)
            x->system->close(&r->side[i]);
        free(r->side[i].state);
    }
    myri_hw_free(r->hw);
    free(r);
    if (rc == 0)
        *out = outcome;
    return rc;
}
