/* SPDX-License-Identifier: BSD-3-Clause
 *
 * instructions.c - how many instructions a single message of 8 or 512 bytes costs, its caller's included, counted one
 * by one: the program single-steps a copy of itself. Times never fail a test; this does, since it is the same on every
 * machine: how bytes are copied is not, as the C library and base/copy.c choose by the processor, so their instructions
 * are left out. The limits leave 5 % to the compiler.
 *
 * multi-instructions [--trace NAME]: prints the address of each instruction of that row (feed them to addr2line). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/fm/process.h"
#include "base/copy.h"
#include "endpoint/endpoint.h"
#include "multi/fm_check.h"
#include "runnel/am.h"
#include "runnel/fm.h"
#include "stream/stream.h"

#if defined(__x86_64__) && defined(__OPTIMIZE__) && !FM_SANITIZED
#define COUNTABLE 1
#define MARK()    __asm__ volatile("int3" : : : "memory")
#else
#define COUNTABLE 0
#define MARK()    ((void)0)
#endif

enum { WARM = 1000, MEDIUM_BYTES = 512, STREAM = 2, WHOLE = 3, MEDIUM = 4, ASK = 1, ANSWERED = 2 };

static rnl_endpoint *ends[2], *am_ends[2];
static eb_t bundle[2];
static ep_t am[2];
static unsigned long fm_handler;
static uint64_t sum;

static int on_stream(rnl_stream *s, unsigned peer, void *ctx)
{
    uint64_t v;
    (void)peer, (void)ctx;
    if (rnl_receive(s, &v, sizeof v) == 0)
        sum += v;
    return RNL_DONE;
}

static int on_medium(rnl_stream *s, unsigned peer, void *ctx)
{
    unsigned char bytes[MEDIUM_BYTES];
    (void)peer, (void)ctx;
    if (rnl_receive(s, bytes, sizeof bytes) == 0)
        sum += bytes[0];
    return RNL_DONE;
}

static int on_whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    uint64_t v = 0;
    (void)peer, (void)ctx;
    memcpy(&v, buf, n < sizeof v ? n : sizeof v);
    sum += v;
    return RNL_DONE;
}

static int on_fm(FM_stream *s, unsigned sender)
{
    uint64_t v;
    (void)sender;
    FM_receive(&v, s, sizeof v);
    sum += v;
    return FM_CONTINUE;
}

static void on_ask(void *token, int32_t x)
{
    (void)AM_Reply1(token, ANSWERED, x);
}

static void on_answered(void *token, int32_t x)
{
    (void)token;
    sum += (uint64_t)x;
}

/* ---- what is counted ---- */

static void send_native(void)
{
    uint64_t v = 5;
    (void)!rnl_send(ends[0], 1, WHOLE, &v, sizeof v);
}

static void send_stream(void)
{
    uint64_t v = 5;
    rnl_stream *s;
    struct rnl_message b = {.peer = 1, .handler = STREAM, .bound = sizeof v};
    if (rnl_begin(ends[0], &b, &s) == 0 && rnl_piece(s, &v, sizeof v) == 0)
        (void)!rnl_end(s);
}

static void send_medium(void)
{
    unsigned char bytes[MEDIUM_BYTES] = {5};
    rnl_stream *s;
    struct rnl_message b = {.peer = 1, .handler = MEDIUM, .bound = sizeof bytes};
    if (rnl_begin(ends[0], &b, &s) == 0 && rnl_piece(s, bytes, sizeof bytes) == 0)
        (void)!rnl_end(s);
}

static void send_medium_twice(void)
{
    send_medium();
    send_medium();
}

static void send_fm(void)
{
    uint64_t v = 5;
    FM_stream *s = FM_begin_message(1, sizeof v, fm_handler);
    FM_send_piece(s, &v, sizeof v);
    FM_end_message(s);
}

static void extract_native(void)
{
    (void)!rnl_extract(ends[1], ~0ul);
}

static void extract_fm(void)
{
    FM_extract(~0ul);
}

/* As if a thread served the endpoint; none is started. */
static void serve(void)
{
    if (ends[0]->fast.open == RNL_EP_OPEN)
        (void)!rnl_stream_serve_from_now(ends[0]);
}

static void send_served(void)
{
    serve();
    send_native();
}

static void send_stream_served(void)
{
    serve();
    send_stream();
}

static void send_medium_served(void)
{
    serve();
    send_medium();
}

static void extract_back(void)
{
    (void)!rnl_extract(ends[0], ~0ul);
}

static void send_back(void)
{
    uint64_t v = 5;
    (void)!rnl_send(ends[1], 0, WHOLE, &v, sizeof v);
}

static void ask_back(void)
{
    send_served();
    extract_native();
    send_back();
}

static void extract_some_back(void)
{
    serve();
    (void)!rnl_extract(ends[0], 64);
}

/* Short requests and replies of AM-2, on endpoints of their own: who asks looks for answers, which takes longer. */
static void am_request(void)
{
    (void)AM_Request1(am[0], 0, ASK, 5); /* and polls, in vain */
}

static void am_serve(void)
{
    (void)AM_Poll(bundle[1]);
}

static void am_collect(void)
{
    (void)AM_Poll(bundle[0]);
}

static void am_ask_and_serve(void)
{
    am_request();
    am_serve();
}

/* The row's call is counted between two marks; before it the other calls of one ping-pong have run. */
static const struct row {
    const char *name;
    void (*send)(void), (*extract)(void);
    int counts_extract, fm;
    long limit;
} rows[] = {
    {"native send", send_native, extract_native, 0, 0, 60},
    {"native begin, piece, end", send_stream, extract_native, 0, 0, 118},
    {"FM begin, piece, end", send_fm, extract_fm, 0, 1, 100},
    {"extract, whole handler", send_native, extract_native, 1, 0, 136},
    {"extract, stream handler, receive", send_stream, extract_native, 1, 0, 117},
    {"FM extract, handler, receive", send_fm, extract_fm, 1, 1, 115},
    {"512 bytes: begin, piece, end", send_medium, extract_native, 0, 0, 525},
    {"512 bytes: extract, stream handler, receive", send_medium, extract_native, 1, 0, 525},
    {"512 bytes, two: extract, stream handler, receive", send_medium_twice, extract_native, 1, 0, 864},
    {"extract that finds nothing", NULL, extract_native, 1, 0, 156},
    {"AM-2 request and a poll in vain", am_request, am_serve, 0, 0, 378},
    {"AM-2 poll, handler, reply", am_request, am_serve, 1, 0, 603},
    {"AM-2 poll, handler of a reply", am_ask_and_serve, am_collect, 1, 0, 421},
    {"AM-2 poll that finds nothing", NULL, am_collect, 1, 0, 137},
    {"native send, served", send_served, extract_native, 0, 0, 112}, /* the last ones: it is served from then on */
    {"native begin, piece, end, served", send_stream_served, extract_native, 0, 0, 320},
    {"512 bytes: begin, piece, end, served", send_medium_served, extract_native, 0, 0, 720},
    {"extract with a limit, whole handler, served", ask_back, extract_some_back, 1, 0, 178},
    {"extract with a limit that finds nothing, served", NULL, extract_some_back, 1, 0, 163},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- the traced copy ---- */

static void once(const struct row *r, int marked)
{
    rnl_fm_be(ends[0]);
    if (r->send) {
        if (marked && !r->counts_extract) {
            MARK();
            r->send();
            MARK();
        } else {
            r->send();
        }
    }
    rnl_fm_be(ends[1]);
    if (marked && r->counts_extract) {
        MARK();
        r->extract();
        MARK();
    } else {
        r->extract();
    }
    if (r->send == am_request) {
        am_collect();
        return;
    }
    send_back();
    extract_back();
}

/* How many pauses stand between two polls is chosen by the processor's vendor; the limits are for one. */
static void pause_once(struct rnl_endpoint *ep)
{
    ep->wait.pauses = ep->wait.pauses_for[RNL_NEAR] = ep->wait.pauses_for[RNL_FAR] = 1;
    ep->wait.fence_near = 0;
}

static int open_am(void)
{
    rnl_hub *hub;
    en_t name;
    if (AM_Init() != AM_OK || rnl_hub_new(2, &hub) < 0)
        return -1;
    for (unsigned i = 0; i < 2; i++) {
        struct rnl_options o = {.size = sizeof o, .hub = hub, .hub_rank = i};
        if (rnl_open(&am_ends[i], &o) < 0 || AM_AllocateBundleOn(am_ends[i], AM_SEQ, &bundle[i]) != AM_OK ||
            AM_AllocateEndpoint(bundle[i], &am[i], &name) != AM_OK || AM_SetTag(am[i], AM_ALL) != AM_OK ||
            AM_SetHandler(am[i], ASK, on_ask) != AM_OK || AM_SetHandler(am[i], ANSWERED, on_answered) != AM_OK ||
            AM_Map(am[i], 0, AM_NameOf((int)(1 - i), 0), AM_ALL) != AM_OK)
            return -1;
        pause_once(am_ends[i]);
    }
    return 0;
}

static int copy(void)
{
    rnl_hub *hub;
    if (rnl_hub_new(2, &hub) < 0)
        return 1;
    for (unsigned i = 0; i < 2; i++) {
        struct rnl_options o = {.size = sizeof o, .hub = hub, .hub_rank = i};
        if (rnl_open(&ends[i], &o) < 0)
            return 1;
        pause_once(ends[i]);
        rnl_fm_be(ends[i]);
        if (rnl_handler_stream(ends[i], STREAM, on_stream, NULL) < 0 ||
            rnl_handler_stream(ends[i], MEDIUM, on_medium, NULL) < 0 ||
            rnl_handler_whole(ends[i], WHOLE, on_whole, NULL, 0) < 0)
            return 1;
        fm_handler = FM_register_handler(FM_ANY_ID, on_fm);
    }
    if (open_am() < 0)
        return 1;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        return 77;
    raise(SIGSTOP);
    for (unsigned i = 0; i < ROWS; i++) {
        for (int k = 0; k < WARM; k++)
            once(&rows[i], 0);
        once(&rows[i], 1);
    }
    return 0;
}

/* ---- the counting parent ---- */

static int stopped_at_mark(pid_t pid, int status)
{
    (void)pid;
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

#if COUNTABLE
/* Where the code of the C library lies; the copy of us has it in the same place. */
static unsigned long long libc_from, libc_to;
static int find_libc(void)
{
    char line[512];
    FILE *f = fopen("/proc/self/maps", "r");
    if (!f)
        return -1;
    while (libc_to == 0 && fgets(line, sizeof line, f))
        if (strstr(line, " r-xp ") && strstr(line, "/libc") && sscanf(line, "%llx-%llx", &libc_from, &libc_to) != 2)
            libc_to = 0;
    fclose(f);
    return libc_to == 0 ? -1 : 0;
}

/* Is the instruction of a copy? *copies_above: where the stack stood when one of base/copy.c was called, or 0. */
static int is_copying(const struct user_regs_struct *regs, unsigned long long *copies_above)
{
    if (*copies_above && regs->rsp > *copies_above)
        *copies_above = 0;
    if (regs->rip == (uintptr_t)rnl_copy_in || regs->rip == (uintptr_t)rnl_copy_out)
        *copies_above = regs->rsp;
    return *copies_above || (regs->rip >= libc_from && regs->rip < libc_to);
}

/* From the first mark to the second: instructions that are not of a copy, or -1. */
static long count(pid_t pid, int trace)
{
    long found = 0;
    unsigned long long copies_above = 0;
    int status;
    struct user_regs_struct regs;
    if (ptrace(PTRACE_CONT, pid, NULL, NULL) < 0 || waitpid(pid, &status, 0) < 0 || !stopped_at_mark(pid, status))
        return -1;
    for (long n = 0; n < 100000; n++) {
        errno = 0;
        if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
            return -1;
        long code = ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)regs.rip, NULL);
        if (errno == 0 && (code & 0xff) == 0xcc) { /* int3: step over it */
            regs.rip++;
            return ptrace(PTRACE_SETREGS, pid, NULL, &regs) < 0 ? -1 : found;
        }
        found += !is_copying(&regs, &copies_above);
        if (trace)
            printf("0x%llx\n", (unsigned long long)regs.rip);
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0 || waitpid(pid, &status, 0) < 0 ||
            !stopped_at_mark(pid, status))
            return -1;
    }
    return -1;
}

int main(int argc, char **argv)
{
    const char *traced = argc > 2 && strcmp(argv[1], "--trace") == 0 ? argv[2] : "";
    int bad = 0, status;
    if (find_libc() < 0) {
        printf("# no C library in /proc/self/maps: its instructions cannot be told from ours\n");
        return 77;
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(copy());
    waitpid(pid, &status, 0); /* its SIGSTOP */
    for (unsigned i = 0; i < ROWS; i++) {
        long n = count(pid, strcmp(traced, rows[i].name) == 0);
        if (n < 0) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            printf("# cannot trace a child process here: no instruction was counted\n");
            return 77;
        }
        int good = n <= rows[i].limit;
        bad |= !good;
        if (!*traced)
            printf("%s - %s: %ld instructions, at most %ld\n", good ? "ok" : "not ok", rows[i].name, n, rows[i].limit);
    }
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    waitpid(pid, &status, 0);
    return bad;
}
#else
int main(void)
{
    (void)rows, (void)copy, (void)stopped_at_mark;
    printf("counts are of optimised x86-64 code without sanitizers\n");
    return 77;
}
#endif
