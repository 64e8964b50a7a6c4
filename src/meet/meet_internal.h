/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet_internal.h - the state of an endpoint alone, and the functions that its source files share. */
#ifndef RNL_MEET_MEET_INTERNAL_H
#define RNL_MEET_MEET_INTERNAL_H

#include "base/bell.h"
#include "job/fds.h"
#include "job/membership.h"
#include "job/waitfd.h"
#include "meet/meet.h"
#include "meet/proto.h"
#include "meet/table.h"
#include "runnel/meet.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* The life of a slot. The membership knows of it from UP on, and until then the endpoint holds its rank for a new peer.
 *
 *                 claimed                  HELLO came      the program says yes
 *     FREE --------------------> GREETING --------> REQUESTING ----------> UP ----> ENDED   the peer is gone
 *      ^  ^                        |   |  HELLO came, nobody is asked      ^          |
 *      |  |   it came to us        |   +-----------------------------------+          |
 *      |  +------------------------+                                                  |
 *      |           failed          | we went to it                                    |
 *      |                           v                                                  v
 *      +--- LEFT <-------------- FAILED                                             LEFT
 *       release      the program leaves, in any state */
enum meet_slot_state {
    MEET_FREE = 0,
    MEET_AWAITING,   /* accepts: the pair of sockets is still to come through a socket of the program */
    MEET_GREETING,   /* the peer's HELLO is awaited */
    MEET_REQUESTING, /* the program is asked */
    MEET_UP,
    MEET_ENDED,
    MEET_FAILED, /* the introduction has failed; status says why */
    MEET_LEFT
};

struct meet_service {
    struct meet_service *next;
    char name[RNL_MEET_NAME_BYTES];
    struct rnl_meet_admit who;
    rnl_connection_request *f; /* NULL = whoever is admitted comes in */
    void *ctx;
    uint32_t request_id;
    int status;        /* 1 = offered, 0 = asked, negative = refused */
    bool is_requested; /* the daemon that runs now has been asked */
};

struct meet_slot {
    uint8_t state;     /* enum meet_slot_state */
    bool is_ours;      /* the program asked for it and has its number; else it came to us */
    bool offers;       /* this side made the segment, and goes to the other */
    bool quiet;        /* a failure is reported by `met` alone */
    bool by_name;      /* it reaches a service: uid and name say which */
    bool is_requested; /* by_name: the daemon has been asked */
    bool is_announced; /* REQUESTING: the event was given out */
    bool is_known;     /* uid is that of the peer, whoever greets */
    bool by_address;   /* it has inserted the address `at`, of uid */
    bool yields;       /* by_address: the peer has inserted ours, too, and its connection is the one to be kept */
    bool is_remote;    /* the peer is on another host; by_name: that of `host` */
    bool is_reported;  /* is_remote: the event that it may connect has been given out */
    bool own_user;     /* by_name, is_remote: of this user, whatever number it has there */
    bool wants_pidfd;  /* GREETING: the kernel adds a descriptor of the peer's process to the peer's HELLO */
    int sock, watch;   /* this end of the pair's sockets, or the program's socket in AWAITING; the peer's pidfd */
    int segment;       /* its memory file, until the membership has it */
    int status;        /* FAILED */
    struct rnl_segment *shared;   /* the membership's record, until this side is done with it */
    struct meet_service *service; /* to which it came */
    struct rnl_meet_admit *who;   /* whom rnl_introduce admits, or NULL */
    struct rnl_cred cred;
    pid_t virtual_pid;    /* of a peer in the virtual cluster */
    uint64_t incarnation; /* of the peer that it had last: counts introductions */
    uint64_t
        due_ns;    /* when a greeting is given up, a service asked for again, or a death taken for a leave; 0 = never */
    uint32_t pair; /* number of the pair: proto.h */
    uint32_t gifts;           /* descriptors that are expected of it */
    uint32_t uid, request_id; /* whose it has to be; by_name: of REACH */
    uint32_t host_port;       /* of the daemon there; 0 = that of the key */
    unsigned char host[RNL_MEET_IP_BYTES];
    char name[RNL_MEET_NAME_BYTES];
    unsigned char at[RNL_MEET_TOKEN_BYTES];    /* the name of the peer's address, as far as it is known */
    unsigned char token[RNL_MEET_TOKEN_BYTES]; /* of the address that was inserted, else 0 */
};

/* The connection to the daemon that keeps the services of one user. */
struct meet_link {
    struct meet_link *next;
    uint32_t uid;
    int sock;            /* -1 = there is none */
    uint64_t next_ns;    /* when connecting is tried again */
    uint64_t since_ns;   /* when it was first tried; 0 = it is not */
    uint64_t started_ns; /* when a daemon was started that does not answer yet; 0 = none was */
    pid_t starter;       /* rnl_daemon_start's child */
};

struct meet {
    struct rnl_env env;           /* first */
    struct rnl_meet_world *world; /* NULL: a real host */
    pid_t owner;
    uint32_t own_uid;
    int epoll, self; /* what a look takes in; an eventfd in it */
    struct rnl_waitfd wait;
    _Atomic uint32_t event_seq;
    struct rnl_bell *bells;
    struct rnl_membership *members;
    struct meet_slot *slot; /* by rank; slot 0 is this process itself */
    char *heads;
    uint64_t now_ns, introductions;
    _Atomic uint64_t due_ns; /* when a look is due without input; sleeping threads read it without the lock */
    uint32_t requests, unreported, pairs; /* slots to announce: who requests, and who is remote; numbers given out */
    struct meet_service *services;
    struct meet_link *links;
    struct meet_gift *gifts; /* descriptors that are expected: give.c */
    uint32_t gift_count;
    struct meet_service *listener; /* of the address, or NULL */
    int listen;                    /* its socket, or -1 */
    bool is_listed;               /* the address is a service, too, and `listener` one of `services`: for other hosts */
    struct meet_remote *remote;   /* by rank: peers on other hosts; NULL: there has been none (remote.c) */
    uint16_t udp_port;            /* of the socket for them */
    struct rnl_meet_table *table; /* what `runnel info` shows, or NULL */
    int table_fd;                 /* its descriptor, or -1 */
    /* the name of the own address, which tells endpoints apart whether they listen or not; and the address's secret */
    unsigned char address[RNL_MEET_TOKEN_BYTES], token[RNL_MEET_TOKEN_BYTES];
};

/* What an event of the epoll instance is about. */
enum meet_source { MEET_SELF, MEET_SOCK, MEET_WATCH, MEET_LINK, MEET_LISTEN };

static inline struct meet *rnl_meet_of(struct rnl_env *env)
{
    return (struct meet *)(void *)env;
}

static inline uint64_t rnl_meet_now(struct meet *m)
{
    return m->env.ops->now_ns(&m->env);
}

/* ---- base.c ---- */

int rnl_meet_forked(const struct meet *);                                           /* 0 or RNL_ERR_FORKED */
int rnl_meet_watch(struct meet *, int fd, enum meet_source source, uint32_t index); /* 0 or -errno */
void rnl_meet_drop_fd(struct meet *, int *fd);    /* stops watching *fd, closes it, sets it to -1; ignores -1 */
const char *rnl_meet_daemon(const struct meet *); /* the name at which the daemons of this host listen, or NULL */
void rnl_meet_due(struct meet *, uint64_t at_ns); /* asks for a look at that time at the latest */
void rnl_meet_notify(struct meet *);              /* an event is here */
void rnl_meet_show(struct meet *, uint32_t rank); /* the slot is to be shown as it is now */
int rnl_meet_send_daemon(struct meet *, const struct rnl_meet_msg *);         /* the own user's. 0 or negative */
int rnl_meet_join(struct meet *, uint32_t rank);                              /* the membership takes the peer in */
int rnl_meet_admit(const struct rnl_admit *from, struct rnl_meet_admit *out); /* 0 or RNL_ERR_ARG */

/* Sends a peer a message with the own credentials, and with fd unless it is -1. 0 or -errno. */
int rnl_meet_send(int sock, const struct rnl_meet_msg *msg, int fd);
void rnl_meet_send_short(int sock, enum rnl_meet_kind kind); /* a message without a body */

/* ---- slot.c ---- */

/* Claim a free slot, for what the program asked for, and for a process of this user that came to the service. Return
 * its rank, or RNL_NO_ROOM. */
int rnl_meet_claim(struct meet *);
int rnl_meet_claim_for(struct meet *, uint32_t uid, struct meet_service *);
void rnl_meet_abandon(struct meet *, uint32_t rank);      /* the program has not been given its number */
void rnl_meet_hang_up(struct meet *, struct meet_slot *); /* closes what leads to the peer */
/* The peer's end of the sockets is closed. Whether its process has ended shows a moment later. */
void rnl_meet_hung_up(struct meet *, uint32_t rank);
void rnl_meet_ended(struct meet *, uint32_t rank, int why, int detail); /* the peer of a slot that is UP is gone */
void rnl_meet_end_request(struct meet *, struct meet_slot *); /* nobody is asked about the process in this slot */
void rnl_meet_remote_gone(struct meet *, const struct rnl_meet_gone *); /* says the daemon */
void rnl_meet_remote_lost(struct meet *);                               /* the own daemon has ended */
void rnl_meet_receive_slot(struct meet *, uint32_t rank);
void rnl_meet_watched(struct meet *, uint32_t rank); /* the peer's process has ended */
/* The introduction has failed, for the reason that rnl_fail recorded with that status. */
void rnl_meet_failed(struct meet *, uint32_t rank, int status);
void rnl_meet_slots_due(struct meet *);
void rnl_meet_forget_service(struct meet *, const struct meet_service *); /* drops who came to it and is not in yet */
void rnl_meet_close_slot(struct meet *, uint32_t rank);                   /* says LEAVE, and frees it */

int rnl_meet_met(struct rnl_env *, uint32_t rank);
int rnl_meet_request(struct rnl_env *, uint32_t rank, struct rnl_cred *, rnl_connection_request **f, void **ctx);
int rnl_meet_cred(struct rnl_env *, uint32_t rank, struct rnl_cred *);
int rnl_meet_is(struct rnl_env *, uint32_t rank, const char *address);
int rnl_meet_leave(struct rnl_env *, uint32_t rank, uint64_t *incarnation);
void rnl_meet_release(struct rnl_env *, uint32_t rank);
void rnl_meet_sides(struct rnl_env *, uint32_t rank, uint32_t *mine, uint32_t *theirs);
int rnl_meet_disconnect(struct rnl_env *, uint32_t rank, int why);

/* ---- give.c ---- */

int rnl_meet_give(struct rnl_env *, uint32_t rank, uint32_t tag, int fd);
int rnl_meet_expect(struct rnl_env *, uint32_t rank, uint32_t tag);
/* The descriptor is expected and has not come. */
bool rnl_meet_lacks(const struct meet *, uint32_t rank, uint32_t tag);
int rnl_meet_take(struct rnl_env *, uint32_t rank, uint32_t tag, size_t bytes, int *fd);
/* The peer has sent fd, which is taken if it is expected; else returns false. */
bool rnl_meet_given(struct meet *, uint32_t rank, uint32_t tag, int fd);
void rnl_meet_forget_gifts(struct meet *, uint32_t rank);

/* ---- greet.c ---- */

/* Give the slot its end of the pair's sockets, which is closed if they fail. 0 or RNL_ERR_SYSTEM. The first awaits the
 * peer's HELLO; the second goes to the peer: it makes the segment and greets. */
int rnl_meet_take_sock(struct meet *, uint32_t rank, int sock);
int rnl_meet_offer(struct meet *, uint32_t rank, int sock);
/* Makes a pair of sockets, in which the slot goes to the peer that will get *theirs. 0 or RNL_ERR_SYSTEM. */
int rnl_meet_offer_pair(struct meet *, uint32_t rank, int *theirs);
void rnl_meet_send_denied(int sock, enum rnl_denied why);
void rnl_meet_deny(struct meet *, uint32_t rank, enum rnl_denied why);
void rnl_meet_greeted(struct meet *, uint32_t rank, const struct rnl_meet_msg *, enum rnl_meet_verdict,
                      struct rnl_seqpacket *); /* slot in GREETING; takes the descriptors that it keeps */
void rnl_meet_reply(struct rnl_env *, uint32_t rank, bool welcome);
/* Peers of other hosts: the program, or who admits everybody, has said 0 or why not; and what the daemon says. The
 * service is NULL if there is none of that request_id. */
void rnl_meet_yield(struct meet *, uint32_t rank); /* the other endpoint's connection is the one to be kept */
void rnl_meet_reply_remote(struct meet *, uint32_t rank, int status);
void rnl_meet_called(struct meet *, struct meet_service *, const struct rnl_meet_called *);
void rnl_meet_met_remote(struct meet *, uint32_t rank, const struct rnl_meet_met *);
/* Returns the slot that has inserted this address, or any of this user if `at` is NULL, and awaits its HELLO; or 0. */
uint32_t rnl_meet_inserted(const struct meet *, uint32_t uid, const unsigned char at[RNL_MEET_TOKEN_BYTES]);

/* ---- service.c ---- */

int rnl_meet_serve(struct rnl_env *, const char *service, const struct rnl_admit *, rnl_connection_request *f,
                   void *ctx);
int rnl_meet_served(struct rnl_env *, const char *service);
void rnl_meet_list_address(struct meet *); /* asks the daemon to let who has the address come from other hosts, too */
int rnl_meet_unserve(struct rnl_env *, const char *service);
int rnl_meet_reach(struct rnl_env *, const char *service, bool quiet, uint32_t *rank);
void rnl_meet_receive_link(struct meet *, uint32_t uid);
void rnl_meet_links_due(struct meet *);
/* Asks the daemon for the service that the slot reaches; and does so no more. */
void rnl_meet_request_service(struct meet *, uint32_t rank);
void rnl_meet_cancel(struct meet *, uint32_t rank);

/* ---- remote.c ---- */

/* Reads "HOST" or "HOST:PORT", HOST being a name or an address, one of IPv6 in brackets if a port follows. A name is
 * looked up, which may take time. 0, RNL_ERR_ARG, RNL_ERR_UNREACHABLE. */
int rnl_meet_remote_host(struct meet *, const char *text, unsigned char ip[RNL_MEET_IP_BYTES], uint32_t *port);
/* Makes what peers on other hosts need. The endpoint takes the datagrams over, and closes them. 0 or a status. */
int rnl_meet_remote_begin(struct meet *);
int rnl_meet_remote_call(struct meet *, uint32_t rank,
                         struct rnl_meet_msg *); /* makes the CALL of a slot that reaches */
/* Notes where the peer is, and by which number the daemon knows the pair. */
void rnl_meet_remote_take(struct meet *, uint32_t rank, uint32_t call, const struct rnl_meet_place *,
                          const unsigned char ip[RNL_MEET_IP_BYTES], const unsigned char key[RNL_MEET_KEY_BYTES]);
int rnl_meet_remote_up(struct meet *, uint32_t rank);                               /* it is a peer. 0 or a status */
int rnl_meet_remote_reply(struct meet *, uint32_t call, uint32_t rank, int status); /* REPLY. 0 or negative */
uint32_t rnl_meet_remote_call_of(const struct meet *, uint32_t rank); /* 0 = the daemon knows of no such pair */
void rnl_meet_remote_leave(struct meet *, uint32_t rank);             /* it is left */
void rnl_meet_remote_orphaned(struct meet *, uint32_t rank);          /* the daemon that knew of it has ended */
void rnl_meet_remote_forget(struct meet *, uint32_t rank);            /* the slot is free */
int rnl_meet_remote_address(struct rnl_env *, uint32_t rank, struct rnl_rank_address *out);
int rnl_meet_remote_alternate(struct rnl_env *, uint32_t rank, unsigned n, struct rnl_rank_address *out);
uint64_t rnl_meet_remote_liveness(struct rnl_env *, uint32_t rank); /* as the job says that vouches for the peer */
bool rnl_meet_remote_is_unwatched(struct rnl_env *, uint32_t rank); /* a daemon that watched the peer has ended */
/* A slot that a job's env, `by`, vouches for as its rank `of`: it is made such, still is one, and becomes a peer. */
void rnl_meet_remote_reserve(struct meet *, uint32_t rank, struct rnl_env *by, uint32_t of);
bool rnl_meet_remote_reserved(const struct meet *, uint32_t rank, struct rnl_env **by, uint32_t *of);
int rnl_meet_remote_vouch(struct meet *, uint32_t rank, uint32_t port, uint32_t as,
                          const unsigned char key[RNL_MEET_KEY_BYTES]);
void rnl_meet_remote_free(struct meet *);

/* ---- vouch.c ---- */

int rnl_meet_reserve(struct rnl_env *, struct rnl_env *by, uint32_t of, uint32_t *rank, uint32_t *port);
int rnl_meet_vouch(struct rnl_env *, uint32_t rank, uint32_t port, uint32_t as, const unsigned char mine[16],
                   const unsigned char its[16]);

/* ---- address.c ---- */

int rnl_meet_address(struct rnl_env *, const struct rnl_admit *, rnl_connection_request *f, void *ctx, char *buf,
                     size_t n);
int rnl_meet_insert(struct rnl_env *, const char *address, uint32_t *rank);
int rnl_meet_introduce(struct rnl_env *, int socket, bool offers, const struct rnl_admit *, bool quiet, uint32_t *rank);
void rnl_meet_receive_listener(struct meet *);
void rnl_meet_receive_program(struct meet *, uint32_t rank); /* slot in AWAITING */

#endif
