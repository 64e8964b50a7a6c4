/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env.h - the seam to the world for everything between the interfaces and the system calls: time, chance, sleeping,
 * memory shared with peers of this host, and news about peers. One table per endpoint. The hub (threads of one
 * process), the launcher's agent and the simulator each fill it. Callees never call back into the library.
 *
 * Nothing else in ring/ .. stream/ reads a clock, draws a random number, sleeps or makes a system call. */
#ifndef RNL_BASE_ENV_H
#define RNL_BASE_ENV_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct rnl_env;
struct rnl_bell;
struct rnl_transport;

enum rnl_distance { RNL_NEAR = 0, RNL_FAR = 1 };

/* What the watcher (agent or hub) tells an endpoint, in order, reliably. */
enum rnl_event_kind {
    RNL_EVENT_CONNECT = 1, /* the segment we share with peer `rank` is there: open it */
    RNL_EVENT_DEATH,       /* peer `rank` is gone, for us at least; why, detail as enum rnl_death_reason */
    RNL_EVENT_CLOSE_ASK,   /* close: report when idle, quoting `wave` */
    RNL_EVENT_CLOSE_DONE,  /* close: every live rank has been idle twice with nothing in between */
    RNL_EVENT_JOB_GONE,    /* the watcher itself is gone */
    RNL_EVENT_RETURN       /* after its DEATH: another process, `incarnation`, is peer `rank` now */
};
struct rnl_event {
    uint32_t kind, rank;
    uint64_t incarnation; /* of rank */
    uint64_t wave;
    int32_t why, detail;
};

enum { RNL_SEGMENT_HEAD = 8192 };

struct rnl_place {        /* where a rank of another host is found */
    uint64_t incarnation; /* 0 = not known */
    uint8_t same_kernel;  /* ... by a process of our own kernel: no network card is on the way */
    uint32_t addr_bytes;
    unsigned char addr[60]; /* as the transport has them (struct rnl_addr) */
};
enum { RNL_ENV_KEY_BYTES = 32 };

struct rnl_env_ops {
    uint32_t size; /* of this table: it grows at the end */

    /* -- time and chance -- */
    uint64_t (*now_ns)(struct rnl_env *);
    uint64_t (*random)(struct rnl_env *);

    /* -- giving way -- */
    /* A progress call found nothing. Returns how long we were away, ns: the wait policy adapts to it. */
    uint64_t (*yield)(struct rnl_env *);
    /* Sleep while *word == expected, until wake, a signal handler ran, or deadline_ns. May return for no reason. */
    void (*park)(struct rnl_env *, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);
    void (*wake)(struct rnl_env *, _Atomic uint32_t *word);
    /* Order our earlier stores before our later loads as every process of the job sees it (membarrier). Negative: not
     * to be had; senders then fence. */
    int (*heavy_fence)(struct rnl_env *);
    /* The two distance sensors, slow paths only. *d is that connection's verdict: bit 0 (enum rnl_distance) is read by
     * the ring, the rest belongs to the sensors; it begins as 0. sense_load: *word, acquire, timed where it differs
     * from `last`. sense_fence: a timed fence, to be called after a lone send, now and then. */
    uint64_t (*sense_load)(struct rnl_env *, const _Atomic uint64_t *word, uint64_t last, uint8_t *d);
    void (*sense_fence)(struct rnl_env *, uint8_t *d);

    /* -- memory shared with a peer of this host -- */
    /* The segment of the pair (us, rank): the same one from both sides, made on first use, zero-filled, of exactly
     * `bytes`, and sealed against changing size where it is a file. Waits at most wait_ns for the watcher. 0 and
     * *segment >= 0; RNL_NO_ROOM: asked for, the watcher has not answered yet (an event says when it has; then ask
     * again); another negative rnl_status. */
    int (*segment_open)(struct rnl_env *, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment);
    /* A part of it, page-aligned, readable and (if `writable`) writable. The hub returns the same address to both
     * sides. What lies within the first RNL_SEGMENT_HEAD bytes of segments is mapped side by side: page tables are
     * shared. */
    int (*segment_map)(struct rnl_env *, int segment, size_t offset, size_t bytes, int writable, void **at);
    void (*segment_unmap)(struct rnl_env *, int segment, void *at, size_t bytes);
    /* All that is wanted of it is mapped: what mapping needs (a descriptor) is given back, and the watcher forgets the
     * segment once both sides have said so. It cannot be opened again. */
    void (*segment_settle)(struct rnl_env *, int segment);
    /* The end of it. Before it was settled: it was not had, and may be opened again. */
    void (*segment_close)(struct rnl_env *, int segment);

    /* -- news -- */
    /* The next event: 1, or 0 = none. Call when *news changed, after sleeping, and now and then when polling. */
    int (*event)(struct rnl_env *, struct rnl_event *out);
    /* We are in close and idle: nothing to send, nothing suspended, all our bytes read. `activity` counts messages sent
     * and handled. */
    int (*close_report)(struct rnl_env *, uint64_t wave, uint64_t activity);

    /* Peer `rank` is dead for us: it broke the protocol (RNL_DEATH_BROKEN), and is told so (RNL_DEATH_PARTED); or
     * nothing was heard of it (RNL_DEATH_SILENT), and if its process is stopped the close does not wait for it. 0,
     * RNL_NO_ROOM: say it again later, RNL_ERR_JOB. */
    int (*part)(struct rnl_env *, uint32_t rank, int why);

    /* -- event loops -- */
    int (*fd)(struct rnl_env *);        /* our descriptor, made on first use; negative rnl_status */
    void (*fd_drain)(struct rnl_env *); /* no longer readable for having been raised */
    /* Readable from this time on without being raised; until then, and for ever with UINT64_MAX, it is not. */
    void (*fd_until)(struct rnl_env *, uint64_t ns);
    /* Make rank's (or our own) descriptor readable; rank has one if it is armed with RNL_ARMED_FD. */
    void (*fd_raise)(struct rnl_env *, uint32_t rank);

    void (*close)(struct rnl_env *); /* leaves the job; the env is freed */

    /* -- peers of other hosts; only if env->datagrams -- */
    /* 1 = rank is on another host, at *out; 0 = on this one. Only RETURN changes the answer. */
    int (*place)(struct rnl_env *, uint32_t rank, struct rnl_place *out);
    /* When somebody who knows last said that rank's process lives, runs, and can be reached both ways: as now_ns, 0 =
     * never. Who only computes is not declared dead for its silence. NULL = nobody knows. */
    uint64_t (*vouched)(struct rnl_env *, uint32_t rank);
    /* Sleep until `fd` or our own descriptor is readable, a signal handler ran, or deadline_ns. 1 = one is readable;
     * may return 0 for no reason. NULL: whatever `datagrams` reads from rings our bell. */
    int (*park_on)(struct rnl_env *, int fd, uint64_t deadline_ns);
    /* Our own descriptor is readable when `fd` is, too, from now on. 0, RNL_ERR_SYSTEM. */
    int (*fd_watch)(struct rnl_env *, int fd);
    /* 1 = rank, of another host, has an n-th further address (0, 1, ...), at *out; 0 = it has no more. Where packets go
     * when they do not arrive at that of `place` any more. NULL: nobody has any. */
    int (*way)(struct rnl_env *, uint32_t rank, unsigned n, struct rnl_place *out);
};

struct rnl_env_facts {
    uint32_t cpus, page_bytes;
    uint8_t have_membarrier; /* registered and working: senders need no fence */
    uint8_t wide_copy;       /* enum rnl_copy_wide, base/copy.h */
    uint8_t keep_going;      /* the job goes on after a death */
    uint8_t launched;        /* by the launcher, else hub or job of one */
    uint8_t guessable;       /* the system gives no random numbers: those of `random` differ, and are no secret */
    uint32_t crowd;          /* endpoints that share this process's memory, and use it alike; 0 = not known, few */
    uint8_t pauses_near,
        pauses_far;     /* between two empty polls; what is best differs by processor (DESIGN.md, waiting) */
    uint8_t fence_near; /* 1 = also a near peer gets our stores sooner with a fence before the first poll */
    uint32_t trip_ns;   /* rnl_host_trip_ns, where datagrams are in use; 0 = not known */
    uint64_t tsc_khz;   /* 0: no usable time-stamp counter */
};

struct rnl_env {
    const struct rnl_env_ops *ops;
    struct rnl_env_facts facts;
    uint32_t rank, size;
    uint64_t incarnation; /* ours: never 0, never used twice in a job */
    /* Changes when event() has something; read with relaxed order in every extract, written rarely. */
    const _Atomic uint32_t *news;
    struct rnl_bell *bell; /* ours */
    struct rnl_bell *(*bell_of)(struct rnl_env *, uint32_t rank);
    char host[64];
    /* What reaches other hosts, NULL = there are none. When something arrives after `arm` its descriptor is readable
     * or, where it has none, it rings our bell; it is the endpoint's to close. The key is known to the processes of the
     * job, and to nobody else. */
    struct rnl_transport *datagrams;
    unsigned char job_key[RNL_ENV_KEY_BYTES];
    uint8_t protect; /* what the job wants of its datagrams, the same in all of it: enum rnl_protect */
    uint8_t law;     /* of congestion: enum rnl_congest_law. 0 is what is used; the others are compared with it */
};

/* Of the real host: what hub and agent share. They need no state beyond env->facts. */
void rnl_host_facts(struct rnl_env_facts *facts); /* also registers this process for membarrier */
/* How long eight bytes take to and fro between two sockets of one thread: what four calls cost here, with whatever the
 * kernel does in them against faults of the processor. The least of some trips; 0 = not known. */
uint32_t rnl_host_trip_ns(void);
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
