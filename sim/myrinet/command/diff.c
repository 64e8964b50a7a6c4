/* SPDX-License-Identifier: BSD-3-Clause
 *
 * diff.c - `runnel paper diff`: one message of two systems side by side, or of one system on two machines. */
#include "sim/myrinet/command/command.h"
#include "sim/myrinet/command/measured.h"
#include "sim/myrinet/command/stages.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2 * MYRI_STAGES };

struct diff_side {
    char label[80];
    struct myri_experiment x;
    struct myri_stages stages;
    struct myri_cmd_counts counts;
};
struct diff_row {
    const struct myri_stage *of[2]; /* NULL: this side has none */
    const struct myri_stage *any;
    long ns[2]; /* as printed */
};
struct diff {
    struct diff_side side[2];
    struct diff_row row[ROWS];
    int n;
};

/* In the order of a message's way. The wire is of both. */
static const struct group {
    const char *name;
    enum myri_stage_kind kind;
    int role;
} groups[] = {
    {"sender's host", MYRI_STAGE_HOST, MYRI_SENDER},
    {"sender's bus, by its host", MYRI_STAGE_BUS, MYRI_SENDER},
    {"waits at the sender", MYRI_STAGE_WAIT, MYRI_SENDER},
    {"sender's card", MYRI_STAGE_CARD, MYRI_SENDER},
    {"sender's DMA", MYRI_STAGE_DMA, MYRI_SENDER},
    {"wire", MYRI_STAGE_WIRE, -1},
    {"waits at the receiver", MYRI_STAGE_WAIT, MYRI_RECEIVER},
    {"receiver's card", MYRI_STAGE_CARD, MYRI_RECEIVER},
    {"receiver's DMA", MYRI_STAGE_DMA, MYRI_RECEIVER},
    {"receiver's bus, by its host", MYRI_STAGE_BUS, MYRI_RECEIVER},
    {"receiver's host", MYRI_STAGE_HOST, MYRI_RECEIVER},
};
enum { GROUPS = sizeof groups / sizeof groups[0] };

static int is_of(const struct myri_stage *g, const struct group *of)
{
    return g->kind == of->kind && (of->role < 0 || g->role == of->role);
}

static void take_group(struct diff *d, const struct group *of)
{
    int first = d->n;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < d->side[side].stages.n; i++) {
            const struct myri_stage *g = &d->side[side].stages.stage[i];
            int k = first;
            if (!is_of(g, of))
                continue;
            while (k < d->n && (d->row[k].any->role != g->role || strcmp(d->row[k].any->what, g->what) != 0))
                k++;
            if (k == d->n)
                d->row[d->n++] = (struct diff_row){.any = g};
            d->row[k].of[side] = g;
        }
}

/* Each number is what the sum of those before it grows by, rounded, so that what is printed adds up. */
static void put_together(struct diff *d)
{
    for (int i = 0; i < GROUPS; i++)
        take_group(d, &groups[i]);
    for (int side = 0; side < 2; side++) {
        double per = myri_stages_per(&d->side[side].x, &d->side[side].stages) / 1e3;
        uint64_t sum = 0;
        for (int k = 0; k < d->n; k++) {
            long before = lround((double)sum / per);
            sum += d->row[k].of[side] ? d->row[k].of[side]->ps : 0;
            d->row[k].ns[side] = lround((double)sum / per) - before;
        }
    }
}

static void print_line(const char *name, int indent, const long *ns, const int *width)
{
    printf("%*s%-*s %*.3f %*.3f %+10.3f\n", indent, "", 40 - indent, name, width[0], (double)ns[0] / 1e3, width[1],
           (double)ns[1] / 1e3, (double)(ns[1] - ns[0]) / 1e3);
}

static void print_count(const char *name, double a, double b, const int *width)
{
    printf("%-40s %*.2f %*.2f %+10.2f\n", name, width[0], a, width[1], b, b - a);
}

static void print(const struct diff *d)
{
    const struct diff_side *a = &d->side[0], *b = &d->side[1];
    int width[2];
    long all[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        size_t n = strlen(d->side[side].label);
        width[side] = n < 10 ? 10 : (int)n;
        printf("%s: %s on %s\n", d->side[side].label, d->side[side].x.system->title, d->side[side].x.machine.name);
    }
    printf("One message of %u bytes from one host to another, the mean of %" PRIu64 "; us\n\n%-40s %*s %*s %10s\n",
           a->x.bytes, a->stages.parts, "", width[0], a->label, width[1], b->label, "difference");
    for (int i = 0; i < GROUPS; i++) {
        long sum[2] = {0, 0};
        int n = 0;
        for (int k = 0; k < d->n; k++)
            if (is_of(d->row[k].any, &groups[i])) {
                sum[0] += d->row[k].ns[0];
                sum[1] += d->row[k].ns[1];
                n++;
            }
        if (!n)
            continue;
        print_line(groups[i].name, 0, sum, width);
        for (int k = 0; k < d->n; k++)
            if (is_of(d->row[k].any, &groups[i]))
                print_line(d->row[k].any->what, 2, d->row[k].ns, width);
        all[0] += sum[0];
        all[1] += sum[1];
    }
    print_line("one way", 0, all, width);
    puts("\nFor each message, of a receiver that takes it when it has come:");
    print_count("instructions of the sender's card", a->counts.sender_instructions, b->counts.sender_instructions,
                width);
    print_count("instructions of the receiver's card", a->counts.receiver_instructions, b->counts.receiver_instructions,
                width);
    print_count("bytes over both I/O buses", a->counts.bus_bytes, b->counts.bus_bytes, width);
    print_count("bytes that hosts copy in their memory", a->counts.copied, b->counts.copied, width);
    print_count("interrupts of both hosts", a->counts.interrupts, b->counts.interrupts, width);
}

static void print_json(const struct diff *d)
{
    printf("{\"bytes\": %u, \"sides\": [", d->side[0].x.bytes);
    for (int side = 0; side < 2; side++) {
        const struct diff_side *s = &d->side[side];
        printf(
            "%s\n  {\"label\": \"%s\", \"system\": \"%s\", \"machine\": \"%s\", \"one_way_us\": %.6f, \"ps\": %" PRIu64
            ", \"messages\": %" PRIu64 ", \"sender_instructions\": %.6g, \"receiver_instructions\": %.6g, "
            "\"bus_bytes\": %.6g, \"copied\": %.6g, \"interrupts\": %.6g}",
            side ? "," : "", s->label, s->x.system->name, s->x.machine.name, s->stages.value, s->stages.ps,
            s->stages.parts, s->counts.sender_instructions, s->counts.receiver_instructions, s->counts.bus_bytes,
            s->counts.copied, s->counts.interrupts);
    }
    fputs("],\n \"stages\": [", stdout);
    for (int k = 0; k < d->n; k++) {
        const struct diff_row *r = &d->row[k];
        printf("%s\n  {\"at\": \"%s\", \"where\": \"%s\", \"what\": \"%s\", \"ps\": [%" PRIu64 ", %" PRIu64 "]}",
               k ? "," : "", r->any->role == MYRI_SENDER ? "sender" : "receiver", myri_stage_kind_name(r->any->kind),
               r->any->what, r->of[0] ? r->of[0]->ps : 0, r->of[1] ? r->of[1]->ps : 0);
    }
    puts("]}");
}

/* Measures one side on its machine. 0, or the exit status, said. */
static int measure(const struct myri_cmd_options *o, const struct myri_system *system, const struct myri_machine *m,
                   struct diff_side *s)
{
    uint32_t bytes = o->bytes ? o->bytes : 4;
    myri_experiment_init(&s->x, system, m, MYRI_ONE_WAY, bytes);
    myri_cmd_prepare(o, &s->x);
    if (myri_stages_of(&s->x, &s->stages) < 0)
        return myri_cmd_failed();
    struct myri_experiment take = s->x;
    take.measure = MYRI_TAKE_COST;
    return myri_cmd_count(&take, &s->counts) < 0 ? myri_cmd_failed() : 0;
}

static int two_systems(struct myri_cmd_options *o, struct diff *d)
{
    struct myri_machine m;
    const struct myri_system *system[2];
    struct myri_cmd_options of_other = *o;
    of_other.what = o->other;
    int rc = myri_cmd_system(o, &system[0]);
    rc = rc ? rc : myri_cmd_system(&of_other, &system[1]);
    rc = rc ? rc : myri_cmd_machine_for(o, "H-PP", &m);
    for (int side = 0; side < 2 && rc == 0; side++) {
        snprintf(d->side[side].label, sizeof d->side[side].label, "%s", system[side]->name);
        rc = measure(o, system[side], &m, &d->side[side]);
    }
    return rc;
}

/* As it is and changed, or changed in two ways. */
static int two_machines(struct myri_cmd_options *o, struct diff *d)
{
    const struct myri_system *system;
    if (o->sets < 1 || o->sets > 2)
        return myri_cmd_wrong("diff takes two systems, or one with --set VALUE=N once or twice; there is %d of --set",
                              o->sets);
    int rc = myri_cmd_system(o, &system);
    for (int side = 0; side < 2 && rc == 0; side++) {
        struct myri_cmd_options mine = *o;
        struct myri_machine m;
        const char *set = o->sets == 2 ? o->set[side] : side ? o->set[0] : NULL;
        mine.sets = set != NULL;
        mine.set[0] = set;
        rc = myri_cmd_machine_for(&mine, system->machines, &m);
        snprintf(d->side[side].label, sizeof d->side[side].label, "%s", set ? set : "as it is");
        rc = rc ? rc : measure(&mine, system, &m, &d->side[side]);
    }
    return rc;
}

int myri_cmd_diff(struct myri_cmd_options *o)
{
    struct diff *d = calloc(1, sizeof *d);
    if (!d)
        return myri_cmd_no_memory(sizeof *d);
    int rc = o->other ? two_systems(o, d) : two_machines(o, d);
    if (rc == 0) {
        put_together(d);
        (o->json ? print_json : print)(d);
    }
    free(d);
    return rc;
}
