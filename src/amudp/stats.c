/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stats.c - counters of endpoints: reading, adding up, printing. Bytes are those of AMUDP's own format (header,
 * arguments, data), so that figures compare. What the network loses and sends again is counted below, in packets
 * (`runnel info`), and is no business of messages. */
#include "amudp/amudp_in.h"

#include <inttypes.h>
#include <stdio.h>

#define WRONG(code, ...) rnl_amudp_wrong(code, __func__, __VA_ARGS__)

const amudp_stats_t AMUDP_initial_stats = {.RequestMinLatency = UINT64_MAX};

int AMUDP_GetEndpointStatistics(ep_t ep, amudp_stats_t *stats)
{
    if (ep == NULL || stats == NULL)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint, or no place for its counters");
    int held = rnl_am_hold();
    *stats = ep->stats;
    rnl_am_let_go(held);
    return AM_OK;
}

int AMUDP_ResetEndpointStatistics(ep_t ep)
{
    if (ep == NULL)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint");
    int held = rnl_am_hold();
    ep->stats = AMUDP_initial_stats;
    rnl_am_let_go(held);
    return AM_OK;
}

int AMUDP_AggregateStatistics(amudp_stats_t *sum, amudp_stats_t *more)
{
    if (sum == NULL || more == NULL)
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

struct text {
    char *at;
    size_t room;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at, t->room, format, args);
    va_end(args);
    if (n > 0) {
        size_t m = (size_t)n < t->room ? (size_t)n : t->room - 1;
        t->at += m;
        t->room -= m;
    }
}

static uint64_t sum_of(const uint64_t *row)
{
    return row[amudp_Short] + row[amudp_Medium] + row[amudp_Long];
}

static void put_row(struct text *t, const char *name, const uint64_t *row)
{
    put(t, " %-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n", name, row[amudp_Short],
        row[amudp_Medium], row[amudp_Long], sum_of(row));
}

const char *AMUDP_DumpStatistics(void *fp, amudp_stats_t *stats, int global)
{
    static char dump[4096];
    struct text t = {dump, sizeof dump};
    dump[0] = '\0';
    if (stats == NULL) {
        (void)WRONG(AM_ERR_BAD_ARG, "there are no counters");
        return dump;
    }
    put(&t, " %-24s %12s %12s %12s %12s\n", global ? "all processes" : "this process", "short", "medium", "long",
        "all");
    put_row(&t, "requests sent", stats->RequestsSent);
    put_row(&t, "requests received", stats->RequestsReceived);
    put_row(&t, "replies sent", stats->RepliesSent);
    put_row(&t, "replies received", stats->RepliesReceived);
    put_row(&t, "requests sent again", stats->RequestsRetransmitted);
    put_row(&t, "bytes in requests", stats->RequestDataBytesSent);
    put_row(&t, "bytes in replies", stats->ReplyDataBytesSent);
    put_row(&t, "... with headers", stats->RequestTotalBytesSent);
    put_row(&t, "... with headers", stats->ReplyTotalBytesSent);
    put(&t, " %-24s %51" PRIu64 "\n", "returned messages", stats->ReturnedMessages);
    put(&t, " %-24s %51" PRIu64 "\n", "bytes sent", stats->TotalBytesSent);
    uint64_t replies = sum_of(stats->RepliesReceived);
    if (stats->RequestMinLatency <= stats->RequestMaxLatency)
        put(&t, " %-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n", "ns to a reply: least, mean, most",
            stats->RequestMinLatency, replies > 0 ? stats->RequestSumLatency / replies : 0, stats->RequestMaxLatency);
    if (global && sum_of(stats->RequestsSent) != sum_of(stats->RequestsReceived) + stats->ReturnedMessages)
        put(&t, " some requests are still on their way, or counters were read at different times\n");
    if (fp != NULL) {
        fputs(dump, fp);
        fflush(fp);
    }
    return dump;
}
