/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon_internal.h - what the files of the daemon share. */
#ifndef RNL_MEET_DAEMON_INTERNAL_H
#define RNL_MEET_DAEMON_INTERNAL_H

#include "meet/daemon.h"
#include "meet/proto.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    RNL_DAEMON_BUCKETS = 1024 /* of the table of services */
};

/* What an event of the daemon's epoll instance is about: the first byte of what it points to. NULL: the listening
 * socket. */
enum rnl_daemon_source { RNL_DAEMON_CALLER = 1, RNL_DAEMON_CALL, RNL_DAEMON_HOSTS };

struct daemon_caller {
    uint8_t source;
    bool is_full; /* it does not read: what is to be sent waits until it has room */
    bool is_gone; /* freed at the end of the step */
    int sock;
    uint32_t uid, pid;
    uint32_t groups; /* the first is its effective group */
    uint32_t *group;
    uint32_t services, waiting, calls;
    uint64_t since_ns; /* when it connected; 0 = it has greeted */
    struct daemon_caller *next;
};

struct daemon_service {
    uint32_t uid;
    char name[RNL_MEET_NAME_BYTES];
    struct daemon_caller *caller;
    uint32_t request_id;
    struct rnl_meet_admit *who; /* NULL = the same user */
    struct daemon_service *next;
};

struct daemon_waiter;
struct daemon_hosts;

struct rnl_daemon {
    struct rnl_daemon_options opt;
    uint32_t own_uid, callers, waiters;
    int listen, epoll;
    bool is_deaf; /* out of descriptors: nobody is accepted until the deadline */
    uint64_t now_ns, due_ns;
    struct daemon_caller *caller;
    struct daemon_waiter *waiter;
    uint32_t services;
    struct daemon_service *service[RNL_DAEMON_BUCKETS];
    struct daemon_hosts *hosts; /* NULL: there is no key, so no other host */
};

/* Listens at a name by which the daemon is found. Returns the socket; RNL_ERR_REFUSED: a daemon of
 * this kind runs already; RNL_ERR_ARG, RNL_ERR_SYSTEM. */
int rnl_daemon_listen(const struct rnl_daemon_options *);

/* ---- daemon.c ---- */

struct daemon_service *rnl_daemon_find(struct rnl_daemon *, uint32_t uid, const char name[RNL_MEET_NAME_BYTES]);
bool rnl_daemon_admits(const struct daemon_service *, uint32_t uid, const uint32_t *group, uint32_t groups);
void rnl_daemon_send_result(struct rnl_daemon *, struct daemon_caller *, uint32_t request_id, int status);
/* Sends a message without a descriptor, and wipes its bytes. Returns what rnl_seqpacket_send does. */
int rnl_daemon_send(const struct daemon_caller *, const struct rnl_meet_msg *);
void rnl_daemon_drop(struct rnl_daemon *, struct daemon_caller *);
void rnl_daemon_watch_room(struct rnl_daemon *, struct daemon_caller *, bool is_full);
void rnl_daemon_due(struct rnl_daemon *, uint64_t at_ns); /* asks for a step at that time */

/* ---- daemon_hosts.c: introductions between hosts ---- */

/* Reads the key and listens for daemons of other hosts. 0, with d->hosts NULL if there is no key; or a status. */
int rnl_daemon_hosts_new(struct rnl_daemon *);
void rnl_daemon_hosts_free(struct rnl_daemon *);
uint32_t rnl_daemon_hosts_calls(const struct rnl_daemon *);
void rnl_daemon_hosts_event(struct rnl_daemon *, void *source, uint32_t events); /* whose first byte is CALL or HOSTS */
void rnl_daemon_hosts_late(struct rnl_daemon *); /* ends what is over, and what is too late; frees */
/* What callers ask. */
void rnl_daemon_call_came(struct rnl_daemon *, struct daemon_caller *, const struct rnl_meet_call *);
void rnl_daemon_reply_came(struct rnl_daemon *, struct daemon_caller *, const struct rnl_meet_reply *);
void rnl_daemon_part_came(struct rnl_daemon *, struct daemon_caller *, uint32_t call);
void rnl_daemon_call_cancel(struct rnl_daemon *, const struct daemon_caller *, uint32_t request_id);
void rnl_daemon_hosts_forget(struct rnl_daemon *, struct daemon_caller *); /* it is gone */
void rnl_daemon_hosts_serve(struct rnl_daemon *); /* services or room are there that were not before */

#endif
