/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stats.c - counters of endpoints: reading, adding up, printing. Bytes are those of AMUDP's own format (header,
 * arguments, data), so that figures compare. What the network loses and sends again is counted below, in packets
 * (`runnel info`), and is no business of messages. */
#include "api/amudp/amudp_internal.h"

#include "endpoint/endpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WRONG(code, ...) rnl_amudp_fail(code, __func__, __VA_ARGS__)

const amudp_stats_t AMUDP_initial_stats = {.RequestMinLatency = UINT64_MAX};

int AMUDP_GetEndpointStatistics(ep_t ep, amudp_stats_t *stats)
{
    if (!ep || !stats)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint, or no place for its counters");
    int held = rnl_am_hold();
    *stats = ep->stats;
    rnl_am_let_go(held);
    return AM_OK;
}

int AMUDP_ResetEndpointStatistics(ep_t ep)
{
    if (!ep)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint");
    int held = rnl_am_hold();
    ep->stats = AMUDP_initial_stats;
    rnl_am_let_go(held);
    return AM_OK;
}

int AMUDP_AggregateStatistics(amudp_stats_t *sum, amudp_stats_t *more)
{
    if (!sum || !more)
        return WRONG(AM_ERR_BAD_ARG, "there are no counters");
    for (int c = 0; c < amudp_NumCategories; c++) {
        sum->RequestsSent[c] += more->RequestsSent[c];
        sum->RepliesSent[c] += more->RepliesSent[c];
        sum->RequestsRetransmitted[c] += more->RequestsRetransmitted[c];
        sum->RepliesRetransmitted[c] += more->RepliesRetransmitted[c];
        sum->RepliesSquashed[c] += more->RepliesSquashed[c];
        sum->RequestsReceived[c] += more->RequestsReceived[c];
        sum->RepliesReceived[c] += more->RepliesReceived[c];
        sum->RequestDataBytesSent[c] += more->RequestDataBytesSent[c];
        sum->ReplyDataBytesSent[c] += more->ReplyDataBytesSent[c];
        sum->RequestTotalBytesSent[c] += more->RequestTotalBytesSent[c];
        sum->ReplyTotalBytesSent[c] += more->ReplyTotalBytesSent[c];
    }
    sum->ReturnedMessages += more->ReturnedMessages;
    sum->OutOfOrderRequests += more->OutOfOrderRequests;
    sum->OutOfOrderReplies += more->OutOfOrderReplies;
    if (more->RequestMinLatency < sum->RequestMinLatency)
        sum->RequestMinLatency = more->RequestMinLatency;
    if (more->RequestMaxLatency > sum->RequestMaxLatency)
        sum->RequestMaxLatency = more->RequestMaxLatency;
    sum->RequestSumLatency += more->RequestSumLatency;
    sum->TotalBytesSent += more->TotalBytesSent;
    return AM_OK;
}

static uint64_t sum_of(const uint64_t *row)
{
    return row[amudp_Short] + row[amudp_Medium] + row[amudp_Long];
}

static void put_row(FILE *t, const char *name, const uint64_t *row)
{
    fprintf(t, " %-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n", name, row[amudp_Short],
            row[amudp_Medium], row[amudp_Long], sum_of(row));
}

const char *AMUDP_DumpStatistics(void *fp, amudp_stats_t *stats, int global)
{
    static char dump[4096];
    FILE *t = stats ? fmemopen(dump, sizeof dump, "w") : NULL;
    dump[0] = '\0';
    if (!t) {
        (void)WRONG(AM_ERR_BAD_ARG, "there are no counters, or no memory to print them");
        return dump;
    }
    fprintf(t, " %-24s %12s %12s %12s %12s\n", global ? "all processes" : "this process", "short", "medium", "long",
            "all");
    put_row(t, "requests sent", stats->RequestsSent);
    put_row(t, "requests received", stats->RequestsReceived);
    put_row(t, "replies sent", stats->RepliesSent);
    put_row(t, "replies received", stats->RepliesReceived);
    put_row(t, "requests sent again", stats->RequestsRetransmitted);
    put_row(t, "bytes in requests", stats->RequestDataBytesSent);
    put_row(t, "bytes in replies", stats->ReplyDataBytesSent);
    put_row(t, "... with headers", stats->RequestTotalBytesSent);
    put_row(t, "... with headers", stats->ReplyTotalBytesSent);
    fprintf(t, " %-24s %51" PRIu64 "\n", "returned messages", stats->ReturnedMessages);
    fprintf(t, " %-24s %51" PRIu64 "\n", "bytes sent", stats->TotalBytesSent);
    uint64_t replies = sum_of(stats->RepliesReceived);
    if (stats->RequestMinLatency <= stats->RequestMaxLatency)
        fprintf(t, " %-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n", "ns to a reply: least, mean, most",
                stats->RequestMinLatency, replies > 0 ? stats->RequestSumLatency / replies : 0,
                stats->RequestMaxLatency);
    if (global && sum_of(stats->RequestsSent) != sum_of(stats->RequestsReceived) + stats->ReturnedMessages)
        fprintf(t, " some requests are still on their way, or counters were read at different times\n");
    fclose(t);
    if (fp) {
        fputs(dump, fp);
        fflush(fp);
    }
    return dump;
}

/* ---- latency ----
 *
 * Round-trip times of requests, from the call to the handler of the reply, in nanoseconds. They are
 * measured only with LATENCY_STATS=1, since each request costs two readings of the clock then. A reply carries the
 * serial number of its request, under which the time of sending was noted, for the last NOTED requests to each rank.
 * Requests without a reply are not measured, and none where several bundles, or AM_PAR, make calls take a lock. */

enum { NOTED = 1024, SERIAL_BITS = 16 }; /* at most AMUDP_MAX_NETWORKDEPTH requests are unanswered */

struct rnl_amudp_latency {
    struct rnl_env *env;
    uint32_t ranks;
    uint64_t *sent[]; /* by rank, then by serial number % NOTED: time << SERIAL_BITS | serial; 0 = none */
};

static uint64_t now_ns(const struct rnl_amudp_latency *l)
{
    return l->env->ops->now_ns(l->env);
}

void rnl_amudp_latency_new(struct amudp_ep *ep)
{
    const rnl_endpoint *rank = rnl_am_get_rank(ep->bundle->core);
    ep->latency = NULL;
    if (rnl_amudp_env_long("LATENCY_STATS", 0, 1, 0) == 0)
        return;
    ep->latency = calloc(1, sizeof *ep->latency + rank->size * sizeof ep->latency->sent[0]);
    if (!ep->latency) /* without memory nothing is measured */
        return;
    ep->latency->env = rank->env;
    ep->latency->ranks = rank->size;
}

void rnl_amudp_latency_free(struct amudp_ep *ep)
{
    for (uint32_t i = 0; ep->latency && i < ep->latency->ranks; i++)
        free(ep->latency->sent[i]);
    free(ep->latency);
    ep->latency = NULL;
}

void rnl_amudp_latency_request(struct amudp_ep *ep, int dest, uint64_t since_ns)
{
    struct rnl_amudp_latency *l = ep->latency;
    uint32_t rank;
    uint16_t serial;
    if (!rnl_am_next_serial(ep->core, dest, &rank, &serial) || rank >= l->ranks)
        return;
    if (RNL_UNLIKELY(!l->sent[rank]) && !(l->sent[rank] = calloc(NOTED, sizeof *l->sent[rank])))
        return;
    l->sent[rank][serial % NOTED] = (since_ns != 0 ? since_ns : now_ns(l)) << SERIAL_BITS | serial;
}

void rnl_amudp_latency_reply(struct amudp_ep *ep, const void *token)
{
    struct rnl_amudp_latency *l = ep->latency;
    uint32_t rank;
    uint16_t serial = rnl_am_reply_serial(token, &rank);
    uint64_t *at = rank < l->ranks && l->sent[rank] ? &l->sent[rank][serial % NOTED] : NULL;
    if (!at || *at == 0 || (uint16_t)*at != serial)
        return;
    uint64_t took = ((now_ns(l) << SERIAL_BITS) - (*at - serial)) >> SERIAL_BITS;
    *at = 0;
    amudp_stats_t *s = &ep->stats;
    s->RequestSumLatency += took;
    if (took < s->RequestMinLatency)
        s->RequestMinLatency = took;
    if (took > s->RequestMaxLatency)
        s->RequestMaxLatency = took;
}
