/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.c - see report.h: table and JSON. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void bench_bytes_text(uint64_t bytes, char out[24])
{
    if (bytes && bytes % (1u << 20) == 0)
        snprintf(out, 24, "%lluM", (unsigned long long)(bytes >> 20));
    else if (bytes && bytes % 1024 == 0)
        snprintf(out, 24, "%lluK", (unsigned long long)(bytes >> 10));
    else
        snprintf(out, 24, "%llu", (unsigned long long)bytes);
}

int bench_bytes_parse(const char *text, uint64_t *bytes)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : 0;
    if (errno || end[shift != 0] || v > UINT64_MAX >> shift)
        return -EINVAL;
    *bytes = (uint64_t)v << shift;
    return 0;
}

static void json_number(FILE *f, const char *name, double v)
{
    if (isnan(v))
        fprintf(f, ",\"%s\":null", name);
    else
        fprintf(f, ",\"%s\":%.6g", name, v);
}

static void json_text(FILE *f, const char *name, const char *text)
{
    if (!text)
        return;
    fprintf(f, ",\"%s\":\"", name);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(f, "\\%c", *text);
        else
            fputc(*text >= ' ' && *text <= '~' ? *text : '?', f);
    fputc('"', f);
}

/* The tests whose single times are recorded. */
static bool has_tail(enum bench_test test)
{
    return bench_is_latency(test) || test == BENCH_PEERS || test == BENCH_WAKE_WAIT || test == BENCH_WAKE_POLL ||
           test == BENCH_BARRIER || test == BENCH_LOSS_TRIP;
}

void bench_report_json(FILE *f, const struct bench_row *row, size_t n)
{
    for (const struct bench_row *r = row; r < row + n; r++) {
        fprintf(f, "{\"test\":\"%s\",\"api\":\"%s\",\"transport\":\"%s\",\"bytes\":%llu", bench_test_name(r->test),
                bench_api_name(r->api),
                r->via   ? r->via
                : r->udp ? "udp"
                         : "shm",
                (unsigned long long)r->bytes);
        json_number(f, "value", r->value);
        fprintf(f, ",\"unit\":\"%s\"", bench_test_unit(r->test));
        json_number(f, "baseline", r->baseline);
        json_number(f, "ratio", r->ratio);
        fprintf(f, ",\"placement\":\"%s\",\"trials\":%zu", bench_placement_name(r->placement), r->trials);
        json_number(f, "probe_ns", r->probe_ns);
        if (r->tried)
            fprintf(f, ",\"tried\":%zu", r->tried);
        if (r->n)
            fprintf(f, ",\"n\":%u", r->n);
        if (has_tail(r->test)) {
            json_number(f, "p50", r->p50);
            json_number(f, "p999", r->p999);
        }
        if (bench_is_latency(r->test) || r->test == BENCH_RATE)
            json_number(f, "cpu_ns", r->cpu_ns);
        json_text(f, "data", r->data);
        json_text(f, "way", r->way[0] ? r->way : NULL);
        json_text(f, "peer", r->about);
        json_text(f, "error", r->lost);
        fputs("}\n", f);
    }
}

/* At most 6 characters, up to ten seconds in ns. */
static void figure(double v, char out[16])
{
    if (isnan(v))
        snprintf(out, 16, "-");
    else if (v >= 999999.5)
        snprintf(out, 16, v < 9.995e6 ? "%.2fe6" : v < 99.95e6 ? "%.1fe6" : "%.0fe6", v / 1e6);
    else
        snprintf(out, 16, v < 10 ? "%.2f" : v < 1000 ? "%.1f" : "%.0f", v);
}

static void table_row(FILE *f, const struct bench_row *r)
{
    char name[40], bytes[24] = "-", value[16], baseline[16], ratio[16], p999[16], cpu[16];
    if (r->n)
        snprintf(name, sizeof name, "%s %u", bench_test_name(r->test), r->n);
    else
        snprintf(name, sizeof name, "%s", bench_test_name(r->test));
    if (r->bytes)
        bench_bytes_text(r->bytes, bytes);
    if (r->data && !strcmp(r->data, "unchanged"))
        strcat(bytes, "=");
    if (r->trials == 0) {
        fprintf(f, "%-16s%-10s%5s%8s  %.*s%s\n", name, bench_api_name(r->api), bytes, "-", 35, r->lost,
                strlen(r->lost) > 35 ? "..." : "");
        return;
    }
    figure(r->value, value);
    figure(r->baseline, baseline);
    figure(r->ratio, ratio);
    figure(r->p999, p999);
    figure(r->cpu_ns, cpu);
    fprintf(f, "%-16s%-10s%5s%8s %-4s%9s%6s%7s%7s%7zu\n", name, bench_api_name(r->api), bytes, value,
            bench_test_unit(r->test), baseline, ratio, p999, cpu, r->trials);
}

void bench_report_table(FILE *f, const struct bench_row *row, size_t n)
{
    for (size_t i = 0; i < n;) {
        enum bench_placement placement = row[i].placement;
        size_t end = i, empty = 0;
        bool seen = false, unchanged = false;
        double probe = NAN;
        for (; end < n && row[end].placement == placement; end++) {
            seen |= row[end].trials > 0;
            if (isnan(probe))
                probe = row[end].probe_ns;
        }
        if (i)
            fputc('\n', f);
        if (!seen) {
            fprintf(f, "%s: not seen in this run\n", bench_placement_name(placement));
        } else {
            if (placement == BENCH_ONE_CORE)
                fprintf(f, "one core: both processes share a processor, so each wait is a yield\n");
            else
                fprintf(f, "%s: a cache line crosses in %.0f ns\n", bench_placement_name(placement), probe);
            fprintf(f, "%-16s%-10s%5s%8s %-4s%9s%6s%7s%7s%7s\n", "test", "api", "bytes", "value", "unit", "baseline",
                    "ratio", "p99.9", "cpu ns", "trials");
            for (; i < end; i++) {
                if (row[i].shown && (row[i].trials || row[i].lost)) {
                    table_row(f, &row[i]);
                    unchanged |= row[i].data && !strcmp(row[i].data, "unchanged");
                }
                empty += row[i].shown && !row[i].trials && !row[i].lost;
            }
            if (unchanged)
                fputs("=: the same bytes each time, which may stay in the receiver's cache\n", f);
            if (empty)
                fprintf(f, "%zu more rows were not seen undisturbed in this placement\n", empty);
        }
        i = end;
    }
}

/* A paragraph of at most 80 columns; a word that is longer is cut. */
static void paragraph(FILE *f, const char *name, const char *between, const char *text)
{
    int column = fprintf(f, "%s%s", name, between);
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column + 1 + n > 80)
            column = fprintf(f, "\n   ") - 1;
        if (n)
            column += fprintf(f, " %.*s", n > 76 ? 76 : n, text);
        text += n + (text[n] == ' ');
    }
    fputc('\n', f);
}

void bench_report_peers(FILE *f, const struct bench_plan *p)
{
    for (unsigned a = BENCH_OWN; a < BENCH_APIS; a++) {
        if (p->about[a][0])
            paragraph(f, bench_api_name(a), ":", p->about[a]);
        if (p->lost[a][0])
            paragraph(f, bench_api_name(a), " failed:", p->lost[a]);
    }
}
