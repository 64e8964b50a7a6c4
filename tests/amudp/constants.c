/* SPDX-License-Identifier: BSD-3-Clause
 *
 * constants.c - what programs written for AMUDP 3.21 have compiled into them: each value, each size, each offset.
 * Compiled as C11 and as C++ by test_library.sh; it passes by compiling. */
#include <amudp.h>
#include <amudp_spmd.h>

#ifdef __cplusplus
#define IS(x, value) static_assert((x) == (value), #x)
#else
#define IS(x, value) _Static_assert((x) == (value), #x)
#endif

IS(sizeof(en_t), 16);
IS(sizeof(tag_t), 8);
IS(sizeof(handler_t), 1);
IS(sizeof(amudp_node_t), 4);
IS(sizeof(op_t), 4);
IS(sizeof(amx_tick_t), 8);
IS(sizeof(amudp_category_t), 4);
IS(sizeof(amudp_spawnfn_desc_t), 24);
IS(offsetof(amudp_spawnfn_desc_t, desc), 8);
IS(offsetof(amudp_spawnfn_desc_t, fnptr), 16);
IS(sizeof(amudp_stats_t), 320);
IS(offsetof(amudp_stats_t, RepliesSent), 24);
IS(offsetof(amudp_stats_t, RequestsRetransmitted), 48);
IS(offsetof(amudp_stats_t, RepliesRetransmitted), 72);
IS(offsetof(amudp_stats_t, RepliesSquashed), 96);
IS(offsetof(amudp_stats_t, RequestsReceived), 120);
IS(offsetof(amudp_stats_t, RepliesReceived), 144);
IS(offsetof(amudp_stats_t, ReturnedMessages), 168);
IS(offsetof(amudp_stats_t, OutOfOrderRequests), 176);
IS(offsetof(amudp_stats_t, OutOfOrderReplies), 184);
IS(offsetof(amudp_stats_t, RequestMinLatency), 192);
IS(offsetof(amudp_stats_t, RequestSumLatency), 208);
IS(offsetof(amudp_stats_t, RequestDataBytesSent), 216);
IS(offsetof(amudp_stats_t, ReplyTotalBytesSent), 288);
IS(offsetof(amudp_stats_t, TotalBytesSent), 312);

IS(AM_MaxShort(), 16);
IS(AM_MaxMedium(), 65000);
IS(AM_MaxLong(), 65000);
IS(AM_MaxNumHandlers(), 256);
IS(AMUDP_INIT_NUMTRANSLATIONS, 256);
IS(AMUDP_MAX_NUMTRANSLATIONS, 1048576u);
IS(AMUDP_MAX_SPMDPROCS, 1048576u);
IS(AMUDP_MAX_SEGLENGTH, (uintptr_t)-1);
IS(AMUDP_MAX_BUNDLES, 255);
IS(AMUDP_MAX_NETWORKDEPTH, 1024);
IS(AMUDP_MAX_RECVDEPTH, 65534);
IS(AM_ALL, 1);
IS(AM_NONE, 0);
IS(AM_NOEVENTS, 0);
IS(AM_NOTEMPTY, 1);
IS(AM_SEQ, 0);
IS(AM_PAR, 1);
IS(AM_OK, 0);
IS(AM_ERR_NOT_INIT, 1);
IS(AM_ERR_BAD_ARG, 2);
IS(AM_ERR_RESOURCE, 3);
IS(AM_ERR_NOT_SENT, 4);
IS(AM_ERR_IN_USE, 5);
IS(EBADARGS, 1);
IS(EBADENTRY, 2);
IS(EBADTAG, 3);
IS(EBADHANDLER, 4);
IS(EBADSEGOFF, 5);
IS(EBADLENGTH, 6);
IS(EBADENDPOINT, 7);
IS(ECONGESTION, 8);
IS(EUNREACHABLE, 9);
IS(EREPLYREJECTED, 10);
IS(AM_REQUEST_M, 1);
IS(AM_REQUEST_IM, 2);
IS(AM_REQUEST_XFER_M, 3);
IS(AM_REPLY_M, 4);
IS(AM_REPLY_IM, 5);
IS(AM_REPLY_XFER_M, 6);
IS(amudp_Short, 0);
IS(amudp_Medium, 1);
IS(amudp_Long, 2);
IS(amudp_NumCategories, 3);
IS(sizeof(AMUDP_LIBRARY_VERSION_STR), sizeof("3.21"));
#if AMX_DEBUG
#error "-DAMUDP_NDEBUG=1 means that AMX_DEBUG is none"
#endif

/* Each entry point has the type that clients call it by, each macro its own number of arguments. */
int constants_of_amudp(ep_t ep, void *token, va_list args);
int constants_of_amudp(ep_t ep, void *token, va_list args)
{
    int (*request)(ep_t, amudp_node_t, handler_t, int, ...) = AMUDP_Request;
    int (*request_i)(ep_t, amudp_node_t, handler_t, void *, size_t, int, va_list) = AMUDP_RequestIVA;
    int (*request_x)(ep_t, amudp_node_t, handler_t, void *, size_t, uintptr_t, int, int, ...) = AMUDP_RequestXfer;
    int (*reply_x)(void *, handler_t, void *, size_t, uintptr_t, int, va_list) = AMUDP_ReplyXferVA;
    int (*startup)(int *, char ***, int, int, amudp_spawnfn_t, uint64_t *, eb_t *, ep_t *) = AMUDP_SPMDStartup;
    int (*init)(void) = AM_Init;
    int n = 0;
    char buf[4];
    n += request(ep, 0, 1, 0) + request_i(ep, 0, 1, buf, 4, 0, args) + request_x(ep, 0, 1, buf, 4, 0, 0, 0);
    n += reply_x(token, 1, buf, 4, 0, 0, args) + (startup != NULL) + (init != NULL);
    n += AM_Request0(ep, 0, 1) + AM_Request3(ep, 0, 1, 1, 2.5, 'c');
    n += AM_RequestI2(ep, 0, 1, buf, 4, 1, 2) + AM_RequestXfer1(ep, 0, 8, 1, buf, 4, 1);
    n += AM_RequestXferAsync16(ep, 0, 8, 1, buf, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    n += AM_Reply1(token, 1, 1L) + AM_ReplyI0(token, 1, buf, 4) + AM_ReplyXfer2(token, 0, 1, buf, 4, 1, 2);
    return n;
}
