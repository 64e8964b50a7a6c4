/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env.h - the seam to the world for everything between the interfaces and the system calls: time, random numbers,
 * sleeping, memory shared with peers of this host, and events about peers. Each endpoint has one table. The hub
 * (threads of one process), the launcher's agent and the simulator each fill it. The functions of the table never call
 * back into the library.
 *
 * Nothing else in ring/ to stream/ reads a clock, draws a random number, sleeps or makes a system call. */
#ifndef RNL_BASE_ENV_H
#define RNL_BASE_ENV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/copies.h"

struct rnl_env;
struct rnl_bell;
struct rnl_endpoint;
struct rnl_options;
struct rnl_transport;

enum rnl_distance { RNL_NEAR = 0, RNL_FAR = 1 };

/* Events that the agent or hub reports to an endpoint, reliably and in order. */
enum rnl_event_kind {
    RNL_EVENT_CONNECT = 1, /* the segment shared with peer `rank` is there: open it */
    RNL_EVENT_DEATH,       /* peer `rank` is dead, at least for this process; why and detail as enum rnl_death_reason */
    RNL_EVENT_CLOSE_REQUEST,     /* close: report when idle, quoting `wave` */
    RNL_EVENT_CLOSE_DONE,        /* close: every live rank was idle twice with no message in between */
    RNL_EVENT_JOB_GONE,          /* the agent or hub itself is gone */
    RNL_EVENT_RETURN,            /* after a DEATH of peer `rank`: another process, `incarnation`, is that rank now */
    RNL_EVENT_CONNECTION_REQUEST /* a process asks to become peer `rank`: rnl_meet_ops.request, .reply */
};
struct rnl_event {
    uint32_t kind, rank;
    uint64_t incarnation; /* of the process that is `rank` */
    uint64_t wave;
    int32_t why, detail;
};

enum { RNL_SEGMENT_HEAD = 8192 };

struct rnl_rank_address { /* where a rank of another host is found */
    uint64_t incarnation; /* 0 = unknown */
    uint8_t same_kernel;  /* 1 = its process has the kernel of this one, so no network card is on the path */
    uint32_t addr_bytes;
    unsigned char addr[60]; /* address, as the transport has it (struct rnl_addr) */
    /* Where peers are introduced: the key of this pair, which the env keeps until rnl_meet_ops.release, and the rank by
     * which the peer calls this process. NULL: the job's key, and the own rank. */
    const unsigned char *key;
    uint32_t as;
};
enum { RNL_ENV_KEY_BYTES = 32 };
enum { RNL_JOB_RANKS_MAX = 1024 }; /* of one job */

struct rnl_env_ops {
    uint32_t size; /* bytes of this table, which grows at the end */

    /* -- time and random numbers -- */
    uint64_t (*now_ns)(struct rnl_env *);
    uint64_t (*random)(struct rnl_env *);

    /* -- waiting -- */
    /* Gives the processor away after a progress call that found nothing. Returns for how many ns; the wait policy
     * adapts to it. */
    uint64_t (*yield)(struct rnl_env *);
    /* Sleeps while *word == expected, until wake is called, a signal handler ran, or deadline_ns passed. May return for
     * no reason. */
    void (*park)(struct rnl_env *, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);
    void (*wake)(struct rnl_env *, _Atomic uint32_t *word);
    /* Orders this process's earlier stores before its later loads as every process of the job sees them (membarrier).
     * Returns 0, or a negative rnl_status if the system cannot do so; senders then fence. */
    int (*heavy_fence)(struct rnl_env *);
    /* The two distance sensors, for slow paths only. *d is a connection's verdict and begins as 0: bit 0 (enum
     * rnl_distance) is read by the ring, the other bits belong to the sensors. sense_load loads *word with acquire and,
     * if the value differs from `last`, takes the time of the load as a sample. sense_fence is a timed fence, to be
     * called now and then after sending a single message. */
    uint64_t (*sense_load)(struct rnl_env *, const _Atomic uint64_t *word, uint64_t last, uint8_t *d);
    void (*sense_fence)(struct rnl_env *, uint8_t *d);

    /* -- memory shared with a peer of this host -- */
    /* Opens the segment that this process shares with `rank`. Both sides get the same segment: made on first use,
     * zeroed, of exactly `bytes`, and sealed against changing size where it is a file. Waits at most wait_ns for the
     * agent. Returns 0 with *segment >= 0; RNL_NO_ROOM: the agent has been asked and has not replied (an event says
     * when it has; then call again); or another negative rnl_status. */
    int (*segment_open)(struct rnl_env *, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment);
    /* Maps a page-aligned part of a segment, readable and (if `writable`) writable. The hub returns the same address to
     * both sides. What lies within the first RNL_SEGMENT_HEAD bytes of segments is mapped side by side, so that page
     * tables are shared. */
    int (*segment_map)(struct rnl_env *, int segment, size_t offset, size_t bytes, int writable, void **at);
    void (*segment_unmap)(struct rnl_env *, int segment, void *at, size_t bytes);
    /* Says that everything wanted of the segment is mapped. What mapping needs (a descriptor) is given back, and the
     * agent forgets the segment once both sides have settled. It cannot be opened again. */
    void (*segment_mapped)(struct rnl_env *, int segment);
    /* Ends the use of a segment. One that was not settled may be opened again. */
    void (*segment_close)(struct rnl_env *, int segment);

    /* -- events -- */
    /* Stores the next event in *out and returns 1, or returns 0 if there is none. Call it when *event_seq changed,
     * after sleeping, and now and then when polling. */
    int (*event)(struct rnl_env *, struct rnl_event *out);
    /* Reports that this rank is in close and idle: nothing to send, nothing suspended, all bytes read. `activity`
     * counts the messages sent and handled. */
    int (*close_report)(struct rnl_env *, uint64_t wave, uint64_t activity);

    /* Says that peer `rank` broke the protocol (why is RNL_DEATH_BROKEN): it is dead for this process, and is informed
     * (its reason is RNL_DEATH_DISCONNECTED). Returns 0; RNL_NO_ROOM: call again later; or RNL_ERR_JOB. */
    int (*disconnect)(struct rnl_env *, uint32_t rank, int why);

    /* -- event loops -- */
    int (*fd)(struct rnl_env *);        /* own descriptor, made on first use; or a negative rnl_status */
    void (*fd_drain)(struct rnl_env *); /* ends the readability that fd_raise caused */
    /* From time `ns` on the own descriptor is readable without being raised; until then, and always with UINT64_MAX, it
     * is not. */
    void (*fd_until)(struct rnl_env *, uint64_t ns);
    /* Makes the descriptor of `rank` (or the own one) readable; a rank has one if it is armed with RNL_ARMED_FD. */
    void (*fd_raise)(struct rnl_env *, uint32_t rank);

    void (*close)(struct rnl_env *); /* leaves the job and frees the env */

    /* -- peers of other hosts; only if env->datagrams -- */
    /* Returns 1 if rank is on another host, with its address at *out, and 0 if it is on this one. Only an
     * RNL_EVENT_RETURN changes the answer. */
    int (*rank_address)(struct rnl_env *, uint32_t rank, struct rnl_rank_address *out);
    /* Liveness attestation: returns when somebody who knows last stated that the process of `rank` lives, runs, and can
     * be reached in both directions, on the clock of now_ns; 0 = never. A process that only computes is thus not
     * declared dead for its silence. NULL = nobody knows. */
    uint64_t (*liveness)(struct rnl_env *, uint32_t rank);
    /* Returns whether somebody who would have told of the end of the process of `rank` is gone, so that nobody does: it
     * is probed while it is idle, too. NULL = no rank is so. */
    bool (*is_unwatched)(struct rnl_env *, uint32_t rank);
    /* Sleeps until `fd` or the own descriptor is readable, a signal handler ran, or deadline_ns passed. Returns 1 if
     * one is readable; may return 0 for no reason. NULL = whatever fills the rings of `datagrams` also rings the own
     * bell. */
    int (*park_on)(struct rnl_env *, int fd, uint64_t deadline_ns);
    /* Makes the own descriptor readable when `fd` is, from now on. Returns 0 or RNL_ERR_SYSTEM. */
    int (*fd_watch)(struct rnl_env *, int fd);
    /* Returns 1 if `rank`, on another host, has an n-th alternate address (0, 1, ...), stored in *out; 0 = it has no
     * more. Packets go there when they no longer arrive at the one of `rank_address`. NULL = no rank has alternate
     * addresses. */
    int (*alternate_address)(struct rnl_env *, uint32_t rank, unsigned n, struct rnl_rank_address *out);
    /* Returns the process of `rank`, on this host, as this process would call it; 0 = unknown, or in another pid
     * namespace. NULL = no process is known. */
    int32_t (*pid_of)(struct rnl_env *, uint32_t rank);
    /* Returns the number of the host of `rank`, which may be the own one: ranks with equal numbers share memory, others
     * never do, and every rank of the job gets the same number. NULL = hosts have no such numbers. */
    uint32_t (*host_of)(struct rnl_env *, uint32_t rank);
    /* Shows these lines to whoever asks for the state of this process (base/notes.h), in place of those of the last
     * call. NULL = nobody can ask. */
    void (*show)(struct rnl_env *, const char *lines, size_t bytes);
    /* Tells whoever started this process that `handler` has overrun its stack, which ends the process now. Called in a
     * signal handler. NULL = nobody is there who could say it. */
    void (*overran)(struct rnl_env *, uint32_t handler, uint32_t stack_bytes);
};

/* Introductions (runnel/meet.h), of an env whose peers come and go. No function waits; what comes of it are events. */
struct rnl_admit;
struct rnl_cred;
struct rnl_meet_ops {
    /* Offers a service, and asks again: 1 = it is offered, 0 = the daemon has not answered, or a negative status, with
     * which the offer is forgotten. */
    int (*serve)(struct rnl_env *, const char *service, const struct rnl_admit *who,
                 int (*f)(void *ctx, unsigned peer, const struct rnl_cred *), void *ctx);
    int (*served)(struct rnl_env *, const char *service);
    int (*unserve)(struct rnl_env *, const char *service);
    /* Begin an introduction and give it a rank. quiet: its failure is told by `met` and not by the event of a death. */
    int (*reach)(struct rnl_env *, const char *service, bool quiet, uint32_t *rank);
    int (*introduce)(struct rnl_env *, int socket, bool offers, const struct rnl_admit *who, bool quiet,
                     uint32_t *rank);
    int (*insert)(struct rnl_env *, const char *address, uint32_t *rank);
    int (*address)(struct rnl_env *, const struct rnl_admit *who,
                   int (*f)(void *ctx, unsigned peer, const struct rnl_cred *), void *ctx, char *buf, size_t n);
    /* For a peer of another host that `by`, the env of a job, knows as its rank `of`. `reserve` gives it a rank here,
     * and tells at which port datagrams come in. Both sides tell each other these and 16 random bytes, and then `vouch`
     * makes it a peer: where the job finds it, but at its port; it calls this process `as`. The key of the pair comes
     * from the job's and from the random bytes, and who attests the job's rank attests this peer, too. `by` stays until
     * the peer is left. */
    int (*reserve)(struct rnl_env *, struct rnl_env *by, uint32_t of, uint32_t *rank, uint32_t *port);
    int (*vouch)(struct rnl_env *, uint32_t rank, uint32_t port, uint32_t as, const unsigned char mine[16],
                 const unsigned char its[16]);
    /* 1 = introduced; 0 = not yet; or why it has failed. */
    int (*met)(struct rnl_env *, uint32_t rank);
    /* After RNL_EVENT_CONNECTION_REQUEST: returns 1 with who requests and whom to ask; 0 = nobody any more. `reply`
     * follows. */
    int (*request)(struct rnl_env *, uint32_t rank, struct rnl_cred *,
                   int (**f)(void *ctx, unsigned peer, const struct rnl_cred *), void **ctx);
    void (*reply)(struct rnl_env *, uint32_t rank, bool welcome);
    int (*cred)(struct rnl_env *, uint32_t rank, struct rnl_cred *); /* 0 or RNL_ERR_RANK */
    int (*is)(struct rnl_env *, uint32_t rank, const char *address); /* as rnl_peer_is */
    /* Ends the connection, or the introduction, whatever its state. *incarnation is that of its last event. */
    int (*leave)(struct rnl_env *, uint32_t rank, uint64_t *incarnation); /* 0 or RNL_ERR_RANK */
    /* The ranks by which both sides of a connection call themselves and each other: what each calls the other by is
     * known to itself alone. */
    void (*sides)(struct rnl_env *, uint32_t rank, uint32_t *mine, uint32_t *theirs);
    /* Descriptors of memory files, each with a tag, to and from a peer. `give` sends one: 0, or a status if it cannot
     * be sent now. Only what was expected is accepted; `take` gets it after the peer has said that it was sent, and
     * checks that it is a memory file of these bytes, sealed against changing size: 0 and *fd, or a status; fd NULL: it
     * is not expected any more. */
    int (*give)(struct rnl_env *, uint32_t rank, uint32_t tag, int fd);
    int (*expect)(struct rnl_env *, uint32_t rank, uint32_t tag);
    int (*take)(struct rnl_env *, uint32_t rank, uint32_t tag, size_t bytes, int *fd);
    void (*release)(struct rnl_env *, uint32_t rank); /* after leave: the rank may be given to another process */
    void (*look)(struct rnl_env *); /* takes in now what has come: whoever waits for an introduction does not wait for
                                       the next look of an endpoint that polls */
};

struct rnl_env_facts {
    uint32_t cpus, page_bytes;
    uint32_t silence_ms;      /* of the job, for endpoints that ask for none of their own; 0 = the default */
    uint8_t have_membarrier;  /* registered and working, so senders need no fence */
    uint8_t wide_copy;        /* enum rnl_copy_wide, base/copy.h */
    uint8_t keep_going;       /* the job continues after a death */
    uint8_t launched;         /* by the launcher; else by a hub, or a job of one */
    uint8_t prefers_first;    /* the first address of a peer is the best: it leads to a card that this rank shares */
    uint8_t must_look;        /* events come through descriptors that only `event` reads: call it each 50 us or so */
    uint8_t is_virtual;       /* a process of the virtual cluster: no memory files for windows, no threads */
    uint8_t weak_random;      /* the system gives no random numbers: those of `random` differ but are not secret */
    uint32_t local_endpoints; /* endpoints that share this process's memory and use it alike; 0 = unknown or few */
    /* pause instructions between two empty polls; the best number differs by processor (design.md, waiting) */
    uint8_t pauses_near, pauses_far;
    uint8_t fence_near;       /* 1 = a fence before the first poll also brings stores to a near peer sooner */
    uint32_t yield_ns;        /* the shortest yield so far, one to nobody; 0 = less than matters */
    uint32_t round_trip_ns;   /* rnl_host_round_trip_ns, if datagrams are in use; 0 = unknown */
    struct rnl_copies copies; /* how bulk areas of peers on this host are written */
    uint64_t tsc_khz;         /* rate of the time-stamp counter; 0 = not usable */
};

/* What goes around a transport that an env makes after the opening. */
struct rnl_env_late {
    /* Replaces *t by a transport that wraps it. 0, or a negative status, which leaves *t as it was. */
    int (*wrap)(const struct rnl_env_late *, struct rnl_transport **t);
};

struct rnl_env {
    const struct rnl_env_ops *ops;
    struct rnl_env_facts facts;
    uint32_t rank, size;
    uint64_t incarnation; /* of this process: never 0, never used twice in a job */
    /* Changes when event() has something; loaded relaxed in every extract, written rarely. */
    const _Atomic uint32_t *event_seq;
    struct rnl_bell *bell; /* own doorbell */
    struct rnl_bell *(*bell_of)(struct rnl_env *, uint32_t rank);
    char host[64];
    /* Transport to other hosts; NULL = there are none. When something arrives after `arm`, its descriptor is readable
     * or, where it has none, it rings the own bell. The endpoint closes it. Only the processes of the job know the
     * key, from which the identity of the job comes, too. Where peers are introduced it is there from the first
     * RNL_EVENT_RETURN of one on another host on, and there is no such key. */
    struct rnl_transport *datagrams;
    struct rnl_env_late *late; /* what goes around it where it comes later; NULL = nothing. The env frees it */
    unsigned char job_key[RNL_ENV_KEY_BYTES];
    uint8_t protect;                 /* protection of datagrams, the same in the whole job: enum rnl_protect */
    bool stripe;                     /* long messages go by all paths to a peer at once (remote/stripe.c) */
    const struct rnl_meet_ops *meet; /* NULL: the peers are the ranks of a job */
    uint8_t congest_algorithm;       /* enum rnl_congest_algorithm; 0 is the one in use, others are for comparison */
    /* Opens another endpoint in this process; NULL: this is a virtual process. rnl_open sets it. */
    int (*open)(struct rnl_endpoint **out, const struct rnl_options *opt);
    struct rnl_endpoint *endpoint; /* the complete endpoint that rnl_open made on this env; NULL before */
};

/* The part of an env that agents and hub share on a real host. These functions need no state beyond env->facts. */
void rnl_host_facts(struct rnl_env_facts *facts); /* also registers this process for membarrier */
/* Measures how long eight bytes take there and back between two sockets of one thread: the cost of four system calls
 * here, with the kernel's mitigations. Returns the least of a few trips in ns; 0 = unknown. */
uint32_t rnl_host_round_trip_ns(void);
uint64_t rnl_host_now_ns(struct rnl_env *);
uint64_t rnl_host_random(struct rnl_env *);
uint64_t rnl_host_yield(struct rnl_env *);
void rnl_host_park(struct rnl_env *, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);
void rnl_host_wake(struct rnl_env *, _Atomic uint32_t *word);
int rnl_host_park_on(struct rnl_env *, int fd, uint64_t deadline_ns);
int rnl_host_heavy_fence(struct rnl_env *);
uint64_t rnl_host_sense_load(struct rnl_env *, const _Atomic uint64_t *word, uint64_t last, uint8_t *d);
void rnl_host_sense_fence(struct rnl_env *, uint8_t *d);

#endif
