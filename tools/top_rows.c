/* SPDX-License-Identifier: BSD-3-Clause
 *
 * top_rows.c - what `runnel top` shows: rates from two looks at the pages of a job's ranks, sorted, as text of any
 * width and as JSON (top.h). */
#include "info.h"
#include "top.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const top_sort_word[TOP_SORTS] = {"rank", "sent", "received", "bytes", "cpu", "lost", "kept", "waits"};

/* ---- rates ---- */

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static void fill(struct top_row *out, const struct job_rank *r, const struct job_rank *b, double seconds,
                 uint64_t now_ns)
{
    static const struct rnl_counters none;
    const struct rnl_counters *c = &r->page.core, *o = &none;
    uint64_t ticks = 0;
    if (b && b->pid == r->pid && b->page.core.start_ns == c->start_ns) {
        o = &b->page.core;
        ticks = b->ticks;
    } else if (now_ns > c->start_ns) {
        seconds = (double)(now_ns - c->start_ns) / 1e9;
    }
    out->pid = r->pid;
    out->state = info_state_word(r->state);
    out->sent = rate(c->messages_sent + c->replies_sent, o->messages_sent + o->replies_sent, seconds);
    out->received =
        rate(c->messages_received + c->replies_received, o->messages_received + o->replies_received, seconds);
    out->out = rate(c->bytes_sent, o->bytes_sent, seconds);
    out->in = rate(c->bytes_received, o->bytes_received, seconds);
    out->cpu = 100 * rate(r->ticks, ticks, seconds) / (double)sysconf(_SC_CLK_TCK);
    out->lost = rate(c->packets_lost, o->packets_lost, seconds);
    out->kept = c->kept_bytes;
    out->queued = c->posts_queued;
    out->stacks = c->stacks_in_use;
    out->packets = c->packets_sent;
    out->all_lost = c->packets_lost;
    out->waits_at = -1;
    if (c->wait_for > RNL_WAITS_NOT && c->wait_for <= RNL_WAITS_TIME) {
        out->waits = c->wait_for;
        out->seconds = c->wait_since_ns && now_ns > c->wait_since_ns ? (double)(now_ns - c->wait_since_ns) / 1e9 : 0;
        if (c->wait_for == RNL_WAITS_ROOM && c->waiting_for_rank > 0 && c->waiting_for_rank <= c->size)
            out->waits_at = (int)c->waiting_for_rank - 1;
    }
}

static void add(struct top_row *sum, const struct top_row *r)
{
    sum->sent += r->sent;
    sum->received += r->received;
    sum->out += r->out;
    sum->in += r->in;
    sum->cpu += r->cpu;
    sum->lost += r->lost;
    sum->kept += r->kept;
    sum->queued += r->queued;
    sum->stacks += r->stacks;
    sum->packets += r->packets;
    sum->all_lost += r->all_lost;
}

static double key_of(const struct top_row *r, enum top_sort by)
{
    switch (by) {
    case TOP_SENT:
        return r->sent;
    case TOP_RECEIVED:
        return r->received;
    case TOP_BYTES:
        return r->out + r->in;
    case TOP_CPU:
        return r->cpu;
    case TOP_LOST:
        return r->lost;
    case TOP_KEPT:
        return (double)r->kept;
    case TOP_WAITS:
        return r->seconds;
    default:
        return -(double)r->rank;
    }
}

struct order {
    enum top_sort by;
    bool reverse;
};

/* The largest first; ranks that are not here last; equals by rank. */
static int compare(const void *a, const void *b, void *arg)
{
    const struct top_row *x = a, *y = b;
    const struct order *o = arg;
    const double p = key_of(x, o->by), q = key_of(y, o->by);
    if (!x->pid != !y->pid)
        return x->pid ? -1 : 1;
    if (p < q || p > q)
        return (p > q ? -1 : 1) * (o->reverse ? -1 : 1);
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

int top_table_make(const struct job_look *now, const struct job_rank *before, uint64_t before_ns, enum top_sort by,
                   bool reverse, struct top_table *out)
{
    struct order order = {.by = by, .reverse = reverse};
    *out = (struct top_table){.job = now->job, .size = now->size, .found = now->found};
    out->row = calloc(now->size, sizeof *out->row);
    if (!out->row)
        return -1;
    out->interval = before ? (double)(now->now_ns - before_ns) / 1e9 : 0;
    for (unsigned k = 0; k < now->size; k++) {
        const struct job_rank *r = &now->rank[k];
        struct top_row *row = &out->row[k];
        row->rank = k;
        row->state = "";
        row->waits_at = -1;
        if (!r->pid)
            continue;
        fill(row, r, before ? &before[k] : NULL, out->interval, now->now_ns);
        add(&out->total, row);
        out->waiting += row->waits != 0;
        out->stopped += strncmp(row->state, "stopped", 7) == 0;
        if (out->program[0] == '\0')
            info_program(&r->page.core, r->pid, out->program, sizeof out->program);
    }
    qsort_r(out->row, out->size, sizeof *out->row, compare, &order);
    return 0;
}

void top_table_free(struct top_table *t)
{
    free(t->row);
    t->row = NULL;
}

/* ---- text ---- */

const char *top_short(double n, char text[16])
{
    static const char unit[] = " kMGTP";
    unsigned u = 0;
    while (n >= 999.5 && u + 2 < sizeof unit) {
        n /= 1000;
        u++;
    }
    if (u == 0)
        snprintf(text, 16, n > 0 && n < 10 ? "%.1f" : "%.0f", n);
    else
        snprintf(text, 16, n < 9.995 ? "%.2f%c" : n < 99.95 ? "%.1f%c" : "%.0f%c", n, unit[u]);
    return text;
}

const char *top_waits(const struct top_row *r, char *text, size_t room)
{
    static const char *const word[] = {"", "message", "room", "close", "operation", "message"};
    text[0] = '\0';
    if (r->waits_at >= 0)
        snprintf(text, room, "room@%d %.0fs", r->waits_at, r->seconds);
    else if (r->waits)
        snprintf(text, room, "%s %.0fs", word[r->waits], r->seconds);
    return text;
}

/* The state in at most eight columns. */
static const char *state_of(const struct top_row *r)
{
    if (!r->pid)
        return "-";
    if (strncmp(r->state, "stopped", 7) == 0)
        return "stopped";
    if (strncmp(r->state, "waiting", 7) == 0)
        return "device";
    return r->state;
}

void top_put_head(const struct top_table *t, enum top_sort by, unsigned line, unsigned columns, char *out, size_t room)
{
    char s[16], r[16], o[16], i[16], l[16], text[256];
    const struct top_row *a = &t->total;
    if (line == 0)
        snprintf(text, sizeof text, "job %d, %.20s: %u of %u ranks here, %u wait, %u stopped; by %s", t->job,
                 t->program, t->found, t->size, t->waiting, t->stopped, top_sort_word[by]);
    else if (line == 1)
        snprintf(text, sizeof text, "all: %s sent/s, %s recv/s, %sB/s out, %sB/s in; lost %s/s, %.2f %%",
                 top_short(a->sent, s), top_short(a->received, r), top_short(a->out, o), top_short(a->in, i),
                 top_short(a->lost, l), a->packets ? 100.0 * (double)a->all_lost / (double)a->packets : 0);
    else
        snprintf(text, sizeof text, "%4s %7s %-8s %5s %5s %5s %5s %4s %4s %5s %4s %s", "RANK", "PID", "STATE", "SENT",
                 "RECV", "OUTB", "INB", "CPU%", "LOST", "KEPT", "SUSP", "WAITS FOR");
    snprintf(out, room, "%.*s", (int)columns, text);
}

void top_put_row(const struct top_table *t, const struct top_row *r, unsigned columns, char *out, size_t room)
{
    char s[16], c[16], o[16], i[16], l[16], k[16], waits[64], text[256];
    (void)t;
    if (!r->pid)
        snprintf(text, sizeof text, "%4u %7s %-8s has no endpoint on this host", r->rank, "-", "-");
    else
        snprintf(text, sizeof text, "%4u %7d %-8s %5s %5s %5s %5s %4.0f %4s %5s %4llu %s", r->rank, r->pid, state_of(r),
                 top_short(r->sent, s), top_short(r->received, c), top_short(r->out, o), top_short(r->in, i), r->cpu,
                 top_short(r->lost, l), top_short((double)r->kept, k), (unsigned long long)r->stacks,
                 top_waits(r, waits, sizeof waits));
    snprintf(out, room, "%.*s", (int)columns, text);
}

/* ---- JSON ---- */

static void json_rates(const struct top_row *r, FILE *to)
{
    fprintf(to,
            "\"sent_per_s\":%.1f,\"received_per_s\":%.1f,\"out_bytes_per_s\":%.0f,\"in_bytes_per_s\":%.0f,\"cpu_"
            "percent\":%.1f,"
            "\"lost_per_s\":%.1f,\"lost\":%llu,\"packets\":%llu,\"kept_bytes\":%llu,\"queued\":%llu,\"suspended\":%llu",
            r->sent, r->received, r->out, r->in, r->cpu, r->lost, (unsigned long long)r->all_lost,
            (unsigned long long)r->packets, (unsigned long long)r->kept, (unsigned long long)r->queued,
            (unsigned long long)r->stacks);
}

void top_put_json(const struct top_table *t, FILE *to)
{
    static const char *const word[] = {"nothing", "message", "room", "close", "operation", "time"};
    fprintf(to, "{\"job\":%d,\"size\":%u,\"found\":%u,\"waiting\":%u,\"stopped\":%u,\"interval_s\":%.3f,\"total\":{",
            t->job, t->size, t->found, t->waiting, t->stopped, t->interval);
    json_rates(&t->total, to);
    fputs("},\"ranks\":[", to);
    for (unsigned k = 0; k < t->size; k++) {
        const struct top_row *r = &t->row[k];
        fprintf(to, "%s{\"rank\":%u,\"pid\":%d,\"state\":\"%s\",", k ? "," : "", r->rank, r->pid, r->state);
        json_rates(r, to);
        fprintf(to, ",\"waits\":\"%s\",\"waits_at\":%d,\"seconds\":%.1f}", word[r->waits], r->waits_at, r->seconds);
    }
    fputs("]}\n", to);
}
