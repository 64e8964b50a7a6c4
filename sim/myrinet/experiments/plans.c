/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plans.c - the experiments behind the published figures. Sizes that a paper leaves open are those of its figure's
 * axis: peaks are the largest of a sweep, half-power sizes lie on the curve of that sweep. */
#include "sim/myrinet/experiments/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct context {
    const struct myri_row *row;
    struct myri_machine machine;
    const struct myri_system *system;
    uint32_t count; /* messages of a point, at most; 0: as many as is usual */
    int whole;      /* a shape is judged at all of its points, also behind one that makes it false */
};

/* ---- plans ---- */

enum { GROUP = 8 }; /* members of a group: paper 003, 3.2 */
/* Rates of messages of so many bytes are those of so few of them: 20 differ from 4 by less than a thousandth. */
enum { LARGE = 65536, LARGE_COUNT = 4 };

static int measure(const struct context *c, const char *system, enum myri_measure m, uint32_t bytes, uint32_t packet,
                   double *out)
{
    struct myri_experiment x;
    struct myri_outcome o;
    myri_experiment_init(&x, system ? myri_system_find(system) : c->system, &c->machine, m, bytes);
    x.packet = packet;
    if (m == MYRI_TURNS || m == MYRI_ALL_RATE)
        x.receivers = GROUP - 1;
    if (m == MYRI_TURNS) /* for each of 28 pairs */
        x.count = 20;
    if (bytes >= LARGE && (m == MYRI_PING_RATE || m == MYRI_STREAM_RATE))
        x.count = LARGE_COUNT;
    if (m == MYRI_ALL_RATE || m == MYRI_CALL_RATE) /* of so many fragments that it has a rate */
        x.count = 3;
    if (c->count && c->count < x.count)
        x.count = c->count;
    int rc = myri_experiment_once(&x, &o);
    if (rc == 0)
        *out = o.value;
    return rc;
}

/* The largest rate over powers of two, and the size where half of it is reached, between two sizes on a line. */
static int sweep(const struct context *c, enum myri_measure m, uint32_t least, uint32_t most, double *peak,
                 double *half)
{
    enum { MOST = 24 };
    double rate[MOST] = {0}, size[MOST] = {0};
    int n = 0, rc = 0;
    *peak = 0;
    for (uint32_t bytes = least; bytes <= most && n < MOST && rc == 0; bytes *= 2, n++) {
        rc = measure(c, NULL, m, bytes, 0, &rate[n]);
        size[n] = bytes;
        if (rc == 0 && rate[n] > *peak)
            *peak = rate[n];
    }
    if (rc < 0)
        return rc;
    *half = size[0];
    for (int i = 1; i < n; i++)
        if (rate[i - 1] < *peak / 2 && rate[i] >= *peak / 2) {
            *half = size[i - 1] + (size[i] - size[i - 1]) * (*peak / 2 - rate[i - 1]) / (rate[i] - rate[i - 1]);
            break;
        }
    return 0;
}

/* ---- shapes ---- */

enum { SHORTEST = 4, SHORT = 128, SENDS = 50 }; /* VMMC's sends by stores: bytes; of each size so many */

static int goes_on(const struct context *c, int rc, int truth)
{
    return rc == 0 && (truth || c->whole);
}

/* 27b: the cost of a synchronous send grows slowly up to 128 bytes, and jumps behind them: with each word it is no less
 * than before, and the step behind them is larger than all that it grew by until there. */
static int slow_then_jump(struct context *c, int *truth)
{
    double first = 0, before = 0, is = 0;
    int rc = 0;
    *truth = 1;
    c->count = SENDS;
    for (uint32_t bytes = SHORTEST; bytes <= SHORT + 4 && goes_on(c, rc, *truth); bytes += 4, before = is) {
        rc = measure(c, NULL, MYRI_SEND_COST, bytes, 0, &is);
        if (bytes == SHORTEST)
            first = is;
        else if (bytes <= SHORT)
            *truth &= is >= before;
        else
            *truth &= is - before > before - first;
    }
    return rc;
}

/* 27c: posting any long message costs less than sending any short one. How much "slightly" is the paper does not say.
 */
static int long_posts_cheaper(struct context *c, int *truth)
{
    double least = INFINITY, most = 0, is = 0;
    int rc = 0;
    c->count = SENDS;
    for (uint32_t bytes = SHORTEST; bytes <= SHORT && rc == 0; bytes += 4) {
        rc = measure(c, NULL, MYRI_POST_COST, bytes, 0, &is);
        least = is < least ? is : least;
    }
    for (uint32_t bytes = SHORT + 4; bytes <= 65536 && goes_on(c, rc, most < least);
         bytes = bytes % 8 ? 256 : 2 * bytes) {
        rc = measure(c, NULL, MYRI_POST_COST, bytes, 0, &is);
        most = is > most ? is : most;
    }
    *truth = most < least;
    return rc;
}

/* 50: of a program on a group of nodes, against one node. All iterations are alike, so some of them will do. */
static int speed_up(const struct context *c, enum myri_measure m, uint32_t bytes, double *out)
{
    double us[2] = {0, 0};
    int rc = 0;
    for (uint32_t i = 0; i < 2 && rc == 0; i++) {
        struct myri_experiment x;
        struct myri_outcome o;
        myri_experiment_init(&x, c->system, &c->machine, m, bytes);
        x.count = 50;
        x.receivers = i * (GROUP - 1);
        rc = myri_experiment_once(&x, &o);
        if (rc == 0)
            us[i] = o.value;
    }
    *out = us[0] / us[1];
    return rc;
}

/* The rate in per cent of what another system has at the same size, the largest over sizes from least to most. */
static int share(const struct context *c, const char *of, uint32_t least, uint32_t most, double *out)
{
    int rc = 0;
    *out = 0;
    for (uint32_t bytes = least; bytes <= most && rc == 0; bytes *= 2) {
        double part = 0, whole = 0;
        rc = measure(c, NULL, MYRI_STREAM_RATE, bytes, 0, &part);
        rc = rc < 0 ? rc : measure(c, of, MYRI_STREAM_RATE, bytes, 0, &whole);
        if (rc == 0 && 100 * part / whole > *out)
            *out = 100 * part / whole;
    }
    return rc;
}

/* 54b, 54c: one of two ways to the card is faster at every size of the figure. */
static int always_above(struct context *c, enum myri_measure above, enum myri_measure below, uint32_t least, int *truth)
{
    *truth = 1;
    for (uint32_t bytes = least; bytes <= 65536 && goes_on(c, 0, *truth); bytes *= 2) {
        double a = 0, b = 0;
        int rc = measure(c, "probe", above, bytes, 0, &a);
        rc = rc < 0 ? rc : measure(c, "probe", below, bytes, 0, &b);
        if (rc < 0)
            return rc;
        *truth &= a > b;
    }
    return 0;
}

/* 54a: the size at which DMA overtakes stores. */
static int crossing(struct context *c, double *out)
{
    double before = 0, before_at = 0;
    *out = NAN;
    for (uint32_t bytes = 64; bytes <= 65536; bytes *= 2) {
        double dma = 0, store = 0;
        int rc = measure(c, "probe", MYRI_LOCAL_RATE, bytes, 0, &dma);
        rc = rc < 0 ? rc : measure(c, "probe", MYRI_STORE_RATE, bytes, 0, &store);
        if (rc < 0)
            return rc;
        double ahead = dma - store;
        if (before < 0 && ahead >= 0) {
            *out = before_at + (bytes - before_at) * -before / (ahead - before);
            return 0;
        }
        before = ahead;
        before_at = bytes;
    }
    return 0;
}

/* 33: five systems in the order of their published latencies. */
static const struct myri_order order[MYRI_ORDER] = {{"53a", "bip", "H-PP", 4, 0},
                                                    {"32a", "pm", "H-P", 8, 0},
                                                    {"24", "vmmc", "H-P", 4, 0},
                                                    {"31a", "fm2", "H-P", 8, 0},
                                                    {"52a", "simple", "H-PP", 4, 0}};

int myri_plan_order(myri_row_machine *change, void *arg, struct myri_order out[MYRI_ORDER])
{
    int rc = 0;
    for (int i = 0; i < MYRI_ORDER && rc == 0; i++) {
        struct context c = {0};
        out[i] = order[i];
        rc = myri_machine_builtin(order[i].machine, &c.machine);
        rc = rc < 0 || !change ? rc : change(arg, &c.machine);
        rc = rc < 0 ? rc : measure(&c, order[i].system, MYRI_ONE_WAY, order[i].bytes, 0, &out[i].ours);
    }
    return rc;
}

static int in_order(myri_row_machine *change, void *arg, int *truth)
{
    struct myri_order is[MYRI_ORDER];
    int rc = myri_plan_order(change, arg, is);
    *truth = rc == 0;
    for (int i = 1; i < MYRI_ORDER; i++)
        *truth &= is[i - 1].ours < is[i].ours;
    return rc;
}

/* ---- the table ---- */

enum plan_kind {
    MEASURE,
    PEAK,
    HALF,
    SHARE,
    CROSSING,
    SLOW_JUMP,
    LONG_CHEAPER,
    WC_ABOVE_COPY,
    DMA_ABOVE_PIN,
    IN_ORDER,
    DIFFERENCE,
    SAVED,
    SPEED_UP
};

static const struct experiment_plan {
    const char *id;
    enum plan_kind kind;
    enum myri_measure measure;
    uint32_t bytes, packet; /* PEAK, HALF: the largest size. SHARE: the least, and in `packet` the largest */
    const char *system;     /* if it is not the row's own. SHARE: of whose rate. DIFFERENCE: what is less by so much.
                             * SAVED: what takes more by so much */
} plans[] = {
    {"7a", MEASURE, MYRI_ONE_WAY, 16, 0, NULL},
    {"7b", PEAK, MYRI_STREAM_RATE, 4096, 0, NULL},
    {"7c", HALF, MYRI_STREAM_RATE, 4096, 0, NULL},
    {"7d", MEASURE, MYRI_STREAM_RATE, 128, 0, NULL},
    {"8a", SHARE, MYRI_STREAM_RATE, 16, 2048, "fm1"},
    {"8b", SHARE, MYRI_STREAM_RATE, 2048, 2048, "fm1"},
    {"9a", MEASURE, MYRI_ONE_WAY, 16, 0, NULL},
    {"9b", PEAK, MYRI_STREAM_RATE, 65536, 0, NULL},
    {"9c", HALF, MYRI_STREAM_RATE, 65536, 0, NULL},
    {"10a", MEASURE, MYRI_ONE_WAY, 16, 0, NULL},
    {"10b", PEAK, MYRI_STREAM_RATE, 65536, 0, NULL},
    {"10c", SHARE, MYRI_STREAM_RATE, 16, 16, "fm2"},
    {"10d", SHARE, MYRI_STREAM_RATE, 65536, 65536, "fm2"},
    {"21a", MEASURE, MYRI_LOCAL_RATE, 4096, 0, "probe"},
    {"21b", MEASURE, MYRI_LOCAL_RATE, 65536, 0, "probe"},
    {"24", MEASURE, MYRI_ONE_WAY, 4, 0, NULL},
    {"25", PEAK, MYRI_PING_RATE, 1 << 20, 0, NULL},
    {"26", MEASURE, MYRI_BOTH_RATE, 1 << 18, 0, NULL},
    {"27a", MEASURE, MYRI_SEND_COST, 4, 0, NULL},
    {"27b", SLOW_JUMP, 0, 0, 0, NULL},
    {"27c", LONG_CHEAPER, 0, 0, 0, NULL},
    {"31a", MEASURE, MYRI_ONE_WAY, 8, 0, NULL},
    {"31b", MEASURE, MYRI_PING_RATE, 8192, 0, NULL},
    {"32a", MEASURE, MYRI_ONE_WAY, 8, 0, NULL},
    {"32b", MEASURE, MYRI_STREAM_RATE, 8192, 0, NULL},
    {"32c", MEASURE, MYRI_STREAM_RATE, 4096, 4096, NULL},
    {"34", MEASURE, MYRI_ROUND_TRIP, 16, 0, "fm1-polls"},
    {"35a", MEASURE, MYRI_CALL, 4, 0, "panda-initial"},
    {"35b", MEASURE, MYRI_TURNS, 4, 0, "panda-initial"},
    {"35c", MEASURE, MYRI_CALL, 4, 0, NULL},
    {"35d", MEASURE, MYRI_TURNS, 4, 0, NULL},
    {"36a", MEASURE, MYRI_CALL, 4, 0, "panda-ethernet"},
    {"36b", MEASURE, MYRI_TURNS, 4, 0, "panda-ethernet"},
    {"36c", MEASURE, MYRI_CALL, 4, 0, NULL},
    {"36d", MEASURE, MYRI_TURNS, 4, 0, NULL},
    {"38a", MEASURE, MYRI_ROUND_TRIP, 64, 0, "fm1-polls"},
    {"38b", MEASURE, MYRI_ROUND_TRIP, 248, 0, "fm1-polls"},
    {"38c", MEASURE, MYRI_STREAM_RATE, 16384, 0, "fm1-polls"},
    {"33", IN_ORDER, 0, 0, 0, "probe"},
    {"39a", MEASURE, MYRI_ROUND_TRIP, 16, 0, NULL},
    {"39b", MEASURE, MYRI_ROUND_TRIP, 64, 0, NULL},
    {"39c", MEASURE, MYRI_ROUND_TRIP, 248, 0, NULL},
    {"39d", MEASURE, MYRI_STREAM_RATE, 16384, 0, NULL},
    {"40a", DIFFERENCE, MYRI_ROUND_TRIP, 16, 0, "fmmc-no-locks"},
    {"40b", DIFFERENCE, MYRI_ROUND_TRIP, 16, 0, "fmmc-no-multicast"},
    {"40c", DIFFERENCE, MYRI_ROUND_TRIP, 16, 0, "fmmc-small"},
    {"40d", DIFFERENCE, MYRI_ROUND_TRIP, 16, 0, "fmmc-no-objects"},
    {"41", MEASURE, MYRI_FETCH, 4, 0, NULL},
    {"42a", MEASURE, MYRI_ROUND_TRIP, 64, 120, NULL}, /* a fragment of 128 bytes with its header */
    {"42b", MEASURE, MYRI_FETCH, 4, 120, NULL},
    {"43a", MEASURE, MYRI_CALL, 4, 0, NULL}, /* empty, but that an experiment knows a message by a word */
    {"43b", MEASURE, MYRI_TURNS, 4, 0, NULL},
    {"43c", MEASURE, MYRI_CALL_RATE, 1000000, 0, NULL},
    {"43d", MEASURE, MYRI_ALL_RATE, 1000000, 0, NULL},
    {"44", MEASURE, MYRI_TURNS, 4, 0, "panda-no-multicast"},
    {"46a", MEASURE, MYRI_CALL, 4, 0, NULL},
    {"46b", MEASURE, MYRI_TURNS, 4, 0, NULL},
    {"50", SPEED_UP, MYRI_JACOBI, 300 * 8, 0, NULL},
    {"52a", MEASURE, MYRI_ONE_WAY, 4, 0, NULL},
    {"52b", MEASURE, MYRI_STREAM_RATE, 256, 256, NULL},
    {"52c", MEASURE, MYRI_STREAM_RATE, 1024, 1024, NULL},
    {"53a", MEASURE, MYRI_ONE_WAY, 4, 0, NULL},
    {"53b", PEAK, MYRI_PING_RATE, 1 << 20, 0, NULL},
    {"53c", MEASURE, MYRI_PING_RATE, 4096, 0, NULL},
    {"54a", CROSSING, 0, 0, 0, "probe"},
    {"54b", WC_ABOVE_COPY, 0, 0, 0, "probe"},
    {"54c", DMA_ABOVE_PIN, 0, 0, 0, "probe"},
    {"78", DIFFERENCE, MYRI_ONE_WAY, 4, 0, "am2-bare"},
    {"60a", MEASURE, MYRI_STREAM_RATE, 1 << 20, 0, "pm-cached"},
    {"60b", MEASURE, MYRI_STREAM_RATE, 1 << 20, 0, "pm-uncached"},
    {"80a", SAVED, MYRI_ONE_WAY, 8192, 0, "trapeze-store"},
};

struct closed_form {
    double (*latency)(const char *system, const struct myri_machine *, uint32_t bytes);
    double (*rate)(const char *system, const struct myri_machine *, uint32_t bytes);
    double (*ping)(const char *system, const struct myri_machine *, uint32_t bytes); /* a rate, too */
};
static const struct closed_form null_form = {myri_null_latency, myri_null_rate, myri_null_rate},
                                affine_form = {myri_affine_latency, myri_affine_rate, myri_affine_ping};

/* NAN: it says nothing of that. */
static double by_form(const struct closed_form *form, const struct experiment_plan *p, const struct context *c)
{
    const char *system = p->system && strcmp(p->system, "probe") == 0 ? "machine" : c->row->field[MYRI_ROW_SYSTEM];
    if (p->kind == MEASURE && p->measure == MYRI_ONE_WAY)
        return form->latency(system, &c->machine, p->bytes);
    if (p->kind == MEASURE && p->measure == MYRI_ROUND_TRIP)
        return 2 * form->latency(system, &c->machine, p->bytes);
    if (p->kind == MEASURE && p->measure == MYRI_SEND_COST)
        return 4 * c->machine.v[MYRI_M_store];
    if (p->kind == PEAK || (p->kind == MEASURE && myri_measure_unit(p->measure)[0] == 'M'))
        return (p->measure == MYRI_PING_RATE ? form->ping : form->rate)(system, &c->machine, p->bytes);
    if (p->kind == HALF) /* where a constant time per message and the peak meet */
        return myri_null_latency(system, &c->machine, 4) * form->rate(system, &c->machine, p->bytes);
    return NAN;
}

/* The row's own, the plan's, or with `tuned` that one's second firmware. */
static const struct myri_system *system_of(const struct myri_row *r, const struct experiment_plan *p, int tuned)
{
    int compares = p->kind == SHARE || p->kind == DIFFERENCE || p->kind == SAVED;
    const char *name = p->system && !compares ? p->system : r->field[MYRI_ROW_SYSTEM];
    return tuned ? myri_system_tuned(name) : myri_system_find(name);
}

int myri_plan_answer(const struct myri_row *r, int tuned, myri_row_machine *change, void *arg, struct myri_answer *a)
{
    struct context c = {.row = r, .whole = !change};
    const struct experiment_plan *p = NULL;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        if (strcmp(plans[i].id, r->field[MYRI_ROW_ID]) == 0)
            p = &plans[i];
    if (p ? !(c.system = system_of(r, p, tuned)) : !myri_row_is_shape(r))
        return 0;
    int rc = myri_machine_builtin(r->field[MYRI_ROW_MACHINE], &c.machine);
    if (rc == 0 && change)
        rc = change(arg, &c.machine);
    if (rc == 0 && !p)
        rc = a->answered = myri_shape_judge(r->field[MYRI_ROW_ID], &c.machine, tuned, c.whole, &a->truth);
    if (rc < 0 || !p) {
        a->null = a->affine = NAN;
        return rc < 0 ? rc : 0;
    }
    double peak = 0, half = 0;
    switch (p->kind) {
    case MEASURE:
        rc = measure(&c, NULL, p->measure, p->bytes, p->packet, &a->ours);
        break;
    case PEAK:
    case HALF:
        rc = sweep(&c, p->measure, p->kind == HALF ? 16 : 128, p->bytes, &peak, &half);
        a->ours = p->kind == PEAK ? peak : half;
        break;
    case SHARE:
        rc = share(&c, p->system, p->bytes, p->packet, &a->ours);
        break;
    case CROSSING:
        rc = crossing(&c, &a->ours);
        break;
    case SLOW_JUMP:
        rc = slow_then_jump(&c, &a->truth);
        break;
    case LONG_CHEAPER:
        rc = long_posts_cheaper(&c, &a->truth);
        break;
    case WC_ABOVE_COPY:
        rc = always_above(&c, MYRI_STORE_RATE, MYRI_COPY_RATE, 64, &a->truth);
        break;
    case DMA_ABOVE_PIN:
        rc = always_above(&c, MYRI_LOCAL_RATE, MYRI_PIN_RATE, 64, &a->truth);
        break;
    case SPEED_UP:
        rc = speed_up(&c, p->measure, p->bytes, &a->ours);
        break;
    case DIFFERENCE:
    case SAVED: {
        double other = 0;
        const struct myri_system *with = tuned ? myri_system_tuned(p->system) : NULL; /* both are tuned, or neither */
        if (tuned && !with)
            return 0;
        rc = measure(&c, NULL, p->measure, p->bytes, p->packet, &a->ours);
        rc = rc < 0 ? rc : measure(&c, with ? with->name : p->system, p->measure, p->bytes, p->packet, &other);
        if (p->kind == DIFFERENCE) {
            a->ours -= other;
            break;
        }
        double request = 0, others = 0; /* who fetches a page asks for it first */
        rc = rc < 0 ? rc : measure(&c, NULL, p->measure, 4, p->packet, &request);
        rc = rc < 0 ? rc : measure(&c, with ? with->name : p->system, p->measure, 4, p->packet, &others);
        a->ours = 100 * (1 - (request + a->ours) / (others + other)); /* per cent */
        break;
    }
    case IN_ORDER:
        rc = in_order(change, arg, &a->truth);
        break;
    }
    if (rc < 0)
        return rc;
    a->null = by_form(&null_form, p, &c);
    a->affine = by_form(&affine_form, p, &c);
    a->answered = 1;
    return 0;
}
