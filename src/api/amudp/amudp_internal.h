/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amudp_internal.h - what the parts of AMUDP's interface share. It is a thin layer on am/: names that look like
 * addresses of the Internet, counters, callbacks, error reports and the start of a job. Messages, tables and all
 * guarantees are those of am/.
 *
 *   names.c      en_t: the name of a core endpoint, in the form of a sockaddr_in
 *   endpoint.c   bundles, endpoints, segments, tags
 *   table.c      translations, and who a message is from
 *   message.c    requests, replies, handlers, polling
 *   stats.c      counters, how long replies take, and how they are printed
 *   report.c     errors, fatal and other; the two places that print
 *   setting.c    variables of the environment, by prefix; the master's environment
 *   spmd.c       a worker's start, its questions, barrier and all-gather (tree.c), the end (exit.c)
 *   master.c     what the process that the user starts does; spawn.c: the three ways
 *   join.c       workers that a spawner started: they join the job by job/rendezvous.h */
#ifndef RNL_API_AMUDP_AMUDP_INTERNAL_H
#define RNL_API_AMUDP_AMUDP_INTERNAL_H

#include "api/amudp/core.h"

#include "api/am/process.h"
#include "base/error.h"

#include <sys/types.h>

/* The second name that AMUDP_COEXIST_WITH_AM gives to a function, for programs that also use another AM. */
#define AMUDP_ALSO(name, second) extern AMUDP_PUBLIC __typeof__(name) second __attribute__((alias(#name)))

enum { AMUDP_HEADER_BYTES = 24 }; /* of the original AMUDP, which TotalBytesSent counts for each message */

struct amudp_entry {
    en_t name; /* as the program gave it */
    tag_t tag;
    uint8_t used;
};

struct amudp_eb {
    rnl_am_eb core;
    struct amudp_ep *first; /* first of the bundle's endpoints */
    struct amudp_eb *next;  /* next of all bundles */
};

struct amudp_ep {
    rnl_am_ep core;
    struct amudp_eb *bundle;
    struct amudp_ep *next; /* next of the bundle's endpoints */
    struct amudp_entry *table;
    uint32_t entries;
    void (*returned)(int status, op_t opcode, void *token); /* the program's handler 0 */
    AMUDP_preHandlerCallback_t before;
    AMUDP_postHandlerCallback_t after;
    struct rnl_amudp_fault *fault;     /* NULL = no messages are delayed on purpose */
    struct rnl_amudp_latency *latency; /* NULL = latency is not measured */
    amudp_stats_t stats;
};

/* The list of all bundles. It, the endpoints, and all their fields but `core` are read and written under rnl_am_hold(),
 * as handlers are run. */
extern struct amudp_eb *rnl_amudp_bundles;

/* ---- names.c ---- */
en_t rnl_amudp_name(rnl_am_en core, uint32_t ranks);
/* Translates a name to the core's. Returns 0, or -1 if it is not a name that AMUDP gave. */
int rnl_amudp_core_name(en_t name, rnl_am_en *out);

/* ---- table.c ---- */
/* Tells who sent a message, to which endpoint (NULL: it was freed), and the sender's index in that endpoint's table, or
 * -1 if no entry names it. Returns a code of the core. */
int rnl_amudp_sender(void *token, rnl_am_en *from, const struct amudp_ep **ep, int *index);

/* ---- message.c ---- */
/* Installs the hooks of a new endpoint, which count and call back around its handlers, and the default handler 0. */
int rnl_amudp_hook(struct amudp_ep *ep);
/* Returns the endpoint that a core endpoint belongs to, or NULL. */
struct amudp_ep *rnl_amudp_endpoint(rnl_am_ep core);

/* ---- report.c ---- */
/* Returns `code`, and prints rnl_last_error() if AMX_VerboseErrors is set. */
RNL_COLD int rnl_amudp_error(int code, const char *function);
/* Does the same for an error found in this layer, after recording the sentence. */
RNL_COLD int rnl_amudp_fail(int code, const char *function, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns `code`. Prints why a job does not start even if AMX_VerboseErrors is not set, since the program cannot have
 * set it yet. */
RNL_COLD int rnl_amudp_start_status(int code);
/* Prints a line to standard error; a notice only unless AMX_SilentMode is set. */
RNL_COLD void rnl_amudp_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define rnl_amudp_print_notice(...) (AMX_SilentMode ? (void)0 : rnl_amudp_print(__VA_ARGS__))
/* Translates the result of a call of the core, since AMUDP has no AM_ERR_NOT_SENT. */
static inline int rnl_amudp_result(int code, const char *function)
{
    if (code == AM_OK)
        return AM_OK;
    return code == AM_ERR_NOT_SENT ? AM_ERR_IN_USE : rnl_amudp_error(code, function);
}

/* ---- setting.c ---- */
/* Returns the value of a setting, a number from `least` to `most`. Any other value is reported, and `otherwise` is
 * returned, as if the setting were not set. */
long rnl_amudp_env_long(const char *name, long least, long most, long otherwise);
/* Returns the value of a setting, a probability from 0 to below 1; 0 if it is not set. Returns -1, with a record in
 * rnl_last_error(), if it is something else. */
double rnl_amudp_env_probability(const char *name, const char *function);
/* Saves an environment for AMUDP_SPMDgetenvMaster: that in `text` (strings, each with its 0, and an empty one), or that
 * of this process if text is NULL. Returns 0, or -1 if there is no memory. */
int rnl_amudp_save_environment(const char *text, size_t bytes);

/* ---- stats.c ---- */
void rnl_amudp_latency_new(struct amudp_ep *ep);
void rnl_amudp_latency_free(struct amudp_ep *ep);
/* Notes that a request is about to be sent to entry `dest`. since_ns is when the program sent it; 0 = now. */
void rnl_amudp_latency_request(struct amudp_ep *ep, int dest, uint64_t since_ns);
/* Takes the time of a reply. To be called in its handler. */
void rnl_amudp_latency_reply(struct amudp_ep *ep, const void *token);

/* ---- fault.c ----
 *
 * AMUDP's fault injection, FAULT_RATE: that share of what goes to others is lost and has to be sent again.
 * Between ranks that exchange datagrams it is these that are lost, below all that sends them again; the master starts a
 * job with FAULT_RATE so that all do. What goes through shared memory all the same, and to oneself, has no packets to
 * lose: a request that is chosen is held back for as long as AMUDP would have waited before it sent
 * it again (REQUESTTIMEOUT_INITIAL, _BACKOFF, _MAX), and may then be chosen again. The loss of a reply looks the same
 * to who asked, so it is drawn with its request. */
struct rnl_amudp_request {
    int dest;
    amudp_category_t category;
    handler_t handler;
    uint8_t async;
    int numargs;
    size_t nbytes;
    uintptr_t dest_offset;
    const void *from;
    uint64_t since_ns; /* it was held back; 0 */
};

/* To the core. */
int rnl_amudp_send(struct amudp_ep *ep, const struct rnl_amudp_request *q, const int32_t *args);
/* Sends the request to the core now, or later if the endpoint's faults delay it. */
int rnl_amudp_fault_send(struct amudp_ep *ep, const struct rnl_amudp_request *q, const int32_t *args);
/* Sends what is due, of all endpoints, as a poll of one bundle takes in what comes for all. Returns ns until the next
 * is, -1 = none. */
int64_t rnl_amudp_fault_poll(void);
int rnl_amudp_fault_new(struct amudp_ep *ep);
/* Sends what is held back. In a handler it may return before all has been sent. */
void rnl_amudp_fault_flush(struct amudp_ep *ep);
void rnl_amudp_fault_free(struct amudp_ep *ep);
/* To be called when the rank is closed. */
void rnl_amudp_fault_end(void);

/* ---- spmd.c: a worker and its job ---- */
extern struct rnl_amudp_spmd {
    int started; /* this process is a worker that has joined */
    int rank, size;
    int wanted; /* rank asked for by AMUDP_SPMDSetProc; -1 = any */
    struct amudp_eb *bundle;
    struct amudp_ep *ep;   /* the program's endpoint */
    struct amudp_ep *tree; /* endpoint of collectives and of the end, number 1 in each process */
    int ends, code;        /* some worker ends the job; with which exit code */
    amudp_exitcallback_t callback;
    uint64_t job;
} rnl_amudp_spmd;

/* ---- tree.c ---- */
enum { /* handlers of the tree's endpoint */
       RNL_AMUDP_ALLGATHER = 1,
       RNL_AMUDP_END,
       RNL_AMUDP_DONE,
       RNL_AMUDP_GO,
       RNL_AMUDP_END_ACK
};
int rnl_amudp_tree_new(struct amudp_eb *bundle);
int rnl_amudp_allgather(const void *from, void *to, size_t len);

/* ---- exit.c ---- */
int rnl_amudp_exit_handlers(struct amudp_ep *tree);
/* Handles that a message for one of these handlers was returned. */
void rnl_amudp_exit_returned(int handler);
/* Ends this process if some worker has ended the job. To be called after a poll, outside handlers. */
void rnl_amudp_exit_if_ended(void);

/* ---- master.c ---- */
/* Runs the master. Returns an AM_ERR_ code if that fails, and not otherwise. */
int rnl_amudp_master(int *argc, char ***argv, int nproc, int depth, amudp_spawnfn_t spawn);
/* Returns the spawn function of a letter of either case, or NULL. */
amudp_spawnfn_t rnl_amudp_spawn_named(const char *text);
/* Executes `runnel run` in this process, or with `stay` in a child, whose number is returned. Returns -1 on failure,
 * which is recorded. */
int rnl_amudp_launch(int nproc, char **options, char **argv, int stay);
/* Finds a command. Returns 0, or -1 on failure, which is recorded. */
int rnl_amudp_find_tool(const char *name, char *path, size_t room);

/* ---- join.c ---- */
#define RNL_AMUDP_ROUTED "AMUDP_ROUTED"      /* 1 = the worker's output goes to the master */
#define RNL_AMUDP_WORKER "AMUDP_WORKER_ARGS" /* the master's depth */
/* Makes this process, which a custom spawner started, a worker of the job that RUNNEL_RENDEZVOUS leads to. Returns
 * AM_OK or AM_ERR_RESOURCE. */
int rnl_amudp_join(void);

/* ---- spawn.c ---- */
bool rnl_amudp_is_spawner(pid_t pid);

#endif
