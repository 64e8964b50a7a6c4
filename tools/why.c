/* SPDX-License-Identifier: BSD-3-Clause
 *
 * why.c - `runnel why`: who waits for whom in a job, and who is the reason. It reads the pages of ranks on this host
 * a few times (base/counters.h), so they need not answer: they may hang, be stopped, or be in a debugger. What it says
 * follows from these looks alone. A job in which something moves is not accused of anything. */
#include "base/error.h"
#include "info.h"
#include "job_look.h"
#include "machine.h"
#include "runnel/runnel.h"
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

enum { OPTION_JSON = 256, OPTION_DOT, LOOKS = 11, LOOK_MS = 120, NAMED_MAX = 8 };

enum doing {
    ABSENT = 0, /* no process of this host has an endpoint of this rank */
    STOPPED,
    MOVES,    /* it sent or took something in between the looks */
    WAITS,    /* in one call that waits, all the time: wait_for says for what */
    POLLS,    /* it calls extract again and again, and finds nothing */
    COMPUTES, /* it runs, and calls nothing */
    OUTSIDE   /* it sleeps somewhere else */
};
static const char *const doing_word[] = {"absent", "stopped", "moves", "waits", "polls", "computes", "outside"};
static const char *const wait_word[] = {"nothing", "message", "room", "close", "operation", "time"};

struct rank {
    int pid;
    enum doing doing;
    uint64_t wait_for, since_ns, moved, ticks, yields;
    struct rnl_counters c; /* of the last look */
};

struct look {
    struct job_look ranks;
    int job;
    unsigned size;
    struct rank *rank;
    uint64_t now_ns;
    /* the verdict */
    const char *verdict;
    bool hangs;
    unsigned culprits, culprit[NAMED_MAX];
    char text[1200];
};

/* ---- looking ---- */

static uint64_t moved_of(const struct rnl_counters *c)
{
    return c->messages_sent + c->messages_received + c->bytes_sent + c->bytes_received + c->replies_sent +
           c->replies_received + c->handlers_resumed + c->connects + c->deaths;
}

/* Looks at one rank: the first look notes, later ones compare. What was seen to move stays that, whatever follows. */
static void look_at(struct rank *r, const struct job_rank *seen, bool first)
{
    const struct rnl_counters *c = &seen->page.core;
    const bool stopped = seen->state == 'T' || seen->state == 't';
    uint64_t moved = moved_of(c), ticks = seen->ticks;
    bool waits = c->wait_for && c->wait_for < sizeof wait_word / sizeof *wait_word;
    if (first)
        *r = (struct rank){.pid = seen->pid, .moved = moved, .ticks = ticks, .yields = c->yields, .doing = OUTSIDE};
    if (stopped)
        r->doing = STOPPED;
    else if (moved != r->moved || (r->doing == STOPPED && !first))
        r->doing = MOVES;
    else if (r->doing == MOVES || r->doing == POLLS)
        ;
    else if (waits)
        r->doing =
            r->doing == WAITS && c->wait_for != RNL_WAITS_TIME && r->since_ns != c->wait_since_ns ? POLLS : WAITS;
    else if (r->doing == WAITS &&
             r->wait_for !=
                 RNL_WAITS_TIME) /* between two sleeps of one wait, or past it: then something moves, or it polls */
        r->doing = c->wait_since_ns == r->since_ns ? WAITS : POLLS;
    else if (r->doing != WAITS && c->yields != r->yields)
        r->doing = POLLS;
    else if (r->doing != WAITS && (ticks != r->ticks || seen->state == 'R'))
        r->doing = COMPUTES;
    if (waits) {
        r->wait_for = c->wait_for;
        r->since_ns = c->wait_since_ns;
    }
    r->yields = c->yields;
    r->c = *c;
}

/* Returns the number of ranks; 0 = there are none; -1 = no memory. */
static int look_at_all(struct look *l, int pid)
{
    const uint64_t period_ns = LOOK_MS * UINT64_C(1000000);
    const int found = job_look_find(&l->ranks, pid);
    uint64_t begun_ns = bench_now_ns();
    l->job = l->ranks.job;
    l->size = l->ranks.size;
    if (found > 0)
        l->rank = calloc(l->size, sizeof *l->rank);
    for (unsigned i = 0; i < LOOKS && l->rank; i++) {
        if (i > 0) {
            /* A look at many ranks takes time itself, and so long each of them has gone on. */
            const uint64_t took_ns = bench_now_ns() - begun_ns;
            const struct timespec rest = {0, took_ns < period_ns ? (long)(period_ns - took_ns) : 0};
            nanosleep(&rest, NULL);
            begun_ns = bench_now_ns();
            (void)job_look_again(&l->ranks);
        }
        for (unsigned k = 0; k < l->size; k++) {
            if (l->ranks.rank[k].pid)
                look_at(&l->rank[k], &l->ranks.rank[k], i == 0);
            else
                l->rank[k] = (struct rank){.doing = ABSENT};
        }
    }
    l->now_ns = l->ranks.now_ns;
    return found > 0 && !l->rank ? -1 : found;
}

/* ---- who waits for whom ---- */

static bool blocked(const struct rank *r)
{
    return r->doing == WAITS || r->doing == POLLS;
}

/* The rank for whose room r waits; -1 = none. */
static int room_of(const struct look *l, const struct rank *r)
{
    bool waits = r->doing == WAITS && r->wait_for == RNL_WAITS_ROOM;
    return waits && r->c.waiting_for_rank && r->c.waiting_for_rank <= l->size ? (int)r->c.waiting_for_rank - 1 : -1;
}

/* The rank that has not completed a message whose handler is suspended at r; -1 = none. */
static int rest_of(const struct look *l, const struct rank *r)
{
    bool waits = r->pid && r->c.stacks_in_use > 0;
    return waits && r->c.suspended_rank && r->c.suspended_rank <= l->size ? (int)r->c.suspended_rank - 1 : -1;
}

static unsigned count(const struct look *l, enum doing doing)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->size; i++)
        n += l->rank[i].doing == doing;
    return n;
}

static unsigned count_waits(const struct look *l, uint64_t what)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->size; i++)
        n += l->rank[i].doing == WAITS && l->rank[i].wait_for == what;
    return n;
}

static void accuse(struct look *l, unsigned rank)
{
    if (l->culprits < NAMED_MAX)
        l->culprit[l->culprits] = rank;
    l->culprits++;
}

static void accuse_all(struct look *l, bool (*is)(const struct rank *))
{
    for (unsigned i = 0; i < l->size; i++)
        if (is(&l->rank[i]))
            accuse(l, i);
}

/* "rank 3", or "ranks 3, 5, 6 and 12 more". */
static const char *names(const struct look *l, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "rank%s", RNL_S(l->culprits));
    for (unsigned i = 0; i < l->culprits && i < NAMED_MAX && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s %u", i ? "," : "", l->culprit[i]);
    if (l->culprits > NAMED_MAX && n < room)
        (void)snprintf(text + n, room - n, " and %u more", l->culprits - NAMED_MAX);
    return text;
}

RNL_PRINTF(4, 5) static void conclude(struct look *l, const char *verdict, bool hangs, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->text, sizeof l->text, format, args);
    va_end(args);
    l->verdict = verdict;
    l->hangs = hangs;
}

/* ---- the verdicts, the surest first ---- */

static bool is_stopped(const struct rank *r)
{
    return r->doing == STOPPED;
}
static bool is_outside(const struct rank *r)
{
    return r->doing == OUTSIDE;
}
static bool is_computing(const struct rank *r)
{
    return r->doing == COMPUTES;
}
static bool is_absent(const struct rank *r)
{
    return r->doing == ABSENT;
}
static bool is_waiting_for_messages(const struct rank *r)
{
    return r->doing == POLLS ||
           (r->doing == WAITS && (r->wait_for == RNL_WAITS_MESSAGE || r->wait_for == RNL_WAITS_TIME));
}

static bool by_handler(struct look *l)
{
    for (unsigned i = 0; i < l->size; i++) {
        const struct rank *r = &l->rank[i];
        if (!r->pid || r->doing == MOVES || !r->c.missing_handler)
            continue;
        accuse(l, i);
        conclude(
            l, "handler", true,
            "rank %u has no handler of number %llu, for which a message of rank %llu waits there, and all later ones "
            "of that rank behind it. Register that number in rank %u (rnl_handler_stream, FM_register_handler), "
            "before the message can come; or the sender names the wrong number.",
            i, (unsigned long long)r->c.missing_handler - 1, (unsigned long long)r->c.missing_handler_rank - 1, i);
        return true;
    }
    return false;
}

/* Ranks that wait for room in a circle: each runs no handlers until the next one does. */
static bool by_cycle(struct look *l)
{
    for (unsigned i = 0; i < l->size; i++) {
        unsigned steps = 0;
        int at = (int)i;
        do
            at = room_of(l, &l->rank[at]);
        while (at >= 0 && at != (int)i && ++steps < l->size);
        if (at != (int)i)
            continue;
        char text[160];
        do {
            accuse(l, (unsigned)at);
            at = room_of(l, &l->rank[at]);
        } while (at != (int)i);
        conclude(
            l, "cycle", true,
            "%s wait for room in a circle, each at the next: none takes in what was sent to it while it waits. That "
            "is so with RNL_NO_RUN_IN_SEND, as in FM 1: leave that flag out, or extract before more is sent than the "
            "other takes in.",
            names(l, text, sizeof text));
        return true;
    }
    return false;
}

static bool by_unfinished(struct look *l)
{
    for (unsigned i = 0; i < l->size; i++) {
        int from = rest_of(l, &l->rank[i]);
        if (from < 0 || l->rank[i].doing == MOVES || l->rank[from].doing == MOVES ||
            !(blocked(&l->rank[from]) || l->rank[from].doing == ABSENT))
            continue;
        accuse(l, (unsigned)from);
        conclude(l, "unfinished", true,
                 "a handler of rank %u waits for the rest of a message that rank %d began and has not completed, while "
                 "rank %d is in another call. Send the missing pieces and end the message (rnl_end, FM_end_message) in "
                 "rank %d, or give it up (rnl_abort); or the handler asks for more than is sent.",
                 i, from, from, from);
        return true;
    }
    return false;
}

static const char *what_waits(const struct look *l)
{
    return count_waits(l, RNL_WAITS_CLOSE)  ? "the others close the job (rnl_close, FM_finalize) and wait for it"
           : count_waits(l, RNL_WAITS_ROOM) ? "others wait for room there"
                                            : "the others wait for messages";
}

static void judge(struct look *l)
{
    char text[160];
    unsigned moving = count(l, MOVES);
    if (count(l, STOPPED) && !moving) {
        accuse_all(l, is_stopped);
        conclude(
            l, "stopped", true,
            "%s %s stopped (SIGSTOP, Ctrl-Z or a debugger), and %s. Let it go on (kill -CONT PID), or end the job.",
            names(l, text, sizeof text), l->culprits == 1 ? "is" : "are", what_waits(l));
        return;
    }
    if (by_handler(l))
        return;
    if (moving) {
        conclude(l, "moves", false, "%u of %u ranks sent or took in messages during the look: the job moves.", moving,
                 l->size);
        return;
    }
    if (by_cycle(l))
        return;
    if (count(l, OUTSIDE)) {
        accuse_all(l, is_outside);
        conclude(l, "outside", true,
                 "%s sleep%s outside the library, in a call of the system (a read, a lock, a sleep), and %s. That is "
                 "no hang "
                 "if it comes back by itself; what it does there shows `gdb -p PID -batch -ex bt`.",
                 names(l, text, sizeof text), l->culprits == 1 ? "s" : "", what_waits(l));
        return;
    }
    if (count(l, COMPUTES)) {
        accuse_all(l, is_computing);
        conclude(l, "computes", false,
                 "%s compute%s and call%s nothing, and %s. That is no hang if it ends; if not, see where it loops with "
                 "`gdb -p PID -batch -ex bt`, or let it extract now and then.",
                 names(l, text, sizeof text), l->culprits == 1 ? "s" : "", l->culprits == 1 ? "s" : "", what_waits(l));
        return;
    }
    if (by_unfinished(l))
        return;
    unsigned closing = count_waits(l, RNL_WAITS_CLOSE), absent = count(l, ABSENT);
    if (closing && closing + absent < l->size) {
        accuse_all(l, is_waiting_for_messages);
        conclude(
            l, "unsent", true,
            "%s wait%s for messages while the others close the job: nobody is left who would send one. Either they "
            "closed too early, or a message is missing or was taken in before; each rank has to get to rnl_close "
            "(FM_finalize).",
            names(l, text, sizeof text), l->culprits == 1 ? "s" : "");
        return;
    }
    if (closing && absent) {
        accuse_all(l, is_absent);
        conclude(l, "absent", true,
                 "the others close the job, and %s %s no endpoint on this host: it has not opened one (rnl_open, "
                 "FM_initialize), or runs on another host, where `runnel why` has to be asked, too.",
                 names(l, text, sizeof text), l->culprits == 1 ? "has" : "have");
        return;
    }
    if (!closing && count_waits(l, RNL_WAITS_MESSAGE) + count(l, POLLS) + absent == l->size && l->size > absent) {
        accuse_all(l, is_waiting_for_messages);
        conclude(
            l, "silent", true,
            "all ranks that are here wait for messages, and none is on its way: whoever is to send the next one waits "
            "itself. Let one rank send before it waits; or they wait for something from outside, which is no hang.");
        return;
    }
    conclude(l, "none", false, "nothing that would never end was found: %u of %u ranks wait, none without an end.",
             count(l, WAITS) + count(l, POLLS), l->size);
}

/* ---- telling ---- */

static double seconds(uint64_t since_ns, uint64_t now_ns)
{
    return since_ns && since_ns < now_ns ? (double)(now_ns - since_ns) / 1e9 : 0;
}

static void tell_rank(const struct look *l, unsigned i)
{
    const struct rank *r = &l->rank[i];
    printf("  rank %-4u ", i);
    if (r->doing == ABSENT) {
        puts("has no endpoint on this host");
        return;
    }
    printf("process %d, %s", r->pid, doing_word[r->doing]);
    if (r->doing == WAITS || (r->doing == STOPPED && r->wait_for)) {
        printf(r->doing == WAITS ? " for " : " while it waits for ");
        if (r->wait_for == RNL_WAITS_ROOM && r->c.waiting_for_rank)
            printf("room at rank %llu", (unsigned long long)r->c.waiting_for_rank - 1);
        else
            fputs(r->wait_for == RNL_WAITS_CLOSE       ? "the close"
                  : r->wait_for == RNL_WAITS_OPERATION ? "a put, get, quiet or queued message"
                  : r->wait_for == RNL_WAITS_TIME      ? "a message, for a limited time"
                                                       : "a message",
                  stdout);
        printf(", %.1f s", seconds(r->since_ns, l->now_ns));
    }
    if (rest_of(l, r) >= 0)
        printf("; a handler waits for the rest of a message of rank %d", rest_of(l, r));
    if (r->c.missing_handler)
        printf("; a message waits for handler %llu", (unsigned long long)r->c.missing_handler - 1);
    putchar('\n');
}

static void tell(const struct look *l)
{
    printf("%s\n", l->text);
    for (unsigned i = 0; i < l->size; i++)
        tell_rank(l, i);
}

static void tell_json(const struct look *l)
{
    printf("{\"job\":%d,\"size\":%u,\"verdict\":\"%s\",\"hangs\":%s,\"culprits\":[", l->job, l->size, l->verdict,
           l->hangs ? "true" : "false");
    for (unsigned i = 0; i < l->culprits && i < NAMED_MAX; i++)
        printf("%s%u", i ? "," : "", l->culprit[i]);
    fputs("],\"text\":", stdout);
    info_put_json(l->text);
    fputs(",\"ranks\":[", stdout);
    for (unsigned i = 0; i < l->size; i++) {
        const struct rank *r = &l->rank[i];
        printf("%s{\"rank\":%u,\"pid\":%d,\"doing\":\"%s\",\"waits\":\"%s\",\"seconds\":%.1f,\"room_at\":%d,\"rest_"
               "of\":%d}",
               i ? "," : "", i, r->pid, doing_word[r->doing], r->pid ? wait_word[r->wait_for] : wait_word[0],
               r->wait_for ? seconds(r->since_ns, l->now_ns) : 0, room_of(l, r), r->pid ? rest_of(l, r) : -1);
    }
    puts("]}");
}

/* ---- the picture ---- */

static bool is_culprit(const struct look *l, unsigned rank)
{
    for (unsigned i = 0; i < l->culprits && i < NAMED_MAX; i++)
        if (l->culprit[i] == rank)
            return true;
    return false;
}

/* A line from each rank to whom it waits for. Who waits for a message or the close waits for the culprits, if it is
 * none. */
static void tell_arrows(const struct look *l, unsigned i)
{
    const struct rank *r = &l->rank[i];
    const int room = room_of(l, r), rest = rest_of(l, r);
    if (room >= 0)
        printf("  r%u -> r%d [label=\"room\"];\n", i, room);
    if (rest >= 0)
        printf("  r%u -> r%d [label=\"rest of a message\"];\n", i, rest);
    if (r->pid && r->c.missing_handler && r->c.missing_handler_rank && r->c.missing_handler_rank <= l->size)
        printf("  r%llu -> r%u [label=\"handler %llu\"];\n", (unsigned long long)r->c.missing_handler_rank - 1, i,
               (unsigned long long)r->c.missing_handler - 1);
    if (room >= 0 || rest >= 0 || !l->hangs || !blocked(r) || is_culprit(l, i))
        return;
    for (unsigned k = 0; k < l->culprits && k < NAMED_MAX; k++)
        printf("  r%u -> r%u [label=\"%s\", style=dashed];\n", i, l->culprit[k],
               r->doing == WAITS ? wait_word[r->wait_for] : "message");
}

/* For `dot -Tsvg`. Of a large job the ranks that move are left out. */
static void tell_dot(const struct look *l)
{
    enum { ALL_MOST = 64 };
    printf("digraph job {\n  label=\"job %d: %s\"; labelloc=t; node [shape=box, fontname=\"sans-serif\"];\n", l->job,
           l->verdict);
    for (unsigned i = 0; i < l->size; i++) {
        const struct rank *r = &l->rank[i];
        if (l->size > ALL_MOST && r->doing == MOVES)
            continue;
        printf("  r%u [label=\"rank %u\\n%s", i, i, doing_word[r->doing]);
        if (r->doing == WAITS)
            printf(" for %s\\n%.1f s", wait_word[r->wait_for], seconds(r->since_ns, l->now_ns));
        printf("\"%s];\n", is_culprit(l, i) ? ", color=red, penwidth=2" : "");
    }
    for (unsigned i = 0; i < l->size; i++)
        tell_arrows(l, i);
    puts("}");
}

/* ---- the command ---- */

struct question {
    int job, json, dot;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct question *q = state->input;
    char *end;
    switch (key) {
    case OPTION_JSON:
        q->json = 1;
        return 0;
    case OPTION_DOT:
        q->dot = 1;
        return 0;
    case ARGP_KEY_ARG: {
        long n = strtol(arg, &end, 10);
        if (q->job)
            argp_error(state, "'%s' is one argument too many", arg);
        if (*end != '\0' || end == arg || n <= 0 || n > INT_MAX)
            argp_error(state,
                       "JOB is the process of a runnel run, or of one of its ranks, not '%s'; runnel info lists them",
                       arg);
        q->job = (int)n;
        return 0;
    }
    case ARGP_KEY_END:
        if (!q->job)
            argp_error(state,
                       "which job? Give the process of its runnel run, or of one of its ranks; runnel info lists them");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int rnl_tool_why(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", OPTION_JSON, NULL, 0, "One JSON object", 0},
        {"dot", OPTION_DOT, NULL, 0, "A picture of who waits for whom, for dot -Tsvg (Graphviz)", 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "JOB",
        .doc = "Say why a job does not go on: who waits for whom, and who is the reason.",
        .children = rnl_tool_help,
    };
    struct question q = {0};
    struct look l = {0};
    argp_err_exit_status = EX_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &q) != 0)
        return EX_USAGE;
    const int found = look_at_all(&l, q.job);
    if (found <= 0) {
        fprintf(
            stderr,
            "runnel why: process %d has no rank with an endpoint that you may look into; runnel info lists the jobs "
            "of this host\n",
            q.job);
        job_look_free(&l.ranks);
        free(l.rank);
        return EX_UNAVAILABLE;
    }
    judge(&l);
    if (q.json)
        tell_json(&l);
    else if (q.dot)
        tell_dot(&l);
    else
        tell(&l);
    job_look_free(&l.ranks);
    free(l.rank);
    if (fflush(stdout) != 0)
        return EX_IOERR;
    return l.hangs;
}
