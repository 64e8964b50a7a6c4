/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link.h - what remote.c, link.c and those beside it share: the links of an endpoint. */
#ifndef RNL_ENDPOINT_LINK_H
#define RNL_ENDPOINT_LINK_H

#include "endpoint/mirror.h"
#include "endpoint/remote.h"
#include "reliable/flow.h"
#include "reliable/handshake.h"
#include "reliable/ways.h"
#include "transport/contract.h"

/* What can wait goes with what the program may answer to what it has just been given, or when the next extract begins.
 */
enum rnl_link_mark { RNL_LINK_CAN_WAIT = 1, RNL_LINK_PRESSES };

enum { RNL_REMOTE_MTU_NEAR = 65504 }; /* the longest datagram, cut to a multiple of 32; over IPv6 it is cut again */

struct rnl_link_ways { /* of a peer that has several addresses */
    struct rnl_ways ways;
    struct rnl_addr addr[RNL_WAYS_MAX];
    uint8_t hello; /* where the next HELLO goes */
};

struct rnl_link {
    struct rnl_remote *remote;
    struct rnl_conn *conn;
    struct rnl_link *next; /* of those that are queued */
    uint32_t heap;         /* 1 + its place there; 0 = none */
    uint32_t awake;        /* 1 + its place in that list; 0 = it rests, or the peer is gone */
    uint32_t rings;        /* since it was marked */
    uint8_t marked;        /* it may have something to give out: enum rnl_link_mark */
    uint8_t queued;        /* ... or had, and has its turn in any case */
    uint8_t flows;         /* the flow is there: the handshake came to a connection */
    uint8_t up;            /* ... and may send */
    uint8_t over;          /* nothing any more */
    uint8_t ecn;           /* packets are marked as capable */
    uint8_t untold;        /* words that go with the next acknowledgement */
    uint8_t same_kernel;   /* struct rnl_place */
    struct rnl_hs_peer hs;
    struct rnl_flow flow;
    struct rnl_path path;       /* of this peer alone: nobody has told which are equally far */
    struct rnl_link_ways *ways; /* NULL: it has one address */
    char *why;                  /* a sentence: why no connection came about; NULL = none is known */
    struct rnl_mirror *mirror;  /* NULL: it rests */
    /* what is left of pair and mirror then */
    struct rnl_words words[2];
    struct rnl_mirror_rest rest;
};

struct rnl_link_due {
    uint64_t due_ns; /* at or before its deadline; a later one is found out when it is due */
    struct rnl_link *link;
};

struct rnl_link_awake {
    uint64_t moved_ns; /* something happened then, or later */
    struct rnl_link *link;
};

struct rnl_remote {
    struct rnl_endpoint *ep;
    struct rnl_transport *t;
    struct rnl_link *first, **last; /* queued, in the order in which they give out */
    struct rnl_link_due *heap;      /* by due_ns */
    uint32_t heap_count;
    uint32_t awake;                  /* links that do not rest, of peers that are not gone, ... */
    struct rnl_link_awake *awakes;   /* ... in any order */
    uint64_t rest_ns, rest_after_ns; /* when to look again for links that may rest; how long they have to be still */
    uint32_t few;                    /* so many may be awake that long */
    uint32_t woke;                   /* since we looked last */
    uint32_t vain;                   /* times in a row that nothing had come */
    uint64_t received_ns;            /* when we looked last */
    uint64_t ask_ns;                 /* when to look for idle peers that nobody answers for (link_ask.c) */
    uint64_t sent_ns;                /* when links had their turn last, or one of them: their times never go back */
    uint8_t drained;                 /* the last poll brought less than it could */
    uint8_t receiving;
    uint8_t answered; /* without state, and the transport may hold it back */
    uint8_t presses;  /* one of the links that are queued does, ... */
    uint8_t left;     /* ... or did not, and the last extract has left it */
    uint32_t window;  /* bytes that the transport keeps for us */
    struct rnl_handshake hs;
    struct rnl_job_keys keys;
    struct rnl_ciphers ciphers;
    struct rnl_sealer sealer;
    void *sealer_memory;
    struct rnl_key_limits limits;
    struct rnl_flow_config config, config_near; /* ... for peers under our own kernel, of whom other trips are near: */
    uint32_t near_ns;
    struct rnl_flow_counters *count; /* in ep->c */
    uint8_t has_word;                /* a packet that is being taken in was a challenge, or the answer to one: */
    struct rnl_path_word word;
    uint64_t unasked; /* answers to challenges that were none, or not from where they were asked for */
};

enum { RNL_CLOSE_LEAVES = 1, RNL_CLOSE_BROKEN }; /* reasons in a CLOSE */

/* remote.c; when links are due: link_due.c */
void rnl_remote_answer(struct rnl_remote *r, const struct rnl_view *v, const void *at, uint32_t bytes, uint64_t now_ns);
void rnl_remote_mark(struct rnl_link *link, enum rnl_link_mark how);
/* The link wants to be looked at by then. */
void rnl_remote_due(struct rnl_link *link, uint64_t due_ns);
void rnl_remote_not_due(struct rnl_link *link); /* ever */

/* link_ways.c */
/* All addresses of the peer, as the job tells them: 0, or RNL_ERR_NO_MEMORY. */
int rnl_link_ways_new(struct rnl_link *link);
/* Is that one of the addresses of `rank`? Nothing from elsewhere is looked at. *first: the first of them. */
int rnl_link_is_of(struct rnl_remote *r, uint32_t rank, const struct rnl_addr *from, struct rnl_addr *first);
/* The connection was made with the peer at the address where `v` came from: packets go there. */
void rnl_link_aim_at(struct rnl_link *link, const struct rnl_view *v);
/* HELLOs are said at one address after the other. */
int rnl_link_hello_send(struct rnl_link *link, const void *at, uint32_t bytes, uint64_t now_ns);
/* UNKNOWN came with that packet number of the control space: 1 = it is of a challenge that went there. */
int rnl_link_challenged(const struct rnl_link *link, const struct rnl_view *v, uint64_t number);
/* A packet that was new: does it say something about ways? */
void rnl_link_ways_input(struct rnl_link *link, const struct rnl_view *v, uint64_t now_ns);
/* A packet was made for the aim: is it the end, to be said at the others, too? Then this says it there, when the
 * rooms are committed. */
int rnl_link_ways_ends(const struct rnl_link *link, const void *at, uint32_t bytes);
void rnl_link_ways_end(struct rnl_link *link, uint64_t now_ns);
/* Before anything is given out: where does it go? */
void rnl_link_ways_step(struct rnl_link *link, uint64_t now_ns);

/* link.c */
int rnl_link_new(struct rnl_remote *r, struct rnl_conn *conn, struct rnl_link **out);
/* A datagram of an established connection, or a HELLO, from that peer's address. */
void rnl_link_input(struct rnl_link *link, const struct rnl_view *v, uint64_t now_ns);
void rnl_link_hello(struct rnl_remote *r, struct rnl_link *link, const struct rnl_view *v, uint64_t now_ns);
/* UNKNOWN from that address: it does not have our connection. */
void rnl_link_unknown(struct rnl_link *link, const struct rnl_view *v, uint64_t now_ns);
/* Gives out what may go, up to a few runs of datagrams; of so many bytes that have piled up while more is composed only
 * what makes full ones (0 = no more is). 1 = there is more, as soon as others had their turn. It is flushed by the last
 * of a round, before anything else: a call into the network for each of hundreds of peers costs more than all that
 * these do. Who has called flushes in any case. */
int rnl_link_output(struct rnl_link *link, uint64_t piled, uint64_t now_ns, int last);
void rnl_link_want(struct rnl_link *link, uint64_t now_ns);

/* link_ask.c */
/* It is silent: whether the agents answer for it. Who has not come to call in yet is waited for as well. */
void rnl_link_ask_others(struct rnl_link *link, uint64_t now_ns);
/* When ask_ns has passed. */
void rnl_link_ask_idle(struct rnl_endpoint *ep, uint64_t now_ns);

/* link_rest.c */
/* It has its mirror, and is looked at from now on. */
void rnl_link_awakes(struct rnl_link *link);
/* What has been read of it goes with its next acknowledgement, or at once where none is owed. */
void rnl_link_tell(struct rnl_link *link);
/* Those on which nothing has happened for a while rest; now and then, however often it is called. */
void rnl_link_let_rest(struct rnl_endpoint *ep, uint64_t now_ns);

#endif
