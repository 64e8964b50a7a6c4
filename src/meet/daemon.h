/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon.h - the daemon keeps the names of services, and gives a process that reaches one to the process that serves
 * it: it passes one end of a pair of sockets on (proto.h), and then knows nothing of the two. It shares no memory
 * with anybody and waits for nobody: it owns what its loop calls, as an agent does (agent.h).
 *
 * There is one for each user, or one of root's for all. A service belongs to the user of the process that serves it;
 * the daemon of a user takes services of that user only. The kernel says who asks (SO_PEERCRED), once, when the
 * process connects; a caller that sends wrong bytes, too many of them, or does not read its replies is hung up on. What
 * is kept for a caller is bounded, and so is the number of callers of each user.
 *
 * It is found by a name of the abstract socket namespace, which anybody may take first. Then it takes a name with a
 * random end, and who calls looks through the kernel's list of names for one that the right user listens at. So there
 * is nothing that could be taken from it, and nothing that stays when it ends, as a file would. */
#ifndef RNL_MEET_DAEMON_H
#define RNL_MEET_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rnl_daemon;

/* The streams to daemons of other hosts, where they are not the kernel's: in the virtual cluster. Descriptors are those
 * of stream sockets that do not block. */
struct rnl_daemon_net {
    int (*listen)(void *arg, uint16_t port); /* a descriptor, readable when somebody calls; or -errno */
    int (*accept)(void *arg, int listen, unsigned char ip[16]); /* a descriptor, or -errno */
    int (*dial)(void *arg, const unsigned char ip[16], uint16_t port);
    void *arg;
    unsigned char key[32]; /* that all hosts have */
};

struct rnl_daemon_options {
    bool of_node;     /* takes services of all users; for root */
    const char *name; /* NULL, or what $RUNNEL_DAEMON says */
    uint32_t callers; /* at most; 0 = 4096 */
    const char *key;  /* file of the node key; NULL: the user's, and if there is none no other host is talked to */
    uint16_t port;    /* at which daemons of other hosts are listened for; 0 = the key's */
    const struct rnl_daemon_net *net; /* NULL: the kernel's streams; else `key` counts for nothing */
    int attempts;                     /* how often, 10 ms apart, to look whether whoever has a name begins to listen */
};
/* 0; RNL_ERR_REFUSED: another daemon runs; RNL_ERR_ARG, RNL_ERR_SYSTEM, RNL_ERR_NO_MEMORY. */
int rnl_daemon_new(const struct rnl_daemon_options *, struct rnl_daemon **out);
void rnl_daemon_free(struct rnl_daemon *);

/* Returns a descriptor that is readable while rnl_daemon_step has something to do. */
int rnl_daemon_fd(const struct rnl_daemon *);
void rnl_daemon_step(struct rnl_daemon *, uint64_t now_ns);
uint64_t rnl_daemon_deadline_ns(const struct rnl_daemon *); /* when to step even without input; UINT64_MAX = never */

struct rnl_daemon_state {
    uint32_t callers, services, waiting;
};
void rnl_daemon_state(const struct rnl_daemon *, struct rnl_daemon_state *out);

/* Connects to the daemon that keeps the services of this user. Returns the socket, which does not block; -ECONNREFUSED:
 * none runs; -EAGAIN: who listens has no room for more callers now; another -errno. */
int rnl_daemon_connect(uid_t uid, const char *name);
/* Starts `runnel daemon` for this user, and waits for nothing. *child, until rnl_daemon_started has seen its end, is a
 * process that puts the daemon into the background. 0 or RNL_ERR_UNREACHABLE. */
int rnl_daemon_start(pid_t *child);
int rnl_daemon_started(pid_t *child); /* 1 = it has done so, or there is none; 0 = not yet; RNL_ERR_UNREACHABLE */
/* Returns what $RUNNEL_DAEMON says, NULL = nothing, or nothing that is a name. */
const char *rnl_daemon_named(void);

#endif
