/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conform.h - the conformance suite of net/datagram/transport.h: the same bodies over every kind of socket, bare and
 * wrapped in faults. A socket plugs in with a fixture that makes some transports over it, and a main that hands the
 * fixture to conform_run; conform_udp.c is the shortest example. Bodies that need what the transport does not claim are
 * skipped, counted and named with the reason. */
#ifndef RNL_TESTS_CONFORM_CONFORM_H
#define RNL_TESTS_CONFORM_CONFORM_H

#include "base/env.h"
#include "net/datagram/transport.h"

enum { CONFORM_PLACES = 4 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFORM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CONFORM_SANITIZED 1
#endif
#endif
#ifndef CONFORM_SANITIZED
#define CONFORM_SANITIZED 0
#endif
/* Counts of random runs, smaller where every access is checked. */
#define CONFORM_COUNT(n) (CONFORM_SANITIZED ? ((n) + 9) / 10 : (n))

struct conform_net { /* a fresh one for each body; the bodies connect everybody with everybody */
    struct rnl_transport *t[CONFORM_PLACES]; /* t[i] is rank i, ... */
    struct rnl_addr addr[CONFORM_PLACES];    /* ... and this is where the others reach it */
    void *state;                             /* the fixture's */
};

struct conform_fixture {
    const char *name;
    unsigned places; /* 1 = one transport that talks to itself */
    bool threads;    /* bodies of random traffic give each transport a thread of its own */
    /* Sets net->t and net->addr [0 .. places - 1], and net->state. 0, or negative: the case fails. */
    int (*make)(struct conform_net *net);
    /* Lets time pass and packets travel, where they do not by themselves. May be NULL. Never called when threads run.
     */
    void (*step)(struct conform_net *net);
    int wakes_ms; /* an arrival makes the descriptor readable within so many ms; 0: at once */
    /* Closes those of net->t that are not NULL, then frees the rest. */
    void (*destroy)(struct conform_net *net);
    const char *faults; /* all transports are wrapped in these; "": in none that strike; NULL: they are bare */
};

struct conform_case {
    const struct conform_fixture *fixture;
    struct conform_net net;
    uint64_t seed;
};

enum { CONFORM_FD = 1, CONFORM_ECN = 2, CONFORM_THREADS = 4 };

struct conform_body {
    const char *name;                   /* the promise, as a sentence */
    uint32_t needs;                     /* CONFORM_... */
    unsigned least_places, most_places; /* 0 = any */
    void (*run)(struct conform_case *);
};

extern const struct conform_body conform_bodies[], conform_traffic_bodies[]; /* each ends with !name */

/* Runs all bodies; the exit status of main. RNL_SEED in the environment replaces the seed, which is printed. */
int conform_run(const struct conform_fixture *fixture);

/* ---- for bodies ---- */

/* Connects everybody with everybody. */
void conform_connect(struct conform_case *c);
void conform_step(struct conform_case *c);
uint64_t conform_now(struct rnl_transport *t);
/* Who sends to whom in bodies of two: from place 0 to place 1, or to itself. */
struct rnl_transport *conform_sender(struct conform_case *c);
struct rnl_transport *conform_receiver(struct conform_case *c);
uint32_t conform_from(struct conform_case *c);
uint32_t conform_to(struct conform_case *c);

/* Flush until all went. */
void conform_flush(struct conform_case *c, struct rnl_transport *t);

#endif
