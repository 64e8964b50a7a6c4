/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet.h - processes that no launcher started together: an endpoint alone, to which peers come and from which they go.
 *
 * rnl_open with RNL_ALONE makes an endpoint whose rank is 0 and which has no peers. A peer is added by an introduction:
 * one process serves under a name and the other reaches it (rnl_serve, rnl_reach), one inserts the printable address of
 * the other (rnl_address, rnl_insert), or both are connected by a unix socket already (rnl_introduce). From then on all
 * of runnel.h works between the two.
 *
 * A peer's number is a name that this endpoint alone uses, from 1 to rnl_size() - 1. It is the program's until
 * rnl_leave gives it back, also if the peer has died; later introductions use it again, with another incarnation.
 *
 * Peers may be on other hosts, too: "NAME@HOST" is a service there. The daemons of both hosts introduce the two if they
 * have one key (runnel-key(1)), which root installs for all users or a user for itself; each daemon says who its
 * process is. Then all of runnel.h works between the two, over the network.
 *
 * Who may talk is decided by the kernel's credentials: an introduction names the effective user and group and the
 * process of each side to the other, and the system vouches for them. Names of services belong to users, so nobody can
 * take the name of another user's service. Names are kept by a daemon (runnel-daemon(1)), which a process starts if
 * there is none: until that is in the background, which is a moment, the process has a child that it did not make. The
 * daemon takes no part in what introduced processes say to each other.
 *
 * In a child process made by fork no function of an endpoint works, as in runnel.h. */
#ifndef RNL_MEET_H
#define RNL_MEET_H

#include <runnel/runnel.h>

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rnl_cred {
    /* effective user and group when the peer was introduced; -1: this process's user namespace does not have them */
    uid_t uid;
    gid_t gid;
    pid_t pid; /* 0 = not visible from this process's pid namespace, or on another host */
};

enum { RNL_ADMIT_ANYONE = 1 };
/* Who may be introduced: whoever is of one of these users or groups, or anyone; root and the own user always. Of a
 * process that reaches, inserts or offers supplementary groups count (up to 128); of one that accepts (RNL_ACCEPT) its
 * effective group alone. Who is of no user that this process's user namespace has is admitted by RNL_ADMIT_ANYONE
 * only. The peers that one other user's processes become by coming here take a quarter of the numbers at most. */
struct rnl_admit {
    uint32_t flags; /* 0 or RNL_ADMIT_ANYONE */
    unsigned uids, gids;
    const uid_t *uid; /* copied by the call; at most 32 users and 32 groups */
    const gid_t *gid;
};

/* Function that rnl_serve registers: cred asks to become `peer`. It returns 0 to let it in, anything else to refuse it.
 * It runs in progress calls, under the rules of rnl_post's done; messages to the peer can be sent after it has
 * returned. */
typedef int rnl_connection_request(void *ctx, unsigned peer, const struct rnl_cred *cred);

/* Offers the service of this name, of up to 63 bytes of letters, digits and ._-, to other processes of this host, and
 * of hosts whose daemons have the same key. `who` says who may reach it; NULL: processes of the same user. f, unless it
 * is NULL, is asked about each. A service can be offered by one endpoint at a time, and is offered until the endpoint
 * is closed or rnl_unserve is called. Waits for the daemon, and starts it if need be. Not inside handlers. Returns 0,
 * RNL_ERR_ARG, RNL_ERR_REFUSED (another process of this user offers it), RNL_ERR_UNREACHABLE (the daemon cannot be
 * started), RNL_ERR_UNSUPPORTED (not an endpoint alone), RNL_ERR_NO_MEMORY, RNL_ERR_CONTEXT, RNL_ERR_FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_serve(rnl_endpoint *ep, const char *service, const struct rnl_admit *who,
                                   rnl_connection_request *f, void *ctx);
/* Ends the offer; peers that were introduced stay. Returns 0, RNL_ERR_ARG (it is not offered), _UNSUPPORTED, _FORKED.
 */
RNL_PUBLIC int rnl_unserve(rnl_endpoint *ep, const char *service);

/* Reaches the process that offers this service: "NAME" of the own user, or "USER/NAME", USER being a number or a login
 * name; on another host "NAME@HOST" or "USER/NAME@HOST", HOST being a name or an address, after which the port of the
 * daemon there may follow ("[fd00::1]:20001"; else it is the key's). Where daemons of users are used, a user is known
 * on the other host by the key, whatever its number is there. A name of a host is looked up, which may take time. Runs
 * handlers and waits until it is introduced, which includes that it is offered. *peer is its number. With timeout_ns 0
 * it returns at once: the peer is RNL_PEER_NEW until it is introduced; if it cannot be, it dies
 * (RNL_DEATH_NEVER_JOINED, detail is the status). Negative: no limit. Inside handlers only with 0. Returns 0,
 * RNL_TIMED_OUT (nobody offers it), RNL_ERR_REFUSED (not admitted), RNL_ERR_UNREACHABLE (there is no daemon; for
 * another host: the daemon here has no key, or none with the same key answers there), RNL_NO_ROOM (all numbers are in
 * use), RNL_ERR_ARG, _UNSUPPORTED, _NO_MEMORY, _SYSTEM, _CONTEXT, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_reach(rnl_endpoint *ep, const char *service, int64_t timeout_ns, unsigned *peer);

enum rnl_introduce_side { RNL_OFFER = 1, RNL_ACCEPT = 2 };
/* Introduces this endpoint to another one through a connected unix socket (SOCK_STREAM or SOCK_SEQPACKET) that both
 * processes have; one side offers and the other accepts. Nothing else may be read from the socket meanwhile; afterwards
 * it is the program's as before. who: whom to accept as the other side; NULL: the same user. Waiting, *peer and errors
 * are those of rnl_reach; RNL_ERR_REFUSED: one side does not admit the other. */
RNL_PUBLIC RNL_CHECK int rnl_introduce(rnl_endpoint *ep, int socket, enum rnl_introduce_side side,
                                       const struct rnl_admit *who, int64_t timeout_ns, unsigned *peer);

enum { RNL_ADDRESS_BYTES = 128 };
/* Writes the address of this endpoint, a printable string of less than RNL_ADDRESS_BYTES with its 0, to buf. Whoever
 * has it, and is admitted, can insert it; so it is to be given to nobody else. Where a key for other hosts is installed
 * (runnel-key(1)), or the endpoint's daemon runs already, it also names this host, and can be inserted from others.
 * `who`, f and ctx say who is admitted, as for rnl_serve; a later call replaces them. Returns 0, RNL_ERR_ARG (n is too
 * small), _UNSUPPORTED, _SYSTEM, _NO_MEMORY, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_address(rnl_endpoint *ep, const struct rnl_admit *who, rnl_connection_request *f,
                                     void *ctx, char *buf, size_t n);
/* Makes the endpoint that has this address a peer; returns at once, as rnl_reach with timeout 0 does. An address that
 * is a peer already gives the number of that peer, also if the peer came here, or is on its way: two endpoints that
 * insert each other are one peer of each other. One that waits to be let in is let in. The own address is peer 0.
 * Returns 0, RNL_ERR_ARG (not an address), RNL_ERR_UNREACHABLE (it is of another host and does not name it, or that
 * endpoint is closed; of one on another host the peer's death tells that), RNL_ERR_REFUSED, RNL_NO_ROOM, _UNSUPPORTED,
 * _SYSTEM, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_insert(rnl_endpoint *ep, const char *address, unsigned *peer);

/* Copies the credentials of a peer, which stay readable after its death until rnl_leave. RNL_ERR_RANK: no such peer has
 * been introduced. */
RNL_PUBLIC RNL_CHECK int rnl_peer_cred(rnl_endpoint *ep, unsigned peer, struct rnl_cred *out);
/* Whether the peer is the endpoint of this address: 1, or 0 for another one's, or if neither side inserted it. It can
 * be asked after the peer's death until rnl_leave, and connects nobody: the way to check what a peer says its address
 * is. RNL_ERR_ARG: not an address; RNL_ERR_RANK: no such peer has been introduced. */
RNL_PUBLIC RNL_CHECK int rnl_peer_is(rnl_endpoint *ep, unsigned peer, const char *address);

/* Leaves the peer and gives its number back. The peer takes in what was sent to it, and then finds this process dead
 * (RNL_DEATH_LEFT); what it has sent and was not taken in is lost, posts to it end with RNL_ERR_PEER_DEAD, and its
 * death is not reported here. Of what was sent to a peer on another host, that is lost which it has not acknowledged:
 * where this matters, let it answer before. Waits for nobody; allowed in handlers and in the functions that the library
 * calls. Returns 0, RNL_ERR_RANK (no such peer), RNL_BUSY (a message to it is open), _UNSUPPORTED, _FORKED. */
RNL_PUBLIC int rnl_leave(rnl_endpoint *ep, unsigned peer);

#ifdef __cplusplus
}
#endif
#endif
