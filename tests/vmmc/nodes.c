/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nodes.c - see nodes.h. Each node has a page of words, of which each other one writes 64 bytes. */
#include "nodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a node has told this one, and how often it has come to a meeting. */
enum channel { MEETING, STEP };
struct flags {
    uint32_t word[16]; /* of each channel two, the second is the count */
};
static struct flags *flags;          /* own, written by the others */
static unsigned char *theirs[NODES]; /* proxy addresses */
static uint32_t step[NODES], met;    /* how far this node has told each of the others that it is */
unsigned me;

void node_fail(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "node %u: %s; last error: %s\n", me, text, rnl_last_error()->text);
    exit(1);
}

static void begin(void)
{
    void *at, *proxy;
    IS(VMMC_Init(NULL), 0);
    me = VMMC_Node();
    CHECK(VMMC_Nodes() == NODES);
    IS(VMMC_Alloc(PAGE, &at), 0);
    flags = at;
    IS(VMMC_ExportRecvBuf(at, PAGE, FLAGS, NULL, NULL), 0);
    for (unsigned n = 0; n < NODES; n++) {
        if (n == me)
            continue;
        IS(VMMC_ImportRecvBuf(n, 0, FLAGS, &proxy, NULL, LONG_NS), 0);
        theirs[n] = proxy;
    }
}

void poll_once(void)
{
    IS(VMMC_Poll(), 0);
}

static void say(unsigned to, enum channel c, uint32_t n)
{
    uint32_t word[2] = {0, n};
    IS(VMMC_SendMsg(word, theirs[to] + sizeof(struct flags) * me + 8 * c, sizeof word), 0);
}

static void await(unsigned from, enum channel c, uint32_t n)
{
    while (__atomic_load_n(&flags[from].word[2 * c + 1], __ATOMIC_ACQUIRE) < n)
        poll_once();
}

void tell(unsigned to)
{
    say(to, STEP, ++step[to]);
}

void hear(unsigned from, uint32_t n)
{
    await(from, STEP, n);
}

void meet(void)
{
    met++;
    for (unsigned n = 0; n < NODES; n++)
        if (n != me)
            say(n, MEETING, met);
    for (unsigned n = 0; n < NODES; n++)
        if (n != me)
            await(n, MEETING, met);
}

void *pages(unsigned n)
{
    void *at = aligned_alloc(PAGE, (size_t)n * PAGE);
    CHECK(at);
    memset(at, 0, (size_t)n * PAGE);
    return at;
}

void until(const uint32_t *word, uint32_t value)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
        poll_once();
}

void fill(unsigned char *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

int filled(const unsigned char *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != (unsigned char)(i * 7 + i / 251 + seed))
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    for (const struct node_case *c = node_cases; argc == 2 && c->name; c++) {
        if (strcmp(argv[1], c->name) != 0)
            continue;
        IS(VMMC_Poll(), RNL_ERR_CLOSED);
        IS(VMMC_SendMsg(&c, &c, sizeof c), RNL_ERR_CLOSED);
        CHECK(!VMMC_Endpoint() && VMMC_Nodes() == 0);
        begin();
        c->run();
        if (c->meets)
            meet();
        IS(VMMC_Exit(), 0);
        IS(VMMC_Exit(), RNL_ERR_CLOSED);
        printf("%s: node %u ends well\n", argv[1], me);
        return 0;
    }
    fprintf(stderr, "there is no such case\n");
    return 2;
}
