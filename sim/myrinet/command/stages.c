/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stages.c - see stages.h. Spans are kept while the experiment runs, and shared out when it has ended. */
#include "sim/myrinet/command/stages.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 128, MESSAGE, CALL, COST, INTERVAL };

struct stage_span {
    uint64_t from, to;
    uint32_t node;
    uint16_t lane, what; /* what: number of a name; of what is measured MESSAGE, CALL, COST or INTERVAL */
};
struct stage_spans {
    struct stage_span *span;
    size_t n, room;
    char name[NAMES][MYRI_STAGE_NAME];
    uint16_t names;
    int no_memory;
};

static int is_wait(const char *what)
{
    static const char *const waits[] = {"wait", "waits", "poll", "look", "pause", "jitter", "start", "stagger"};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
        if (strcmp(what, waits[i]) == 0)
            return 1;
    return 0;
}

static uint16_t name_of(struct stage_spans *s, const char *what)
{
    uint16_t i = 0;
    while (i < s->names && strncmp(s->name[i], what, MYRI_STAGE_NAME - 1) != 0)
        i++;
    if (i == s->names && i < NAMES - 1)
        snprintf(s->name[s->names++], MYRI_STAGE_NAME, "%s", what);
    else if (i == s->names) /* more than there is room for */
        snprintf(s->name[i = NAMES - 1], MYRI_STAGE_NAME, "others");
    return i;
}

static void keep(void *arg, uint32_t node, enum myri_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                 uint64_t amount)
{
    struct stage_spans *s = arg;
    (void)amount;
    if (is_wait(what) || s->no_memory)
        return;
    if (lane == MYRI_LANE_BUS && strcmp(what, "store") != 0 && strcmp(what, "load") != 0)
        return; /* bursts: the engine's own spans have them */
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 4096;
        struct stage_span *more = realloc(s->span, room * sizeof *more);
        if (!more) {
            s->no_memory = 1;
            return;
        }
        s->span = more;
        s->room = room;
    }
    uint16_t number = lane != MYRI_LANE_MEASURED      ? name_of(s, what)
                      : strcmp(what, "message") == 0  ? MESSAGE
                      : strcmp(what, "call") == 0     ? CALL
                      : strcmp(what, "interval") == 0 ? INTERVAL
                                                      : COST;
    s->span[s->n++] = (struct stage_span){from, to, node, (uint16_t)lane, number};
}

/* What is measured comes behind what it has in it only by its begin. */
static int by_begin(const void *a, const void *b)
{
    const struct stage_span *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->lane < y->lane ? -1 : x->lane > y->lane;
}

static enum myri_stage_kind kind_of(const struct stage_span *p)
{
    switch (p->lane) {
    case MYRI_LANE_HOST:
        return MYRI_STAGE_HOST;
    case MYRI_LANE_BUS:
        return MYRI_STAGE_BUS;
    case MYRI_LANE_FIRMWARE:
        return MYRI_STAGE_CARD;
    case MYRI_LANE_DMA:
        return MYRI_STAGE_DMA;
    default:
        return MYRI_STAGE_WIRE;
    }
}

static struct myri_stage *stage_of(struct myri_stages *out, enum myri_stage_kind kind, int role, const char *what)
{
    int i = 0;
    while (i < out->n &&
           (out->stage[i].kind != kind || out->stage[i].role != role || strcmp(out->stage[i].what, what) != 0))
        i++;
    if (i == MYRI_STAGES)
        return &out->stage[MYRI_STAGES - 1];
    if (i == out->n) {
        out->stage[i] = (struct myri_stage){.kind = kind, .role = role};
        snprintf(out->stage[i].what, MYRI_STAGE_NAME, "%s", what);
        out->n++;
    }
    return &out->stage[i];
}

/* One message: from when on its receiver's card and host are on its way, until when its sender's host is,
 * and when that has stored the last word, or a packet has left: its card begins then. */
struct stage_way {
    uint64_t from, to, card, host, call, bell;
    uint32_t sender;
    int cost;
};

static int rank_of(const struct stage_way *w, const struct stage_span *p, uint64_t at)
{
    int sends = p->node == w->sender;
    if (w->cost)
        return sends ? (p->lane == MYRI_LANE_BUS ? 30 : p->lane == MYRI_LANE_HOST ? 29 : p->lane) : 1;
    switch (p->lane) {
    case MYRI_LANE_BUS: /* a host that looks for what is not there yet is on nobody's way */
        return sends ? (at < w->bell ? 17 : at < w->call ? 12 : 0) : at >= w->host ? 28 : 0;
    case MYRI_LANE_HOST:
        return sends ? (at < w->bell ? 16 : at < w->call ? 11 : 0) : at >= w->host ? 27 : 0;
    case MYRI_LANE_DMA:
        return sends ? 14 : at >= w->card ? 26 : 6;
    case MYRI_LANE_FIRMWARE:
        return sends ? 13 : at >= w->card ? 25 : 5;
    case MYRI_LANE_SEND:
        return sends ? 20 : 7;
    default:
        return sends ? 8 : 21;
    }
}

static const char *wait_for(const struct stage_way *w, const struct stage_span *next, int *role,
                            enum myri_stage_kind *kind)
{
    int sends = next ? next->node == w->sender : w->cost;
    *role = sends ? MYRI_SENDER : MYRI_RECEIVER;
    *kind = MYRI_STAGE_WAIT;
    if (!next || next->lane == MYRI_LANE_HOST || next->lane == MYRI_LANE_BUS)
        return "until the host goes on";
    if (next->lane == MYRI_LANE_FIRMWARE)
        return "until the card's program looks";
    if (next->lane == MYRI_LANE_DMA)
        return "until the engine starts";
    *kind = MYRI_STAGE_WIRE;
    return "the head, on its way";
}

static void add(struct myri_stages *out, const struct stage_way *w, uint64_t from, uint64_t to,
                const struct stage_spans *s, const struct stage_span *does, const struct stage_span *next)
{
    int role;
    enum myri_stage_kind kind;
    const char *what;
    if (!does) {
        what = wait_for(w, next, &role, &kind);
    } else {
        kind = kind_of(does);
        role = does->node == w->sender ? MYRI_SENDER : MYRI_RECEIVER;
        what = s->name[does->what];
        if (kind == MYRI_STAGE_WIRE)
            what = does->lane == MYRI_LANE_SEND ? "a packet leaves" : "a packet comes";
    }
    struct myri_stage *g = stage_of(out, kind, role, what);
    g->middle += ((double)(from - w->from) + (double)(to - w->from)) / 2 * (double)(to - from);
    g->ps += to - from;
}

/* From when on the receiver's host is on the way: from the first transfer into its memory. Of one that reads from the
 * card it is the end of the first turn in which the card has dealt with what came. */
static uint64_t host_from(const struct stage_spans *s, size_t first, const struct stage_way *w)
{
    uint64_t dealt = UINT64_MAX;
    for (size_t i = first; i < s->n && s->span[i].from < w->to; i++) {
        const struct stage_span *p = &s->span[i];
        if (p->node == w->sender || p->from < w->card)
            continue;
        if (p->lane == MYRI_LANE_DMA && strcmp(s->name[p->what], "to host") == 0)
            return p->from;
        if (p->lane == MYRI_LANE_FIRMWARE && (dealt == UINT64_MAX || p->from == dealt))
            dealt = p->to;
    }
    return dealt;
}

static uint64_t bell_of(const struct stage_spans *s, size_t first, const struct stage_way *w)
{
    uint64_t last = 0;
    for (size_t i = first; i < s->n && s->span[i].from < w->to; i++) {
        const struct stage_span *p = &s->span[i];
        if (p->node != w->sender || p->from < w->from)
            continue;
        if (p->lane == MYRI_LANE_SEND)
            return p->from < last ? p->from : last;
        if (p->lane == MYRI_LANE_BUS && p->to <= w->call && strcmp(s->name[p->what], "store") == 0)
            last = p->to;
    }
    return last;
}

/* All of a message's time; the spans from `first` on may reach into it. */
static void share_out(struct myri_stages *out, const struct stage_spans *s, size_t first, struct stage_way w)
{
    w.card = w.call = UINT64_MAX;
    for (size_t i = first; i < s->n && s->span[i].from < w.to; i++) {
        const struct stage_span *p = &s->span[i];
        if (p->lane == MYRI_LANE_MEASURED && p->what == CALL && p->from == w.from)
            w.call = p->to;
        if (p->lane == MYRI_LANE_RECEIVE && p->node != w.sender && p->from >= w.from && p->to < w.card)
            w.card = p->to;
    }
    w.host = host_from(s, first, &w);
    w.bell = bell_of(s, first, &w);
    for (uint64_t at = w.from; at < w.to;) {
        const struct stage_span *does = NULL, *next = NULL;
        uint64_t end = w.to;
        for (size_t i = first; i < s->n && s->span[i].from < w.to; i++) {
            const struct stage_span *p = &s->span[i];
            if (p->lane == MYRI_LANE_MEASURED || p->to <= at)
                continue;
            if (p->from > at) {
                if (next && p->from > next->from)
                    break;
                if (rank_of(&w, p, p->from) > (next ? rank_of(&w, next, p->from) : 0))
                    next = p;
                end = p->from < end ? p->from : end;
                continue;
            }
            end = p->to < end ? p->to : end;
            if (rank_of(&w, p, at) > (does ? rank_of(&w, does, at) : 0))
                does = p;
        }
        add(out, &w, at, end, s, does, next);
        at = end;
    }
}

/* How long each part works in an interval of a rate. */
static void work_of(struct myri_stages *out, const struct stage_spans *s, size_t first, struct stage_way w)
{
    for (size_t i = first; i < s->n && s->span[i].from < w.to; i++) {
        const struct stage_span *p = &s->span[i];
        uint64_t from = p->from > w.from ? p->from : w.from, to = p->to < w.to ? p->to : w.to;
        if (p->lane == MYRI_LANE_MEASURED || from >= to || p->lane == MYRI_LANE_RECEIVE)
            continue;
        add(out, &w, from, to, s, p, NULL);
        if (p->lane == MYRI_LANE_DMA && strcmp(s->name[p->what], "set-up") != 0) {
            struct myri_stage *g =
                stage_of(out, MYRI_STAGE_BUS, p->node == w.sender ? MYRI_SENDER : MYRI_RECEIVER, s->name[p->what]);
            g->ps += to - from;
        }
    }
}

static int earlier(const void *a, const void *b)
{
    const struct myri_stage *x = a, *y = b;
    return x->middle < y->middle ? -1 : x->middle > y->middle;
}

static int busier(const void *a, const void *b)
{
    const struct myri_stage *x = a, *y = b;
    return x->ps > y->ps ? -1 : x->ps < y->ps;
}

static void share_all(struct stage_spans *s, const struct myri_experiment *x, struct myri_stages *out)
{
    size_t first = 0;
    out->of_rate = myri_measure_unit(x->measure)[0] == 'M';
    qsort(s->span, s->n, sizeof s->span[0], by_begin);
    for (size_t i = 0; i < s->n; i++) {
        const struct stage_span *p = &s->span[i];
        if (p->lane != MYRI_LANE_MEASURED || p->what == CALL)
            continue;
        /* A stream is shown at its receiver, node 1; whatever else at who sends. */
        int stream = p->what == INTERVAL && x->measure == MYRI_STREAM_RATE;
        struct stage_way w = {
            .from = p->from, .to = p->to, .sender = stream ? !p->node : p->node, .cost = p->what == COST};
        while (first < s->n && s->span[first].to <= w.from)
            first++;
        (out->of_rate ? work_of : share_out)(out, s, first, w);
        out->ps += w.to - w.from;
        out->parts++;
    }
    for (int i = 0; i < out->n && !out->of_rate; i++)
        out->stage[i].middle /= (double)out->stage[i].ps;
    qsort(out->stage, (size_t)out->n, sizeof out->stage[0], out->of_rate ? busier : earlier);
}

const char *myri_stage_kind_name(enum myri_stage_kind k)
{
    static const char *const name[MYRI_STAGE_KINDS] = {"host", "bus", "card", "DMA", "wire", "wait"};
    return name[k];
}

int myri_stages_of(const struct myri_experiment *asked, struct myri_stages *out)
{
    struct myri_experiment x = *asked;
    struct myri_outcome o = {0};
    struct stage_spans *s = calloc(1, sizeof *s);
    memset(out, 0, sizeof *out);
    if (!s)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the spans of a trace");
    x.inspect = NULL; /* what it points to may be gone */
    x.tracer = keep;
    x.tracer_arg = s;
    int rc = myri_experiment_run(&x, &o);
    if (rc == 0 && s->no_memory)
        rc = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the spans of a trace: take fewer messages");
    out->value = o.value;
    if (rc == 0 && x.measure != MYRI_GOODPUT && x.measure != MYRI_WIRE_COST)
        share_all(s, &x, out);
    free(s->span);
    free(s);
    return rc;
}

double myri_stages_per(const struct myri_experiment *x, const struct myri_stages *s)
{
    return (double)s->parts * 1e6 / (x->measure == MYRI_ROUND_TRIP ? 2 : 1);
}

uint64_t myri_stages_sum(const struct myri_stages *s, enum myri_stage_kind kind, int role)
{
    uint64_t sum = 0;
    for (int i = 0; i < s->n; i++)
        if (s->stage[i].kind == kind && s->stage[i].role == role)
            sum += s->stage[i].ps;
    return sum;
}
