/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi.h - the objects of the provider, and the functions that its files share.
 *
 * A domain has one endpoint of Runnel that is RNL_ALONE, so it needs no launcher: whoever has its name reaches it. All
 * state hangs from the domain and is touched under its lock. Handlers run inside rnl_ofi_progress, with the lock held;
 * they do at once what needs no room, and queue the rest at a peer. Nothing in the provider waits for room.
 *
 * Functions return 0 or a count, or a negative fi_errno. */
#ifndef RNL_OFI_OFI_H
#define RNL_OFI_OFI_H

#include "base/error.h"
#include "base/hash.h"
#include "list.h"
#include "wire.h"

#include <runnel/adapter.h>
#include <runnel/meet.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

enum {
    RNL_OFI_IOV = 4,              /* pieces of a message */
    RNL_OFI_EPS = 256,            /* endpoints of a domain */
    RNL_OFI_INJECT = 64,          /* bytes that fi_inject takes */
    RNL_OFI_INJECTS = 1024,       /* injected messages that may wait for room to a peer */
    RNL_OFI_EAGER = 64 << 10,     /* longer messages are announced */
    RNL_OFI_UNEXPECTED = 1 << 20, /* messages and announcements of a peer that nobody has posted a receive for */
    RNL_OFI_COPIES = 16 << 20     /* bytes of them that were copied, since the library keeps no more */
};
#define RNL_OFI_NOBODY UINT32_MAX
#define RNL_OFI_SILENT (UINT64_C(1) << 63) /* flag of fi_inject and its kin: success is not told */

/* What is told in fi_info, and checked in hints: info.c. */
int rnl_ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *,
                    struct fi_info **);
int rnl_ofi_fabric(struct fi_fabric_attr *, struct fid_fabric **, void *context);

/* ---- completions ---- */

struct rnl_ofi_entry {
    struct fi_cq_tagged_entry entry; /* all formats are the first bytes of this one */
    fi_addr_t source;
};
struct rnl_ofi_error {
    struct rnl_ofi_link link;
    struct fi_cq_err_entry entry;
};
struct rnl_ofi_cq {
    struct fid_cq fid;
    struct rnl_ofi_domain *domain;
    struct rnl_ofi_entry *ring; /* doubles when it is full */
    uint64_t head, tail, mask;
    size_t entry_bytes;
    struct rnl_ofi_link errors; /* are told before what lies in the ring */
    int epoll, bell;            /* with a wait object: its descriptor; what rings besides messages. Else -1 */
    unsigned sleepers, users;   /* threads in sread; endpoints */
    _Atomic unsigned signals;   /* calls of fi_cq_signal, each of which ends all waits, or the next one */
    unsigned heard;             /* those that have ended one */
    bool awaited;               /* fi_trywait has let somebody sleep on the descriptor since it last rang */
};
struct rnl_ofi_counter {
    struct fid_cntr fid;
    struct rnl_ofi_domain *domain;
    _Atomic uint64_t value, errors;
    unsigned users;
};

/* ---- peers and address vectors ---- */

enum rnl_ofi_peer_state {
    RNL_OFI_NAMED,      /* nothing was sent yet */
    RNL_OFI_CONNECTING, /* it is being introduced, or the greeting is still to be sent */
    RNL_OFI_UP,
    RNL_OFI_GONE
};
/* A domain of any process, this one too, that somebody named here or that came here. */
struct rnl_ofi_peer {
    UT_hash_handle hh;
    struct rnl_ofi_name name; /* of its endpoint 0; found by what is packed in it */
    uint32_t number;          /* of the domain's endpoint, or RNL_OFI_NOBODY */
    uint8_t state;
    bool heard;                /* its greeting has come */
    bool broken;               /* it sends what it may not, and is lost at the next flush */
    unsigned injects;          /* that wait in `sends` */
    unsigned unexpected;       /* its messages that nobody has posted a receive for */
    size_t copies;             /* bytes of them that were copied */
    int64_t allowance;         /* bytes that may be sent before the room is looked at again */
    int64_t since_ms;          /* when its introduction began, or a receive began to wait for it alone */
    struct rnl_ofi_link unmet; /* of domain->unmet while a receive waits for it, and it has not come */
    struct rnl_ofi_link busy;  /* of domain->busy while something waits here or it is connecting */
    struct rnl_ofi_link controls, sends;
    struct rnl_ofi_link awaiting; /* sends whose ACK or ASK or completion is to come */
};

/* An endpoint of a peer, as a number. */
#define RNL_OFI_ANYONE UINT64_MAX
static inline uint64_t rnl_ofi_source_of(const struct rnl_ofi_peer *p, unsigned ep)
{
    return (uint64_t)(uintptr_t)p << 8 | ep;
}
static inline const struct rnl_ofi_peer *rnl_ofi_peer_of(uint64_t source)
{
    return (const struct rnl_ofi_peer *)(uintptr_t)(source >> 8);
}

/* Where a vector has a source: for completions that tell it. */
struct rnl_ofi_source {
    UT_hash_handle hh;
    uint64_t source;
    fi_addr_t address;
};
struct rnl_ofi_av_entry {
    struct rnl_ofi_peer *peer; /* NULL = removed */
    uint32_t ep;
};
struct rnl_ofi_av {
    struct fid_av fid;
    struct rnl_ofi_domain *domain;
    struct rnl_ofi_av_entry *entry;
    size_t count, room;
    struct rnl_ofi_source *sources;
    unsigned users;
};

int rnl_ofi_av_open(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *context);
/* Returns the address by which the vector knows the source, or FI_ADDR_NOTAVAIL. */
static inline fi_addr_t rnl_ofi_av_source(const struct rnl_ofi_av *av, uint64_t source)
{
    struct rnl_ofi_source *s;
    HASH_FIND(hh, av->sources, &source, sizeof source, s);
    return s ? s->address : FI_ADDR_NOTAVAIL;
}

struct rnl_ofi_peer *rnl_ofi_peer_find(struct rnl_ofi_domain *, const struct rnl_ofi_name *);
/* Begins an introduction, unless the peer is connected. */
int rnl_ofi_peer_connect(struct rnl_ofi_domain *, struct rnl_ofi_peer *);
/* The same for what fi_inject and its kin send, which is done for the program when they return 0: -FI_EAGAIN while
 * the peer is being introduced, unless that takes long: then a helper sees to it. */
int rnl_ofi_peer_connect_first(struct rnl_ofi_domain *, struct rnl_ofi_peer *);
/* A receive waits for what this peer alone can send, and it has not come yet: after a while it is introduced, since the
 * library tells no death of who is none of its peers. */
void rnl_ofi_peer_await(struct rnl_ofi_domain *, struct rnl_ofi_peer *);
/* Introduces those of them that have been waited for long enough. */
void rnl_ofi_peers_seek(struct rnl_ofi_domain *);
/* Goes on with it; returns true when the peer is UP or GONE. */
bool rnl_ofi_peer_go_on(struct rnl_ofi_domain *, struct rnl_ofi_peer *);
void rnl_ofi_on_death(void *domain, unsigned number, enum rnl_death_reason);
rnl_stream_handler rnl_ofi_on_greeting;
void rnl_ofi_peers_free(struct rnl_ofi_domain *);
/* The peer of this number that has greeted, or NULL. */
static inline struct rnl_ofi_peer *rnl_ofi_peer_at(struct rnl_ofi_domain *, unsigned number);

/* ---- endpoints ---- */

struct rnl_ofi_match;
struct rnl_ofi_ep {
    struct fid_ep fid;
    struct rnl_ofi_domain *domain;
    struct rnl_ofi_av *av;
    struct rnl_ofi_cq *sent, *received;
    struct rnl_ofi_counter *count_send, *count_recv, *count_read, *count_write, *count_remote_read, *count_remote_write;
    bool sent_selective, received_selective, enabled, tells_source, directs;
    uint64_t send_flags, recv_flags; /* of calls without flags */
    uint32_t number;
    size_t multi_recv_least;
    struct rnl_ofi_match *match[2]; /* receives without tags, and with */
    unsigned under_way;             /* sends and receives that name this endpoint from elsewhere */
};

struct rnl_ofi_domain {
    struct fid_domain fid;
    rnl_endpoint *rnl;
    bool locks;
    pthread_mutex_t *lock;       /* a child that is forked finds zeros there, so nobody holds it */
    struct rnl_ofi_peer *peers;  /* by key */
    struct rnl_ofi_peer **known; /* by number */
    uint32_t known_count;
    struct rnl_ofi_link busy, asked; /* peers with something to be sent; sends whose DATA is to be posted */
    struct rnl_ofi_link unmet;       /* peers that are waited for and have not come, in the order of since_ms */
    struct rnl_ofi_ep *ep[RNL_OFI_EPS];
    struct rnl_ofi_send **send;
    struct rnl_ofi_recv **recv; /* by number */
    uint32_t sends, recvs;
    struct rnl_ofi_link free_sends, free_recvs, free_messages;
    struct rnl_ofi_mr *regions; /* by key */
    bool basic;                 /* FI_MR_BASIC: regions have keys of ours, and peers name addresses in them */
    uint64_t next_key;
    uint64_t rounds;        /* of progress */
    bool automatic, helped; /* FI_PROGRESS_AUTO; a helper was started, and is to be joined */
    bool helper_over;       /* it has nothing more to do */
    unsigned owed;          /* injected messages and acknowledgements here, which the program believes to be gone */
    void (*help_owed)(struct rnl_ofi_domain *);
    _Atomic bool helper_ends;
    int helper_bell;
    pthread_t helper;
    struct rnl_ofi_name name; /* of endpoint 0 */
    unsigned users;
};

static inline void rnl_ofi_lock(struct rnl_ofi_domain *d)
{
    if (d->locks)
        pthread_mutex_lock(d->lock);
}
static inline void rnl_ofi_unlock(struct rnl_ofi_domain *d)
{
    if (d->locks)
        pthread_mutex_unlock(d->lock);
}

static inline struct rnl_ofi_peer *rnl_ofi_peer_at(struct rnl_ofi_domain *d, unsigned number)
{
    struct rnl_ofi_peer *p = number < d->known_count ? d->known[number] : NULL;
    return RNL_LIKELY(p && p->heard) ? p : NULL;
}

/* The peer does not keep to what was agreed: it is heard no more, and lost soon. */
static inline void rnl_ofi_peer_break(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p)
{
    p->broken = true;
    p->heard = false;
    if (!rnl_ofi_is_linked(&p->busy))
        rnl_ofi_append(&d->busy, &p->busy);
}

int rnl_ofi_ep_open(struct fid_domain *, struct fi_info *, struct fid_ep **, void *context);
extern struct fi_ops_msg rnl_ofi_msg_ops;
extern struct fi_ops_tagged rnl_ofi_tagged_ops;

/* ---- sends: send.c ---- */

enum rnl_ofi_send_state {
    RNL_OFI_SEND_FREE,
    RNL_OFI_QUEUED,
    RNL_OFI_AWAITS_ACK,
    RNL_OFI_AWAITS_ASK,
    RNL_OFI_POSTED,
    RNL_OFI_AWAITS_RESULT
};
struct rnl_ofi_send;
/* What sends requests that are no messages. */
struct rnl_ofi_sender {
    /* Sends the first of a peer's queue. Returns false if it has to stay there. */
    bool (*go)(struct rnl_ofi_domain *, struct rnl_ofi_send *);
    /* The peer is lost: finishes the request, now or when nobody uses its memory any more. */
    void (*fail)(struct rnl_ofi_domain *, struct rnl_ofi_send *, int error);
};
/* A message that could not be sent at once, or of which something is still awaited; or a PUT, GET or ATOMIC. */
struct rnl_ofi_send {
    struct rnl_ofi_link link; /* of peer->sends, peer->awaiting, domain->asked or domain->free_sends */
    struct rnl_ofi_ep *ep;
    struct rnl_ofi_peer *peer;
    void *context;
    uint64_t flags;     /* of the call */
    uint64_t completes; /* flags of the completion */
    union {
        struct rnl_ofi_head head;    /* kind MESSAGE */
        struct rnl_ofi_rma_head rma; /* PUT, GET, ATOMIC */
    };
    struct iovec iov[2 * RNL_OFI_IOV]; /* ATOMIC: operands, and what they are compared with */
    uint32_t pieces, number;
    size_t length, wanted; /* bytes; those that ASK wants */
    uint8_t state, kind;
    const struct rnl_ofi_sender *sender; /* NULL = a message */
    struct rnl_ofi_data data;
    /* PUT, GET, ATOMIC only: */
    struct iovec result[RNL_OFI_IOV]; /* where the bytes of RESULT go */
    size_t asked, got;                /* GET: bytes */
    uint32_t results, parts;          /* entries of result; RESULTs that are to come */
    bool posted, receiving, gone;     /* the library has the bytes; a handler writes to result; the peer is lost */
    int error;
    unsigned char own[RNL_OFI_INJECT];
};
struct rnl_ofi_out {
    const struct iovec *iov;
    size_t pieces;
    fi_addr_t to;
    uint64_t tag, data;
    unsigned kind; /* RNL_OFI_TAGGED, RNL_OFI_HAS_DATA */
    void *context;
    uint64_t flags;
};
ssize_t rnl_ofi_send(struct rnl_ofi_ep *, const struct rnl_ofi_out *);
struct rnl_ofi_send *rnl_ofi_send_new(struct rnl_ofi_domain *);
/* Puts a request, filled in, behind all that is to go to its peer, and sends it if nothing waits before it. */
void rnl_ofi_send_queue(struct rnl_ofi_domain *, struct rnl_ofi_send *);
/* Takes a request out of the queue, to be answered; and back to its head. */
void rnl_ofi_send_await(struct rnl_ofi_send *, enum rnl_ofi_send_state);
void rnl_ofi_send_again(struct rnl_ofi_send *);
void rnl_ofi_send_finish(struct rnl_ofi_domain *, struct rnl_ofi_send *, int error);
enum rnl_ofi_room { RNL_OFI_ROOM_NOW, RNL_OFI_ROOM_LATER, RNL_OFI_ROOM_TO_ANNOUNCE };
/* Whether a message of this length may be sent whole. */
enum rnl_ofi_room rnl_ofi_send_room(struct rnl_ofi_domain *, struct rnl_ofi_peer *, size_t length);
/* Composes a message of one or several pieces at once, or returns a status of Runnel. */
int rnl_ofi_put_message(struct rnl_ofi_domain *, struct rnl_ofi_peer *, unsigned kind, size_t answer, const void *head,
                        size_t head_bytes, const struct iovec *, size_t pieces, size_t length);
/* Sends a message of at most 64 bytes, or queues it before all sends. */
void rnl_ofi_say(struct rnl_ofi_domain *, struct rnl_ofi_peer *, unsigned kind, const void *, size_t);
void rnl_ofi_ack(struct rnl_ofi_domain *, struct rnl_ofi_peer *, uint32_t request, int status);
/* Sends what has room by now. */
void rnl_ofi_flush(struct rnl_ofi_domain *);
/* Fails all that was to go to a peer that is gone. */
void rnl_ofi_sends_fail(struct rnl_ofi_domain *, struct rnl_ofi_peer *, int error);
rnl_stream_handler rnl_ofi_on_ask, rnl_ofi_on_ack;
/* Whether anything is queued for the endpoint, or for any if it is NULL. */
bool rnl_ofi_has_queued(struct rnl_ofi_domain *, const struct rnl_ofi_ep *);

/* ---- memory of peers: access.c, target.c, atomic.c, rma.c ---- */

struct rnl_ofi_access {
    unsigned kind;                           /* RNL_OFI_PUT, GET, ATOMIC */
    const struct iovec *iov, *more, *result; /* bytes, or operands; what they are compared with; what comes back */
    size_t pieces, mores, results;
    fi_addr_t to;
    uint64_t address, key, data;
    unsigned flags_there; /* RNL_OFI_HAS_DATA, FETCHES */
    size_t length;        /* ATOMIC; otherwise that of iov */
    enum fi_datatype type;
    enum fi_op op;
    void *context;
    uint64_t flags, completes;
};
ssize_t rnl_ofi_access(struct rnl_ofi_ep *, const struct rnl_ofi_access *);
rnl_stream_handler rnl_ofi_on_put, rnl_ofi_on_get, rnl_ofi_on_atomic, rnl_ofi_on_result;

enum rnl_ofi_atomic_way { RNL_OFI_BASE, RNL_OFI_FETCH, RNL_OFI_COMPARE };
/* Returns the bytes of an element, or 0: nobody does this. */
size_t rnl_ofi_atomic_bytes(unsigned type, unsigned op, enum rnl_ofi_atomic_way);
/* Changes `count` elements at `at` and copies what was there to `before`. The three others may lie anywhere. */
void rnl_ofi_atomic_apply(unsigned type, unsigned op, void *at, const void *operand, const void *compare, void *before,
                          size_t count);
extern struct fi_ops_rma rnl_ofi_rma_ops;
extern struct fi_ops_atomic rnl_ofi_atomic_ops;
int rnl_ofi_query_atomic(struct fid_domain *, enum fi_datatype, enum fi_op, struct fi_atomic_attr *, uint64_t flags);

/* ---- receives: recv.c, and match.c ---- */

/* A posted receive, or one that a message is coming for. */
struct rnl_ofi_recv {
    struct rnl_ofi_link chain, order; /* of what finds it: match.c */
    struct rnl_ofi_ep *ep;
    void *context;
    uint64_t flags, tag, ignore, from; /* from: see rnl_ofi_source_of */
    uint64_t place;                    /* tells which was posted before which */
    struct iovec iov[RNL_OFI_IOV];
    uint32_t pieces, number;
    size_t length;
    bool tagged, multi, used;
    uint32_t open;               /* multi: messages that are coming for parts of it */
    struct rnl_ofi_recv *parent; /* the multi-receive of which it is a part */
    struct rnl_ofi_head head;    /* of the message that has been asked for, which has `announced` bytes */
    struct rnl_ofi_peer *sender;
    size_t announced;
};
enum rnl_ofi_message_state { RNL_OFI_COMING, RNL_OFI_HERE, RNL_OFI_ANNOUNCED };
enum { RNL_OFI_CLASSES = 6 };
/* A message for which no receive was posted. */
struct rnl_ofi_message {
    struct rnl_ofi_link chain[RNL_OFI_CLASSES], order;
    struct rnl_ofi_head head;
    struct rnl_ofi_peer *peer;
    uint64_t source;
    size_t length;
    rnl_kept *kept; /* its bytes; or `copy`, if the library keeps no more; or both NULL */
    void *copy;
    uint32_t request;
    uint8_t state;
    bool dropped;               /* COMING: nobody wants it any more */
    int error;                  /* its bytes did not come whole */
    struct rnl_ofi_recv *taker; /* COMING: it has been matched */
};
struct rnl_ofi_in {
    const struct iovec *iov;
    size_t pieces;
    fi_addr_t from;
    uint64_t tag, ignore;
    bool tagged;
    void *context;
    uint64_t flags;
};
ssize_t rnl_ofi_recv(struct rnl_ofi_ep *, const struct rnl_ofi_in *);
ssize_t rnl_ofi_recv_cancel(struct rnl_ofi_ep *, void *context);
rnl_stream_handler rnl_ofi_on_message, rnl_ofi_on_announce, rnl_ofi_on_data;
/* Forgets all that was posted at the endpoint or has come for it. */
void rnl_ofi_recvs_drop(struct rnl_ofi_ep *);
/* Fails receives whose bytes a peer that is gone was asked for. */
void rnl_ofi_recvs_fail(struct rnl_ofi_domain *, struct rnl_ofi_peer *, int error);

struct rnl_ofi_match *rnl_ofi_match_new(void);
void rnl_ofi_match_free(struct rnl_ofi_match *);
/* Puts a receive behind those that were posted before. */
void rnl_ofi_match_post(struct rnl_ofi_match *, struct rnl_ofi_recv *);
void rnl_ofi_match_withdraw(struct rnl_ofi_match *, struct rnl_ofi_recv *);
/* Returns the first receive that takes a message of this tag from this peer, and leaves it posted; or NULL. */
struct rnl_ofi_recv *rnl_ofi_match_recv(struct rnl_ofi_match *, uint64_t tag, uint64_t source);
void rnl_ofi_match_add(struct rnl_ofi_match *, struct rnl_ofi_message *);
void rnl_ofi_match_remove(struct rnl_ofi_match *, struct rnl_ofi_message *);
/* Returns the first message that such a receive takes, and leaves it there; or NULL. */
struct rnl_ofi_message *rnl_ofi_match_message(struct rnl_ofi_match *, uint64_t tag, uint64_t ignore, uint64_t from);
/* The oldest of each; NULL = there is none. */
struct rnl_ofi_recv *rnl_ofi_match_first_recv(struct rnl_ofi_match *);
struct rnl_ofi_recv *rnl_ofi_match_next_recv(struct rnl_ofi_match *, struct rnl_ofi_recv *);
struct rnl_ofi_message *rnl_ofi_match_first_message(struct rnl_ofi_match *);

/* ---- completion queues and counters: complete.c, cq.c, counter.c ---- */

int rnl_ofi_cq_open(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *context);
void rnl_ofi_cq_push(struct rnl_ofi_cq *, const struct fi_cq_tagged_entry *, fi_addr_t source);
void rnl_ofi_cq_push_error(struct rnl_ofi_cq *, const struct fi_cq_err_entry *);
int rnl_ofi_cq_trywait(struct rnl_ofi_cq *);
/* Wakes whoever sleeps on the queue. */
void rnl_ofi_cq_ring(struct rnl_ofi_cq *);
int rnl_ofi_counter_open(struct fid_domain *, struct fi_cntr_attr *, struct fid_cntr **, void *context);
static inline void rnl_ofi_count(struct rnl_ofi_counter *c)
{
    if (c)
        atomic_fetch_add_explicit(&c->value, 1, memory_order_release); /* pairs with the load of fi_cntr_read */
}
int rnl_ofi_eq_open(struct fid_fabric *, struct fi_eq_attr *, struct fid_eq **, void *context);
/* Tells of a send or the like that is done, as its flags and the endpoint want. error: 0 or negative. */
void rnl_ofi_complete(struct rnl_ofi_ep *, void *context, uint64_t flags, uint64_t completes, int error);

/* ---- domains: domain.c, progress.c, common.c; the rest ---- */

int rnl_ofi_domain_open(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *context);
/* Takes in what has come, and sends what has room. */
int rnl_ofi_progress(struct rnl_ofi_domain *);
/* Sleeps until something comes, or bell is readable, or so long at most; it may be less. Not with the lock held. */
void rnl_ofi_sleep(struct rnl_ofi_domain *, int bell, int64_t most_ms);
int64_t rnl_ofi_now_ms(void);
/* Starts and ends the thread that makes progress for the program. Returns 0 or a negative fi_errno. */
int rnl_ofi_help(struct rnl_ofi_domain *);
void rnl_ofi_help_owed(struct rnl_ofi_domain *); /* while something is owed */
void rnl_ofi_help_end(struct rnl_ofi_domain *);
/* Stores the descriptor that becomes readable when something comes. Returns 1 if something is there or to be sent
 * already, else 0. */
int rnl_ofi_arm(struct rnl_ofi_domain *, int *fd);
/* What a peer has told as a status: 0, or a negative fi_errno. */
static inline int rnl_ofi_told(int32_t status)
{
    return status >= 0 ? 0 : status > -4096 ? status : -FI_EOTHER;
}
/* The fi_errno, negative, of a status of Runnel. */
int rnl_ofi_errno(int status);

struct rnl_ofi_mr {
    struct fid_mr fid;
    UT_hash_handle hh; /* by fid.key */
    struct rnl_ofi_domain *domain;
    unsigned char *base;
    size_t length;
    uint64_t access;
    struct rnl_ofi_counter *count_read, *count_write; /* of accesses by peers */
};
extern struct fi_ops_mr rnl_ofi_mr_ops;
/* Finds the memory that a peer names. Returns 0, or a negative fi_errno: it may not do this there. */
int rnl_ofi_mr_find(struct rnl_ofi_domain *, const struct rnl_ofi_rma_head *, uint64_t access, struct rnl_ofi_mr **,
                    unsigned char **at);

/* Functions of tables that have nothing to do here. */
int rnl_ofi_no_bind(struct fid *, struct fid *, uint64_t);
int rnl_ofi_no_control(struct fid *, int, void *);
int rnl_ofi_no_ops_open(struct fid *, const char *, uint64_t, void **, void *);

#endif
