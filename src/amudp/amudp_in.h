/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amudp_in.h - what the parts of AMUDP's interface share. It is a thin layer on am/: names that look like addresses of
 * the Internet, counters, callbacks, error reports and the start of a job; messages, tables and all promises are am/'s.
 *
 *   names.c      en_t: a core's name in the clothes of a sockaddr_in
 *   endpoint.c   bundles, endpoints, segments, tags
 *   table.c      translations, and who a message is from
 *   message.c    requests, replies, handlers, polling
 *   stats.c      counters and how they are printed; latency.c: how long answers take
 *   report.c     errors, fatal and other; the two places that print
 *   setting.c    variables of the environment, by prefix; the master's environment
 *   spmd.c       a worker's start, its questions, barrier and all-gather (tree.c), the end (exit.c)
 *   master.c     what the process that the user starts does; spawn.c: the three ways
 *   place.h      workers that a spawner started: place.c, stand_in.c
 *   door.h       ... how they come together: channel.c, door.c, porter.c, gather.c */
#ifndef RNL_AMUDP_IN_H
#define RNL_AMUDP_IN_H

#include "amudp/core.h"

#include "am/process.h"
#include "base/error.h"

enum { AMUDP_HEADER_BYTES = 24 }; /* what one of AMUDP's own headers has; TotalBytesSent counts it for each message */

struct amudp_entry {
    en_t name; /* as it was given */
    tag_t tag;
    uint8_t used;
};

struct amudp_eb {
    rnl_am_eb core;
    struct amudp_ep *first; /* its endpoints */
    struct amudp_eb *next;  /* of all bundles */
};

struct amudp_ep {
    rnl_am_ep core;
    struct amudp_eb *bundle;
    struct amudp_ep *next; /* of the bundle */
    struct amudp_entry *table;
    uint32_t entries;
    void (*returned)(int status, op_t opcode, void *token); /* its handler 0 */
    AMUDP_preHandlerCallback_t before;
    AMUDP_postHandlerCallback_t after;
    struct rnl_amudp_fault *fault;     /* NULL = messages are not delayed on purpose */
    struct rnl_amudp_latency *latency; /* NULL = it is not measured */
    amudp_stats_t stats;
};

/* It, its endpoints, and all of these but `core` are read and written with rnl_am_hold(), as handlers run. */
extern struct amudp_eb *rnl_amudp_bundles;

/* ---- names.c ---- */
en_t rnl_amudp_name(rnl_am_en core, uint32_t ranks);
/* 0, or -1: it is no name of ours. */
int rnl_amudp_core_name(en_t name, rnl_am_en *out);

/* ---- table.c ---- */
/* The index of an endpoint; -1: it stands in none. */
int rnl_amudp_index_of(const struct amudp_ep *ep, rnl_am_en from);

/* ---- message.c ---- */
/* For an endpoint that is new: counts and calls back around its handlers; its handler 0 is the default one. */
int rnl_amudp_watch(struct amudp_ep *ep);
/* The endpoint that a core's one belongs to; NULL. */
struct amudp_ep *rnl_amudp_endpoint(rnl_am_ep core);

/* ---- report.c ---- */
/* Returns `code`; prints what rnl_last_error() says with AMX_VerboseErrors. */
RNL_COLD int rnl_amudp_error(int code, const char *function);
/* The same for an error found in this layer: leaves the sentence, too. */
RNL_COLD int rnl_amudp_wrong(int code, const char *function, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns `code`. A job that does not start says why in any case: its program cannot ask yet. */
RNL_COLD int rnl_amudp_started(int code);
/* A line to standard error. The second: unless AMX_SilentMode. */
RNL_COLD void rnl_amudp_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
RNL_COLD void rnl_amudp_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Of a core's call: AMUDP has no AM_ERR_NOT_SENT. */
static inline int rnl_amudp_result(int code, const char *function)
{
    if (code == AM_OK)
        return AM_OK;
    return code == AM_ERR_NOT_SENT ? AM_ERR_IN_USE : rnl_amudp_error(code, function);
}

/* ---- setting.c ---- */
/* A number within bounds; what is none, or outside, is the default, and said. */
long rnl_amudp_setting(const char *name, long least, long most, long otherwise);
/* 0 and more, below 1; not set: 0. What is none is -1, and rnl_last_error() says so. */
double rnl_amudp_share(const char *name, const char *function);
/* The environment as it is now becomes the one that AMUDP_SPMDgetenvMaster reads; with `text`, that one does (strings,
 * each with its 0, and an empty one). 0 or -1. */
int rnl_amudp_keep_environment(const char *text, size_t bytes);

/* ---- latency.c ---- */
void rnl_amudp_latency_new(struct amudp_ep *ep);
void rnl_amudp_latency_free(struct amudp_ep *ep);
/* A request is about to be sent by that entry; since_ns: it was meant to be then, 0 = now. */
void rnl_amudp_latency_sends(struct amudp_ep *ep, int dest, uint64_t since_ns);
/* In the handler of a reply. */
void rnl_amudp_latency_answered(struct amudp_ep *ep, const void *token);

/* ---- fault.c ---- */
struct rnl_amudp_fault;
int rnl_amudp_fault_new(struct amudp_ep *ep);
/* What it holds back goes out now. A handler that calls this may come back before all has. */
void rnl_amudp_fault_flush(struct amudp_ep *ep);
void rnl_amudp_fault_free(struct amudp_ep *ep);
/* The rank is closed. */
void rnl_amudp_fault_end(void);

/* ---- spmd.c ---- */
extern struct rnl_amudp_spmd {
    int started; /* a worker that has joined */
    int rank, size;
    int wanted; /* AMUDP_SPMDSetProc; -1 = any */
    struct amudp_eb *bundle;
    struct amudp_ep *ep;   /* the program's */
    struct amudp_ep *tree; /* ours, for collectives and the end: number 1 in its process */
    int ends, code;        /* somebody ends the job */
    amudp_exitcallback_t callback;
    uint64_t job;
} rnl_amudp_spmd;

/* ---- tree.c ---- */
enum { /* handlers of the tree's endpoint */
       RNL_AMUDP_GATHER = 1,
       RNL_AMUDP_ENDS,
       RNL_AMUDP_DONE,
       RNL_AMUDP_GO,
       RNL_AMUDP_HEARD
};
int rnl_amudp_tree_new(struct amudp_eb *bundle);
int rnl_amudp_gather(const void *from, void *to, size_t len);

/* ---- exit.c ---- */
int rnl_amudp_exit_handlers(struct amudp_ep *tree);
/* A message for one of those handlers came back. */
void rnl_amudp_exit_returned(int handler);
/* After a poll, outside handlers: ends this process if somebody ended the job. */
void rnl_amudp_ended(void);

/* ---- master.c ---- */
/* Returns only if it fails: an AM_ERR_ code. */
int rnl_amudp_master(int *argc, char ***argv, int nproc, int depth, amudp_spawnfn_t spawn);
/* By its letter, of either case; NULL. */
amudp_spawnfn_t rnl_amudp_spawn_named(const char *text);
/* `runnel run` becomes this process (`stay` 0) or a child of it, whose number it returns: -1 = not, and said. */
int rnl_amudp_launch(int nproc, char **options, char **argv, int stay);

/* ---- stand_in.c ---- */
#define RNL_AMUDP_STAND_IN "AMUDP_STAND_IN"    /* where a worker that a spawner started finds its place */
#define RNL_AMUDP_WORKER   "AMUDP_WORKER_ARGS" /* the master's depth */
/* If a custom spawner started this worker: finds a stand-in and takes its place in the job. AM_OK or AM_ERR_RESOURCE.
 */
int rnl_amudp_take_place(void);
/* It is told how this process ends. */
void rnl_amudp_stand_in_told(int code);

#endif
