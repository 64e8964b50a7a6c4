/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster.h - the run-time system of a job of several ranks, on Panda (runnel/panda.h). An object that was passed to a
 * process has one copy, at its owner, which the others call, or one at each rank, which reads use where they are and
 * writes change by a message that all get in the same order. All ranks keep the same table of shared objects.
 *
 * Upcalls only put what came into a queue of events; they are executed afterwards, one by one. Group messages count as
 * they are executed. Requests and replies carry the count of their sender and wait until as many have been executed
 * here, so that what a process has seen is seen by all whom it calls, and programs are sequentially consistent. */
#ifndef ORC_CLUSTER_H
#define ORC_CLUSTER_H

#include "rts.h"
#include "runnel/panda.h"

/* Headers, in the byte order of the job; Panda's own part precedes each. A request:
 *
 *       0               8               16      20      24
 *       +---------------+---------------+-------+-------+------
 *       |   object      |  count        | kind  |  op   | IN arguments
 *       +---------------+---------------+-------+-------+------          */
enum orc_request_kind { ORC_REQUEST_INVOKE = 1, ORC_REQUEST_MOVE };
struct orc_request {
    uint64_t id, count;
    uint32_t kind, operation; /* MOVE: cpu + 1, or 0 = replicate */
};
/* Its reply:
 *
 *       0               8       12      16
 *       +---------------+-------+-------+------
 *       |  count        |status |   0   | OUT arguments, result
 *       +---------------+-------+-------+------                          */
enum orc_reply_status { ORC_REPLY_DONE = 1, ORC_REPLY_MOVED, ORC_REPLY_DEADLOCK };
struct orc_reply {
    uint64_t count;
    uint32_t status, zero;
};
/* A message to the group:
 *
 *       0               8       12      16      20      24
 *       +---------------+-------+-------+-------+-------+------
 *       |   object      |kind,op| ticket| reads | moves | body
 *       +---------------+-------+-------+-------+-------+------
 *
 * kind,op: the kind in the upper 8 bits. reads: what the sender has read of its replica since it last told. moves: how
 * often the object had moved when this was sent. */
enum orc_group_kind { ORC_GROUP_INVOKE = 1, ORC_GROUP_FORK, ORC_GROUP_EXIT, ORC_GROUP_MOVE };
/* A body that is too long for one message comes in parts, one after another. All but the last have this bit beside the
 * kind, and the length of the whole body in place of the object. Only the last is executed, and counts. */
enum { ORC_GROUP_MORE = 0x80, ORC_PART = (1 << 20) - 4096 };
struct orc_group {
    uint64_t id;
    uint32_t kind_operation, ticket, reads, moves;
};
_Static_assert(sizeof(struct orc_request) == 24 && sizeof(struct orc_reply) == 16 && sizeof(struct orc_group) == 24,
               "as drawn");

enum orc_event_kind { ORC_EVENT_GROUP, ORC_EVENT_REQUEST, ORC_EVENT_REPLY };
/* Something that came, and waits to be executed. */
struct orc_event {
    struct orc_event *next;
    enum orc_event_kind kind;
    uint32_t source;
    union {
        struct orc_group group;
        struct orc_request request;
        struct orc_reply reply;
    };
    pan_upcall_p upcall;        /* of a request */
    struct orc_pending *caller; /* of a reply */
    const struct orc_operation *operation;
    void **args; /* of the operation, taken in from the message; NULL: they are in `bytes` */
    bool taken;  /* a reply, likewise */
    size_t n;
    unsigned char bytes[];
};

/* An invocation of this rank that is under way; it lies on the stack of the process. */
struct orc_pending {
    struct orc_pending *next;
    uint32_t ticket;
    const struct orc_operation *operation;
    void **args;
    struct orc_thread *thread;
    orc_place at;
    bool done, again; /* again: the object has moved */
    bool deadlock;
};

/* ---- event.c ---- */

/* What a message is put into where layers are not collapsed. */
struct orc_layer {
    struct orc_buffer buffer;
    unsigned char small[256];
};
/* The body of a message, as it goes: NULL is none. */
pan_iovec_t orc_layer_out(struct orc_layer *l, const struct orc_buffer *body);
/* What an upcall makes of a message; NULL: its sender died before all of it had come, which ends the program. */
struct orc_event *orc_event_of_group(pan_msg_p msg, const void *proto);
struct orc_event *orc_event_of_request(pan_msg_p msg, const void *proto, pan_upcall_p upcall);
struct orc_event *orc_event_of_reply(pan_msg_p msg, const void *proto, struct orc_pending *caller);
void orc_event_free(struct orc_event *e);
void orc_events_free(void);

/* ---- cluster.c ---- */

extern uint64_t orc_count;     /* group messages that were executed here */
extern uint64_t orc_processes; /* that have not ended, in the whole program */
extern struct orc_pending *orc_pendings;
int orc_rank(void);
int orc_ranks(void);
/* From a process: lets messages come and others run until *flag. */
void orc_wait_until(const bool *flag);
/* Takes messages in and executes them; waits for some if `wait`. */
void orc_progress(bool wait);
void orc_send_group(enum orc_group_kind kind, uint32_t operation, uint64_t id, uint32_t ticket, uint32_t reads,
                    uint32_t moves, const struct orc_buffer *body);
/* Sends a message to the group as part of `p`, which ends when it has been executed here. */
void orc_pending_begin(struct orc_pending *p, void **args, orc_place at);
struct orc_pending *orc_pending_take(uint32_t ticket);
/* The upcall of a reply; arg is the struct orc_pending. */
void orc_replied_later(void *arg, int status, pan_msg_p msg, void *proto);
_Noreturn void orc_broken(uint32_t source);

/* ---- invoke.c ---- */

void orc_cluster_invoke(struct orc_object *o, uint32_t number, void **args, orc_place at);
void orc_group_invoked(struct orc_event *e);
void orc_request_invoked(struct orc_event *e, struct orc_object *o);
void orc_replied(struct orc_event *e);
/* Takes in from the message what it brings, straight into values. What the sender did not send whole is cut. */
void orc_get_in(struct orc_reader *r, uint32_t source, const struct orc_operation *op, void **args);
void orc_get_out(struct orc_reader *r, uint32_t source, const struct orc_operation *op, void **args);
void orc_send_reply(pan_upcall_p upcall, uint32_t status, const struct orc_buffer *body);
/* Ends what is blocked at the object because it moves: those of this rank call anew, callers are told to. */
void orc_flush_blocked(struct orc_object *o);
/* Reports a local deadlock if an operation is blocked at the object, which only one process can still reach. */
void orc_check_alone(struct orc_object *o);

/* ---- fork.c ---- */

void orc_cluster_fork(uint32_t process, int64_t cpu, void **args, orc_place at);
void orc_forked(struct orc_event *e);
void orc_handle_dropped(struct orc_object *o);
void orc_process_ended(struct orc_thread *t);
void orc_exited(struct orc_event *e);

/* ---- place.c ---- */

struct orc_object *orc_find(uint64_t id);
/* Puts an object into the table, which keeps a handle. */
void orc_table_add(struct orc_object *o, uint64_t id);
void orc_table_drop(struct orc_object *o);
void orc_table_free(void);
void orc_each_shared(void (*f)(struct orc_object *o, void *arg), void *arg);
/* Where an object is to be when it is passed to a process for the first time: its owner, or -1 for everywhere. */
int orc_first_place(struct orc_object *o, uint32_t cpu, const struct orc_param *p);
double orc_cost_call(void);
double orc_cost_multicast(void);
/* A call or a multicast that did not block took so long. */
void orc_cost_measured(bool multicast, double ns);
/* A process on that cpu is expected to use the object so. */
void orc_expect(struct orc_object *o, uint32_t cpu, const struct orc_param *p);
/* The manager saw an access by that cpu. */
void orc_account(struct orc_object *o, uint32_t cpu, uint32_t reads, uint32_t writes);
/* At the manager: moves the object if that is cheaper. */
void orc_decide(struct orc_object *o);
void orc_moved(struct orc_event *e);
void orc_request_moved(struct orc_event *e, struct orc_object *o);
/* Has `runnel info --pid` show the shared objects and who waits. */
void orc_show(void);
void orc_cluster_strategy(struct orc_object *o, int64_t replicate, int64_t cpu, orc_place at);

#endif
