/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace.c - `runnel paper trace`: where the time of one message goes; `profile`: which lines of firmware take it.
 */
#include "base/error.h"
#include "sim/myrinet/command/command.h"
#include "sim/myrinet/command/page.h"
#include "sim/myrinet/systems/added.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SPANS = 16384, LINES = 1000, FUNCTIONS = 64, NAMES = 256, NAME = 64 };
#define STARTED_PS ((uint64_t)1000000000) /* a card has been started long before the trace begins */
static const char *const lanes[MYRI_LANES] = {"host", "bus", "firmware", "host DMA", "send", "receive"};

struct span {
    uint64_t from, to, amount;
    uint32_t node;
    enum myri_hw_lane lane;
    const char *what;
};
struct spans {
    struct span span[SPANS];
    int n, lost;
    char name[NAMES][NAME]; /* what spans point to: the machine's own names end with it */
    int names;
};

static const char *kept(struct spans *s, const char *what)
{
    int i = 0;
    while (i < s->names && strncmp(s->name[i], what, NAME - 1) != 0)
        i++;
    if (i == NAMES)
        return "others";
    if (i == s->names)
        snprintf(s->name[s->names++], NAME, "%s", what);
    return s->name[i];
}

static void collect(void *arg, uint32_t node, enum myri_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                    uint64_t amount)
{
    struct spans *s = arg;
    if (to <= STARTED_PS || lane == MYRI_LANE_MEASURED)
        return;
    from = from < STARTED_PS ? 0 : from - STARTED_PS;
    to -= STARTED_PS;
    if (s->n == SPANS)
        s->lost++;
    else
        s->span[s->n++] = (struct span){from, to, amount, node, lane, kept(s, what)};
}

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static FILE *open_in(const char *dir, const char *name, const char *end)
{
    char path[512];
    FILE *f = NULL;
    if (mkdir(dir, 0777) == 0 || errno == EEXIST) {
        snprintf(path, sizeof path, "%s/%s.%s", dir, name, end);
        f = fopen(path, "w");
    }
    if (!f)
        myri_cmd_cannot("cannot write into", dir);
    else
        printf("written: %s\n", path);
    return f;
}

/* What viewers of Chrome's trace events read; their unit is a microsecond. */
static int write_events(const struct spans *s, const char *dir, const char *name)
{
    FILE *f = open_in(dir, name, "trace.json");
    if (!f)
        return 1;
    fputs("{\"traceEvents\": [", f);
    uint32_t nodes = 0;
    for (int i = 0; i < s->n; i++)
        if (s->span[i].node >= nodes)
            nodes = s->span[i].node + 1;
    for (uint32_t node = 0; node < nodes; node++) { /* what viewers call processes and threads are numbers with names */
        fprintf(f,
                "%s\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %u, \"tid\": 0, \"args\": {\"name\": \"node "
                "%u\"}}",
                node ? "," : "", node, node);
        for (int lane = 0; lane < MYRI_LANES; lane++)
            fprintf(f,
                    ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %u, \"tid\": %d, "
                    "\"args\": {\"name\": \"%s\"}},\n"
                    "{\"name\": \"thread_sort_index\", \"ph\": \"M\", \"pid\": %u, \"tid\": %d, "
                    "\"args\": {\"sort_index\": %d}}",
                    node, lane, lanes[lane], node, lane, lane);
    }
    for (int i = 0; i < s->n; i++) {
        const struct span *p = &s->span[i];
        fprintf(f,
                ",\n{\"name\": \"%s\", \"ph\": \"X\", \"pid\": %u, \"tid\": %d, \"ts\": %.6f, \"dur\": %.6f, "
                "\"args\": {\"bytes\": %" PRIu64 "}}",
                p->what, p->node, (int)p->lane, (double)p->from / 1e6, (double)(p->to - p->from) / 1e6, p->amount);
    }
    fputs("\n]}\n", f);
    return fclose(f) == 0 ? 0 : 1;
}

/* What the cards' programs spent their time on: each function's sum, in the order of their first time. */
struct spent {
    const char *what;
    uint64_t ps[2]; /* of nodes 0 and 1 */
};

static int waits(const char *what)
{
    return strcmp(what, "waits") == 0 || strcmp(what, "wait") == 0;
}

static int add_up_firmware(const struct spans *s, struct spent *out)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const struct span *p = &s->span[i];
        int k = 0;
        if (p->lane != MYRI_LANE_FIRMWARE || p->node > 1)
            continue;
        while (k < n && strcmp(out[k].what, p->what) != 0)
            k++;
        if (k == FUNCTIONS)
            continue;
        if (k == n)
            out[n++] = (struct spent){.what = p->what};
        out[k].ps[p->node] += p->to - p->from;
    }
    return n;
}

static const char *colour_of(const struct span *p, const struct spent *spent, int n)
{
    static const char *const lane[MYRI_LANES] = {"#4878a8", "#708090", "#c05840", "#60a060", "#a070b0", "#c09030"};
    static const char *const function[] = {"#c05840", "#8c2d04", "#e08214", "#5e3c99", "#1b7837", "#b2182b",
                                           "#01665e", "#c51b7d", "#35597f", "#7f6000", "#4d4d4d", "#e7698a"};
    enum { COLOURS = sizeof function / sizeof function[0] };
    if (p->lane != MYRI_LANE_FIRMWARE)
        return lane[p->lane];
    int k = 0, colour = 0;
    for (; k < n && strcmp(spent[k].what, p->what) != 0; k++)
        colour += !waits(spent[k].what);
    return waits(p->what) ? "#e4e4e4" : function[colour % COLOURS];
}

/* What was traced, in the words that stand above it in text and in pictures. */
struct heading {
    char text[256];
};

static struct heading heading_of(const struct myri_experiment *x)
{
    struct heading h;
    snprintf(h.text, sizeof h.text, "%s on %s, %s, %u message%s of %u bytes", x->system->title, x->machine.name,
             myri_measure_name(x->measure), x->count, x->count == 1 ? "" : "s", x->bytes);
    return h;
}

/* Time lines of two nodes below their title; below them what the colours of the firmware are, and what they come to. */
static void put_svg(FILE *f, const struct spans *s, const char *title, const char *outcome, uint64_t end)
{
    enum { LEFT = 110, WIDTH = 820, ROW = 34, LEGEND = 16, COLUMN = 310, TITLE = 26 };
    struct spent spent[FUNCTIONS];
    int functions = add_up_firmware(s, spent), below = ROW * 2 * MYRI_LANES + 70;
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' font-size='11'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n<text x='4' y='18' font-size='%d'>",
            LEFT + WIDTH + 20, TITLE + below + LEGEND * ((functions + 2) / 3 + 1) + 10,
            strlen(title) + strlen(outcome) > 120 ? 9 : 13);
    page_text(f, title);
    page_text(f, outcome);
    fprintf(f, "</text>\n<g transform='translate(0 %d)'>\n", TITLE);
    for (int row = 0; row < 2 * MYRI_LANES; row++)
        fprintf(f, "<text x='4' y='%d'>node %d %s</text><line x1='%d' x2='%d' y1='%d' y2='%d' stroke='#ddd'/>\n",
                30 + row * ROW, row / MYRI_LANES, lanes[row % MYRI_LANES], LEFT, LEFT + WIDTH, 40 + row * ROW,
                40 + row * ROW);
    double scale = (double)WIDTH / (double)(end ? end : 1);
    for (int i = 0; i < s->n; i++) {
        const struct span *p = &s->span[i];
        double x = LEFT + (double)p->from * scale, w = (double)(p->to - p->from) * scale;
        int y = 14 + (int)(p->node * MYRI_LANES + p->lane) * ROW;
        if (p->node > 1 || (p->lane != MYRI_LANE_FIRMWARE && waits(p->what)))
            continue;
        fprintf(f, "<rect x='%.2f' y='%d' width='%.2f' height='22' fill='%s'%s><title>", x, y, w < 0.5 ? 0.5 : w,
                colour_of(p, spent, functions), w < 2 ? "" : " stroke='white' stroke-width='0.5'");
        page_text(f, p->what);
        fprintf(f, ", %.3f us</title></rect>\n", (double)(p->to - p->from) / 1e6);
        if (w > 6.5 * (double)strlen(p->what)) {
            fprintf(f, "<text x='%.2f' y='%d' fill='%s'>", x + 3, y + 15, waits(p->what) ? "#555" : "white");
            page_text(f, p->what);
            fputs("</text>\n", f);
        }
    }
    for (int k = 0; k <= 10; k++)
        fprintf(f, "<text x='%d' text-anchor='%s' y='%d'>%.2f us</text>\n", LEFT + WIDTH * k / 10,
                k < 10 ? "middle" : "end", ROW * 2 * MYRI_LANES + 40, (double)end * k / 1e7);
    fprintf(f, "<text x='4' y='%d'>firmware, us of node 0 and of node 1:</text>\n", below);
    for (int k = 0; k < functions; k++) {
        const struct span as = {.lane = MYRI_LANE_FIRMWARE, .what = spent[k].what};
        int x = 4 + k % 3 * COLUMN, y = below + LEGEND * (k / 3 + 1);
        fprintf(f, "<rect x='%d' y='%d' width='10' height='10' fill='%s'/><text x='%d' y='%d'>%s: %.2f, %.2f</text>\n",
                x, y - 9, colour_of(&as, spent, functions), x + 15, y, spent[k].what, (double)spent[k].ps[0] / 1e6,
                (double)spent[k].ps[1] / 1e6);
    }
    fputs("</g>\n</svg>\n", f);
}

static int write_svg(const struct spans *s, const char *dir, const struct myri_experiment *x, const char *outcome,
                     uint64_t end)
{
    FILE *f = open_in(dir, x->system->name, "svg");
    if (f)
        put_svg(f, s, heading_of(x).text, outcome, end);
    return f && fclose(f) == 0 ? 0 : 1;
}

int myri_cmd_trace_svg(FILE *out, const struct myri_experiment *asked, uint64_t *took_ps)
{
    struct myri_experiment x = *asked;
    struct myri_outcome o;
    struct spans *s = calloc(1, sizeof *s);
    if (!s)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the spans of a trace");
    x.tracer = collect;
    x.tracer_arg = s;
    x.begin_ps = STARTED_PS;
    int rc = myri_experiment_run(&x, &o);
    if (rc == 0) {
        *took_ps = o.end_ps - STARTED_PS;
        qsort(s->span, (size_t)s->n, sizeof s->span[0], by_begin);
        char outcome[32];
        snprintf(outcome, sizeof outcome, ": %.3f us", (double)*took_ps / 1e6);
        put_svg(out, s, heading_of(&x).text, outcome, *took_ps);
    }
    free(s);
    return rc;
}

static int prepare(struct myri_cmd_options *o, struct myri_experiment *x, enum myri_measure m)
{
    const struct myri_system *system;
    struct myri_machine machine;
    int rc = myri_cmd_system(o, &system);
    rc = rc ? rc : myri_cmd_machine_for(o, system->machines, &machine);
    rc = rc ? rc : myri_cmd_measure(o, system, m, &m);
    if (rc)
        return rc;
    myri_experiment_init(x, system, &machine, m, o->bytes ? o->bytes : 4);
    myri_cmd_prepare(o, x);
    return 0;
}

static void print_spent(const struct spans *s)
{
    struct spent spent[FUNCTIONS];
    int n = add_up_firmware(s, spent);
    printf("\nThe cards' programs, in us: a function of the firmware, or what its stores to registers start; all else "
           "are\n"
           "turns of the loop that find nothing to do\n%9s %9s\n",
           "node 0", "node 1");
    for (int k = 0; k < n; k++)
        printf("%9.3f %9.3f  %s\n", (double)spent[k].ps[0] / 1e6, (double)spent[k].ps[1] / 1e6, spent[k].what);
}

static uint64_t last_end(const struct spans *s)
{
    uint64_t end = 0;
    for (int i = 0; i < s->n; i++)
        end = s->span[i].to > end ? s->span[i].to : end;
    return end;
}

static int trace(struct myri_cmd_options *o, struct spans *s)
{
    struct myri_experiment x;
    struct myri_outcome out;
    int rc = prepare(o, &x, MYRI_STREAM_RATE);
    if (rc)
        return rc;
    if (!o->count)
        x.count = 1;
    x.tracer = collect;
    x.tracer_arg = s;
    x.begin_ps = STARTED_PS;
    int failed = myri_experiment_run(&x, &out) < 0;
    if (failed && (s->n == 0 || rnl_last_error()->status != RNL_ERR_ABORTED))
        return myri_cmd_failed();
    qsort(s->span, (size_t)s->n, sizeof s->span[0], by_begin);
    uint64_t took_ps = failed ? last_end(s) : out.end_ps - STARTED_PS;
    int lacks = !failed && out.received < out.sent;
    char outcome[80];
    if (failed)
        snprintf(outcome, sizeof outcome, ", which failed; its error counts from %.0f us before the trace",
                 (double)STARTED_PS / 1e6);
    else if (lacks)
        snprintf(outcome, sizeof outcome, ", of which %u did not arrive, as is seen after %.3f us",
                 out.sent - out.received, (double)took_ps / 1e6);
    else
        snprintf(outcome, sizeof outcome, ": %.3f us", (double)took_ps / 1e6);
    printf("%s%s", heading_of(&x).text, outcome);
    printf("\n\n%9s %9s %9s  %-5s %-9s %s\n", "from us", "to us", "us", "node", "where", "what");
    for (int i = 0; i < s->n; i++) {
        const struct span *p = &s->span[i];
        printf("%9.3f %9.3f %9.3f  %-5u %-9s %s", (double)p->from / 1e6, (double)p->to / 1e6,
               (double)(p->to - p->from) / 1e6, p->node, lanes[p->lane], p->what);
        printf(p->amount ? ", %" PRIu64 " bytes\n" : "\n", p->amount);
    }
    if (s->lost)
        printf("... and %d more\n", s->lost);
    print_spent(s);
    if (o->plot)
        rc = write_events(s, o->plot, x.system->name) | write_svg(s, o->plot, &x, outcome, took_ps);
    fflush(stdout); /* what follows is about what stands above */
    if (failed)
        return myri_cmd_failed();
    if (lacks) {
        fprintf(stderr, "runnel paper: %u of %u messages did not arrive\n", out.sent - out.received, out.sent);
        return 1;
    }
    return rc;
}

int myri_cmd_trace(struct myri_cmd_options *o)
{
    struct spans *s = calloc(1, sizeof *s);
    int rc = s ? trace(o, s) : myri_cmd_no_memory(sizeof *s);
    free(s);
    return rc;
}

/* ---- profile ---- */

struct trace_line {
    char file[32], function[32];
    unsigned long number; /* 0: the compiler's own */
    uint64_t ps, executed;
};
struct profile {
    struct trace_line line[LINES];
    int lines;
    uint64_t all_ps;
    const char *table; /* of "ADDRESS LINE FILE FUNCTION", ascending */
};

static struct trace_line *line_of(struct profile *p, const char *file, size_t length, unsigned long number)
{
    for (int i = 0; i < p->lines; i++)
        if (p->line[i].number == number && strlen(p->line[i].file) == length &&
            strncmp(p->line[i].file, file, length) == 0)
            return &p->line[i];
    struct trace_line *l = &p->line[p->lines < LINES ? p->lines++ : LINES - 1];
    snprintf(l->file, sizeof l->file, "%.*s", (int)length, file);
    l->number = number;
    return l;
}

static void add_up(void *arg, const struct myri_hw *hw, const struct myri_side *sides)
{
    struct profile *p = arg;
    struct trace_line *l = line_of(p, "", 0, 0);
    unsigned long at = 0, next_at;
    const char *t = p->table;
    char *end;
    int more = 1;
    (void)sides;
    while (more) {
        next_at = strtoul(t, &end, 16);
        more = end != t;
        if (!more)
            next_at = hw->card[0].cpu.code_end;
        for (uint32_t i = 0; i < hw->nodes; i++)
            for (unsigned long a = at; a < next_at; a += 4) {
                l->ps += hw->card[i].cpu.took_ps[a / 4];
                l->executed += hw->card[i].cpu.executed[a / 4];
                p->all_ps += hw->card[i].cpu.took_ps[a / 4];
            }
        if (!more)
            break;
        unsigned long number = strtoul(end, &end, 10);
        const char *file = end + strspn(end, " "), *function = file + strcspn(file, " ");
        l = line_of(p, file, (size_t)(function - file), number);
        function += *function == ' ';
        t = function + strcspn(function, "\n");
        snprintf(l->function, sizeof l->function, "%.*s", (int)(t - function), function);
        at = next_at;
    }
}

static int by_line(const void *a, const void *b)
{
    const struct trace_line *x = a, *y = b;
    int order = strcmp(x->file, y->file);
    return order ? order : x->number < y->number ? -1 : x->number > y->number;
}

static int profile(struct myri_cmd_options *o, struct profile *p)
{
    struct myri_experiment x;
    struct myri_outcome out;
    int rc = prepare(o, &x, MYRI_ONE_WAY);
    if (rc)
        return rc;
    const struct myri_data *lines = myri_system_lines(x.system);
    if (!lines)
        return myri_cmd_wrong("there are no lines of %s", x.system->object);
    p->table = (const char *)lines->bytes;
    x.profile = 1;
    x.inspect = add_up;
    x.inspect_arg = p;
    if (myri_experiment_run(&x, &out) < 0)
        return myri_cmd_failed();
    double cycle_ps = 1e6 / x.machine.v[MYRI_M_ni_clock];
    const double per = out.sent ? (double)out.sent : 1; /* the probe sends none */
    printf("%s%s.c: cycles %s of %u bytes, idle turns that were added up left out\n\n",
           myri_system_is_added(x.system) ? "" : "sim/myrinet/", x.system->object,
           out.sent ? "per message" : "of a whole run, with transfers", x.bytes);
    printf("%-16s %5s  %-18s %12s %12s %6s\n", "file", "line", "function", "instructions", "cycles", "share");
    qsort(p->line, (size_t)p->lines, sizeof p->line[0], by_line);
    for (const struct trace_line *l = p->line; l < p->line + p->lines; l++)
        if (l->executed) { /* what the compiler cannot ascribe has line 0 */
            char number[24] = "-";
            if (l->number)
                snprintf(number, sizeof number, "%lu", l->number);
            printf("%-16s %5s  %-18s %12.1f %12.1f %5.1f%%\n", l->file, number, l->function, (double)l->executed / per,
                   (double)l->ps / cycle_ps / per, 100 * (double)l->ps / (double)p->all_ps);
        }
    return 0;
}

int myri_cmd_profile(struct myri_cmd_options *o)
{
    struct profile *p = calloc(1, sizeof *p);
    int rc = p ? profile(o, p) : myri_cmd_no_memory(sizeof *p);
    free(p);
    return rc;
}
