/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rts.h - what the files of the run-time system share. Everything of a rank runs in one thread: each Orca process is a
 * coroutine, and one scheduler runs them and takes messages in. Only the scheduler calls functions that may wait; an
 * Orca process that has to wait yields to it. */
#ifndef ORC_RTS_H
#define ORC_RTS_H

#include "orca_rts.h"

/* ---- value.c, marshal.c ---- */
void *orc_alloc(size_t n); /* zeroed; never NULL */
void *orc_realloc(void *p, size_t n);

struct orc_buffer {
    unsigned char *p;
    size_t n, room;
    unsigned char *lent; /* p is this at first, memory of the caller */
};
#define ORC_BUFFER_IN(bytes) ((struct orc_buffer){.p = (bytes), .room = sizeof(bytes), .lent = (bytes)})
void orc_buffer_free(struct orc_buffer *);
struct orc_reader {
    const unsigned char *p;
    size_t n;
    bool bad;   /* what was read was not what a peer would write; all later reads give zero */
    void *from; /* a message that may still be arriving; NULL: the bytes are at p */
    int (*take)(void *from, void *out, size_t n); /* negative: the rest never comes */
    bool cut;                                     /* so it was, and the reader is bad */
    /* Short pieces of a message are taken many at once: `held` of its bytes are at p, in memory of the caller. */
    unsigned char *window;
    size_t held;
};
enum { ORC_WINDOW = 512 };
void orc_put_bytes(struct orc_buffer *, const void *p, size_t n);
void orc_put_u32(struct orc_buffer *, uint32_t v);
void orc_put_u64(struct orc_buffer *, uint64_t v);
bool orc_get_bytes(struct orc_reader *, void *p, size_t n);
uint32_t orc_get_u32(struct orc_reader *);
uint64_t orc_get_u64(struct orc_reader *);
/* Values without objects, and objects by value: their fields. */
void orc_put_value(struct orc_buffer *, const struct orc_type *, const void *v);
/* v is zero bytes before, and a value after, also if the reader is bad then. */
void orc_get_value(struct orc_reader *, const struct orc_type *, void *v);

/* ---- process.c: coroutines ---- */

struct orc_thread {
    struct orc_thread *next; /* of the queue that it is in */
    const struct orc_process *process;
    uint32_t number;
    void **args;
    int cpu;
    bool waiting;
    void *context;             /* its stack and what was saved of it */
    struct orc_object *object; /* what it waited for last, to be told */
    uint32_t operation;
    orc_place at;
    struct orc_thread *all; /* of all that live */
};
struct orc_queue {
    struct orc_thread *first, **last;
};
extern struct orc_thread *orc_self; /* NULL: the scheduler */
extern int orc_in_operation;        /* depth of operations that run now; nothing may yield then */
extern uint64_t orc_running;        /* processes of this rank that have not ended */
/* Starts a process with arguments that become its own. */
struct orc_thread *orc_spawn(uint32_t process, void **args);
/* From a process: lets the others run until orc_wake of this thread. */
void orc_sleep(void);
void orc_wake(struct orc_thread *);
/* Runs what can be run; returns false if there was nothing. */
bool orc_run_some(void);
bool orc_is_idle(void);
/* From a process: lets the others run, once each. */
void orc_yield(void);
void orc_free_args(const struct orc_process *, void **args);
void orc_free_threads(void);
/* What is executed on this stack from here on has as much of it as a process has of its own. */
void orc_bound_stack(void);
void orc_each_thread(void (*f)(struct orc_thread *, void *arg), void *arg);

/* ---- object.c ---- */

/* A blocked invocation: run again when the object has changed. */
struct orc_blocked {
    struct orc_blocked *next;
    uint32_t operation;
    orc_place at;
    void **args;
    struct orc_thread *thread;                               /* who waits here; NULL: somebody elsewhere */
    void (*done)(struct orc_object *, struct orc_blocked *); /* after it was run for somebody elsewhere */
    uint32_t source, ticket;
    bool write_first;
    void *caller; /* of somebody elsewhere */
};
const struct orc_operation *orc_operation_of(const struct orc_class *, uint32_t number);
/* Runs alternatives; *wrote tells whether the object may have changed. */
int orc_try(struct orc_object *, uint32_t number, void **args, bool write_first, bool *wrote);
/* Runs blocked invocations until no guard is true. */
void orc_retry(struct orc_object *);
void orc_retain(struct orc_object *);
void orc_release(struct orc_object *);
void **orc_new_values(const struct orc_operation *);
void orc_free_values(const struct orc_operation *, void **args);
void orc_free_hidden(void);

enum orc_state {
    ORC_UNSHARED,   /* this rank has the only handle */
    ORC_REPLICATED, /* every rank that knows the object has its state */
    ORC_OWNER,      /* the single copy is here */
    ORC_REMOTE,     /* the single copy is at `owner` */
    ORC_TRANSIT     /* it moves: the state comes with a message that is on its way */
};
struct orc_shared {
    uint64_t id; /* 0: unshared */
    enum orc_state state;
    uint32_t owner;
    int64_t global_refs;
    bool fixed;     /* by Strategy */
    int64_t wish;   /* of Strategy, before it is shared: the owner, or -1 = everywhere */
    uint32_t moves; /* how often it has moved */
    struct orc_blocked *blocked, **last;
    uint64_t reads, writes; /* by this rank */
    uint64_t told_reads;    /* of a replica, those that the manager knows */
    double estimated_reads, estimated_writes;
    const char *why;
    char *name;                  /* what the first process that got it calls it */
    struct orc_placing *placing; /* of the manager */
    struct orc_object *next;     /* in the table of shared objects */
};
struct orc_shared *orc_shared_of(struct orc_object *); /* makes it */
/* Gives the object a name: what the first process that it is shared with calls it. Element `at` of an array, whose
 * bounds are d, is called by its index, too, as a number. */
void orc_call_it(struct orc_object *o, const struct orc_param *p, const struct orc_bound *d, uint32_t dims, size_t at);

/* ---- main.c ---- */

extern const struct orc_program *orc_program;
extern int orc_argc;
extern char **orc_argv;
const char *orc_file(orc_place at);
_Noreturn void orc_end(int status); /* flushes output and ends the process */
enum { ORC_PLACE_COMBINED, ORC_PLACE_STATIC, ORC_PLACE_DYNAMIC };
enum orc_saving { ORC_SAVES_SWITCHES, ORC_SAVES_LAYERS, ORC_SAVES_PIECES, ORC_SAVES_COPIES, ORC_SAVINGS };
struct orc_options {
    bool without[ORC_SAVINGS];
    int place;    /* 1: never replicate, 2: always, 0 or 3: decide */
    int conflict; /* ORC_PLACE_ */
    bool no_strategy, verbose;
    int turn_ns; /* that each turn of a loop takes more */
};
extern struct orc_options orc_options;
/* What each saving is to make less of; -v tells it in the end. */
struct orc_counts {
    uint64_t switches; /* to a process */
    uint64_t layered;  /* bodies of messages that were copied to or from a layer */
    uint64_t pieces;   /* into which values were cut, or of which they were made */
    uint64_t kept;     /* bytes that were copied before they were copied to where they belong */
};
extern struct orc_counts orc_counts;
extern int orc_cpus_wanted;
void orc_spend_turns(void); /* before what others see: process.c */
void orc_waits_for(struct orc_object *, const struct orc_blocked *);
_Noreturn void orc_deadlock(void); /* tells who waits for what; ends the program */
/* The operation blocks, and no other process can reach the object. */
_Noreturn void orc_alone(const struct orc_object *o, uint32_t operation, orc_place at);

/* ---- how objects are shared: local.c (one rank), cluster.c ---- */

struct orc_system {
    int (*ncpus)(void);
    int (*mycpu)(void);
    void (*fork)(uint32_t process, int64_t cpu, void **args, orc_place at);
    /* Invokes an operation of an object that is not ORC_UNSHARED, from a process. */
    void (*invoke)(struct orc_object *, uint32_t operation, void **args, orc_place at);
    void (*strategy)(struct orc_object *, int64_t replicate, int64_t cpu, orc_place at);
    void (*ended)(struct orc_thread *);
    void (*dropped)(struct orc_object *);        /* a use of the object here has ended, and it is still there */
    void (*handle_dropped)(struct orc_object *); /* a handle to a shared object goes */
    void (*poll)(void);
    int (*loop)(void); /* runs the program to its end */
};
extern const struct orc_system *orc_system;
extern const struct orc_system orc_local, orc_cluster;
void orc_choose_system(void);
void orc_leave_system(void); /* after all values were freed */

#endif
