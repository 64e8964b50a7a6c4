/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tasks.c - what the hosts of an experiment do. Every message that arrives is checked: its last word counts, the rest
 * of it is a pattern of its sender's. Checking takes no time on the machine. */
#include "sim/engine/random.h"
#include "sim/myrinet/experiments/internal.h"

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

void myri_experiment_fill(struct myri_side *s, uint32_t bytes)
{
    for (uint32_t k = 0; k + 1 < bytes / 4; k++)
        myri_side_set_word(s, s->out + 4 * k, pattern(s->node, k));
}

/* The operating system takes pages back, as chance has it, and no time of the program's. */
static void take_pages(struct experiment_run *r, struct myri_side *s)
{
    for (uint32_t k = 0; r->x->page_out_per_2_32 && s->space && k < s->space->pages; k++) {
        uint64_t random = rnl_sim_random(rnl_sim_seed(r->hw->sim), STREAM_PAGE, s->node, r->pages_asked++);
        if (s->space->frame[k] && rnl_sim_chance(random, r->x->page_out_per_2_32))
            r->out->pages_stayed += myri_side_page_out(s, (k + 1) * r->hw->page) < 0;
    }
}

static void send_next(struct experiment_run *r, struct myri_side *s, uint32_t to, int post)
{
    uint32_t n = r->x->bytes;
    if (r->x->places > 1) {
        uint64_t random = rnl_sim_random(rnl_sim_seed(r->hw->sim), STREAM_PLACE, s->node, r->seen[s->node]);
        s->out = r->first_out[s->node] + myri_experiment_pages(r->x) * (uint32_t)rnl_sim_below(random, r->x->places);
    }
    r->out->sent++;
    take_pages(r, s);
    myri_side_set_word(s, s->out + n - 4, ++r->seen[s->node] | s->node << 24);
    if (post && s->system->post)
        s->system->post(s, to, n);
    else
        s->system->send(s, to, n);
}

/* What lies at `got`. */
static void check(struct experiment_run *r, struct myri_side *s, uint32_t n)
{
    r->out->received++;
    if (n != r->x->bytes) {
        myri_experiment_wrong(r->out, r->hw, s->node);
        return;
    }
    uint32_t last = myri_side_word(s, s->got + n - 4), node = last >> 24;
    int right = node < r->sides && (last & 0xffffff) <= r->seen[node] && (last & 0xffffff) > 0;
    for (uint32_t k = 0; right && k + 1 < n / 4; k++)
        right = myri_side_word(s, s->got + 4 * k) == pattern(node, k);
    if (!right)
        myri_experiment_wrong(r->out, r->hw, s->node);
}

static int receive_next(struct experiment_run *r, struct myri_side *s, uint64_t until)
{
    uint32_t n = s->system->receive(s, r->x->bytes, until);
    if (n == 0)
        return 0;
    check(r, s, n);
    take_pages(r, s);
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

/* What is measured of this node, up to now; the next of it begins. */
static void show(struct experiment_run *r, uint32_t node, uint64_t from, const char *what)
{
    myri_hw_trace(r->hw, node, MYRI_LANE_MEASURED, from, myri_hw_now(r->hw), what, r->x->bytes);
    r->shown_ps = myri_hw_now(r->hw);
}

/* One of those times that a mean is of. */
static void add_time(struct experiment_run *r, uint64_t ps)
{
    if (r->busy_ps == 0)
        r->first_ps = ps;
    r->busy_ps += ps;
}

/* The next message of a ping-pong. */
static void send_shown(struct experiment_run *r, struct myri_side *s)
{
    uint64_t from = r->shown_ps = myri_hw_now(r->hw);
    send_next(r, s, !s->node, 0);
    myri_hw_trace(r->hw, s->node, MYRI_LANE_MEASURED, from, myri_hw_now(r->hw), "call", r->x->bytes);
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
            send_shown(r, s);
        }
        if (!receive_next(r, s, RNL_SIM_NEVER))
            return;
        show(r, !s->node, r->shown_ps, "message");
        if (first && i == 0)
            r->first_ps = myri_hw_now(r->hw) - r->begin_ps - r->jitter_spent_ps;
        if (!first) {
            jitter(r, s);
            send_shown(r, s);
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
        if (s->system->ahead && !r->begin_ps)
            r->begin_ps = r->shown_ps = myri_hw_now(r->hw);
        for (uint32_t i = 0; i < r->x->count; i++)
            send_next(r, s, r->receiver, 0);
        r->sending--;
        finish(s);
        return;
    }
    uint32_t all = r->x->count * (r->sides - 1), got = 0;
    while (got < all) {
        int may_miss =
            s->system->lossy || s->system->overwrites ||
            ((r->x->bad_per_2_32 || r->x->lost_per_2_32) && !s->system->recovers); /* one place is overwritten */
        uint64_t until = may_miss ? myri_hw_now(r->hw) + (uint64_t)IDLE_US * 1000000 : RNL_SIM_NEVER;
        if (!receive_next(r, s, until)) {
            if (r->sending == 0 || r->hw->fault[0])
                break;
            continue;
        }
        if (got++ == 0 && !s->system->ahead)
            r->begin_ps = r->shown_ps = myri_hw_now(r->hw);
        r->end_ps = myri_hw_now(r->hw);
        show(r, s->node, r->shown_ps, "interval");
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
        r->begin_ps = r->shown_ps = myri_hw_now(r->hw);
    for (uint32_t i = 0; i < r->x->count; i++) {
        send_next(r, s, !s->node, 0);
        if (!receive_next(r, s, RNL_SIM_NEVER))
            return;
        if (s->node == 0)
            show(r, 0, r->shown_ps, "interval");
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
            add_time(r, myri_hw_now(r->hw) - from);
            show(r, 0, from, "cost");
        } else if (!receive_next(r, s, RNL_SIM_NEVER)) {
            return;
        }
    }
    finish(s);
}

/* Node 0 sends when node 1 has the one before; node 1 takes a message when it has come for sure. */
static void cost_of_take(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    uint64_t pause = 200000000 + (uint64_t)r->x->bytes * 20000;
    for (uint32_t i = 0; i < r->x->count && !r->hw->fault[0]; i++) {
        if (s->node == 0) {
            while (r->out->received < i && !r->hw->fault[0])
                myri_task_spend(t, 1000000, "wait");
            jitter(r, s);
            send_next(r, s, 1, 0);
            continue;
        }
        while (r->out->sent <= i && !r->hw->fault[0])
            myri_task_spend(t, 1000000, "wait");
        myri_task_spend(t, pause, "pause");
        uint64_t from = myri_hw_now(r->hw);
        if (!receive_next(r, s, RNL_SIM_NEVER))
            return;
        add_time(r, myri_hw_now(r->hw) - from);
        show(r, s->node, from, "cost");
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
        add_time(r, myri_hw_now(r->hw) - from);
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

void myri_experiment_computer(struct myri_task *t, void *arg)
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

/* ---- one to several ---- */

static void bring(struct experiment_run *r, struct myri_side *s)
{
    uint32_t n = r->x->bytes;
    r->out->sent += r->sides - 1;
    take_pages(r, s);
    myri_side_set_word(s, s->out + n - 4, ++r->seen[s->node] | s->node << 24);
    if (r->x->bringer == MYRI_BY_SYSTEM && s->system->to_all) {
        s->system->to_all(s, n);
        return;
    }
    if (s->system->numbers) /* others bring what it would: in one order everywhere */
        (void)s->system->fetch(s);
    uint32_t last = r->x->bringer == MYRI_BY_HOSTS && r->sides > 3 ? 2 : r->sides - 1;
    for (uint32_t to = 1; to <= last; to++)
        s->system->send(s, to, n);
}

/* A message of node 0's goes on to the two below, from where they may be sent from. */
static void bring_on(struct experiment_run *r, struct myri_side *s)
{
    uint32_t n = r->x->bytes, child = 2 * s->node + 1;
    if (child >= r->sides)
        return;
    myri_side_copy(s, s->out, s->got, n);
    for (uint32_t to = child; to <= child + 1 && to < r->sides; to++)
        s->system->send(s, to, n);
}

static void one_to_all(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    int waits = r->x->measure == MYRI_TO_ALL;
    uint64_t seen = 0;
    if (s->node == 0) {
        r->begin_ps = myri_hw_now(r->hw);
        for (uint32_t i = 0; i < r->x->count && !r->hw->fault[0]; i++) {
            if (waits)
                jitter(r, s);
            uint64_t from = myri_hw_now(r->hw);
            r->lack = r->sides - 1;
            bring(r, s);
            while (waits && r->lack && !r->hw->fault[0]) {
                if (s->system->to_all && r->x->bringer == MYRI_BY_SYSTEM) /* its own, where it gets one: looks */
                    (void)s->system->receive(s, r->x->bytes, myri_hw_now(r->hw) + 1000000);
                else
                    myri_task_spend(t, 1000000, "wait");
            }
            if (waits)
                add_time(r, r->end_ps - from);
            if (!waits && s->system->to_all && r->x->bringer == MYRI_BY_SYSTEM)
                (void)s->system->receive(s, r->x->bytes, myri_hw_now(r->hw));
        }
        while (!waits && r->out->received < r->out->sent && !r->hw->fault[0])
            (void)s->system->receive(s, r->x->bytes, myri_hw_now(r->hw) + 10000000);
        finish(s);
        return;
    }
    for (uint32_t i = 0; i < r->x->count && !r->hw->fault[0];) {
        if (t->serves)
            seen = myri_task_await_interrupt(t, seen);
        while (i < r->x->count && receive_next(r, s, t->serves ? myri_hw_now(r->hw) : RNL_SIM_NEVER)) {
            i++;
            if (r->x->bringer == MYRI_BY_HOSTS)
                bring_on(r, s);
            r->end_ps = myri_hw_now(r->hw);
            r->lack--;
        }
        if (!t->serves)
            break;
    }
    finish(s);
}

/* ---- calls, and multicasts in turn ---- */

static void count_up(struct experiment_run *r, struct myri_side *s)
{
    myri_side_set_word(s, s->out + r->x->bytes - 4, ++r->seen[s->node] | s->node << 24);
}

void myri_experiment_handled(struct myri_side *s, uint32_t bytes)
{
    struct experiment_run *r = s->handled_arg;
    if (s->from != s->node)
        check(r, s, bytes);
    if (myri_experiment_calls(r->x)) {
        r->out->sent++;
        count_up(r, s);
    }
}

static void caller(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    if (s->node == 1) {
        (void)s->system->serve(s, r->x->count, 0);
        finish(s);
        return;
    }
    r->begin_ps = myri_hw_now(r->hw);
    for (uint32_t i = 0; i < r->x->count; i++) {
        if (r->x->measure == MYRI_CALL)
            jitter(r, s);
        r->out->sent++;
        count_up(r, s);
        uint32_t n = s->system->call(s, 1, r->x->bytes);
        if (n == 0)
            return;
        check(r, s, n);
        if (i == 0)
            r->first_ps = myri_hw_now(r->hw) - r->begin_ps - r->jitter_spent_ps;
    }
    r->end_ps = myri_hw_now(r->hw);
    finish(s);
}

/* Each pair of nodes has 2 * count turns; whose turn it is has served all multicasts before it. */
static void taker_of_turns(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    uint32_t all = 0;
    for (uint32_t a = 0; a < r->sides; a++)
        for (uint32_t b = a + 1; b < r->sides; b++)
            for (uint32_t k = 0; k < 2 * r->x->count; k++, all++) {
                if (s->node != (k % 2 ? b : a))
                    continue;
                if (!s->system->serve(s, 0, all))
                    return;
                jitter(r, s);
                r->out->sent += r->sides - 1;
                count_up(r, s);
                s->system->to_all(s, r->x->bytes);
            }
    if (s->system->serve(s, 0, all) && s->node == r->sides - 2) /* it waits for the last one */
        r->end_ps = myri_hw_now(r->hw);
    finish(s);
}

/* All come to the same. */
static void solver(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    uint32_t solution = s->system->jacobi(s, r->x->bytes, r->x->count);
    if (r->end_ps && solution != r->solution)
        myri_experiment_wrong(r->out, r->hw, s->node);
    r->solution = solution;
    r->out->sent += r->x->count;
    r->out->received += r->x->count;
    r->end_ps = myri_hw_now(r->hw);
    finish(s);
}

static void fetcher(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    struct myri_side *s = side_of(r, t);
    for (uint32_t i = 0; s->node == 1 && i < r->x->count && !r->hw->fault[0]; i++) {
        jitter(r, s);
        uint64_t from = myri_hw_now(r->hw);
        uint32_t number = s->system->fetch(s);
        if (number != i)
            myri_experiment_wrong(r->out, r->hw, s->node);
        add_time(r, myri_hw_now(r->hw) - from);
        show(r, s->node, from, "message");
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
    r->begin_ps = r->shown_ps = myri_hw_now(r->hw);
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
        show(r, s->node, r->shown_ps, "interval");
    }
    r->end_ps = myri_hw_now(r->hw);
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
    case MYRI_TAKE_COST:
        return cost_of_take;
    case MYRI_ANSWER:
    case MYRI_ANSWER_COST:
        return node == 0 ? asker : x->attention == MYRI_BY_POLLS ? myri_experiment_computer : answerer;
    case MYRI_TO_ALL:
    case MYRI_ALL_RATE:
        return one_to_all;
    case MYRI_FETCH:
        return fetcher;
    case MYRI_CALL:
    case MYRI_CALL_RATE:
        return caller;
    case MYRI_TURNS:
        return taker_of_turns;
    case MYRI_JACOBI:
        return solver;
    default:
        return local;
    }
}

/* The task of a side. */
void myri_experiment_task(struct myri_task *t, void *arg)
{
    struct experiment_run *r = arg;
    if (r->x->begin_ps)
        myri_task_spend(t, r->x->begin_ps, "start");
    task_of(r->x, side_of(r, t)->node)(t, r);
}
