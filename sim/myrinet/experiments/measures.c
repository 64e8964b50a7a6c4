/* SPDX-License-Identifier: BSD-3-Clause
 *
 * measures.c - what the measures are called, which of them a system has, and which systems have a property. */
#include "sim/myrinet/experiments/run.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* The name of each measure, its unit, and what it is, as `runnel paper list` says it. */
static const char *const names[MYRI_MEASURES][3] = {
    {"one-way", "us",
     "a message and its answer, one at a time: half of the round trip, the mean over phases of the cards' loops"},
    {"round-trip", "us", "the same, the whole round trip"},
    {"ping-rate", "MB/s", "the same, as bytes of a message in its one way"},
    {"stream-rate", "MB/s", "messages one behind the other, one way, as they come to the receiver"},
    {"both-rate", "MB/s", "both ways in all: each node sends a message, then waits for the other's"},
    {"send-cost", "us", "until send returns, when nothing else goes on"},
    {"post-cost", "us", "until a send returns that may leave its buffer in use"},
    {"local-rate", "MB/s", "transfers by DMA from a host to its own card"},
    {"copy-rate", "MB/s", "the same, each after a copy"},
    {"store-rate", "MB/s", "the host stores into its card, through write combining where there is some"},
    {"plain-rate", "MB/s", "the same, without write combining"},
    {"pin-rate", "MB/s", "as local-rate, with a system call and pinning before each transfer"},
    {"goodput", "MB/s", "what arrives of --senders, at a receiver that may be --slow"},
    {"answer", "us", "from a question to a host that computes (--slow) until its answer is there"},
    {"answer-cost", "us", "of computing that each such question costs, with the looks for it"},
    {"wire-cost", "B/B", "as goodput: bytes on the wire for each byte that the receiver's program gets"},
    {"to-all", "us", "from a message of one node until the last of --receivers has it"},
    {"all-rate", "MB/s", "such messages one behind the other, at the last of the receivers"},
    {"fetch", "us", "the next sequence number, 0, 1, 2 and so on, is had from node 0's card"},
    {"take-cost", "us", "until receive returns, of a message that came long ago"},
    {"call", "us", "from a remote call until its reply is there"},
    {"call-rate", "MB/s", "such calls one behind the other, bytes of request and reply"},
    {"jacobi", "us", "an iteration of Jacobi's method, on --receivers and one nodes"},
    {"turns", "us", "a multicast, where two of --receivers and one nodes multicast in turn, the mean over all pairs"},
    {"switch-cost", "us", "saving what a card knows of one job and restoring another's"},
    {"switch-time", "us", "from the end of a job's quantum until the next one goes on, on all nodes"},
};

const char *myri_measure_name(enum myri_measure m)
{
    return names[m][0];
}

const char *myri_measure_unit(enum myri_measure m)
{
    return names[m][1];
}

const char *myri_measure_about(enum myri_measure m)
{
    return names[m][2];
}

int myri_measure_can(const struct myri_system *s, enum myri_measure m)
{
    switch (m) {
    case MYRI_CALL:
    case MYRI_CALL_RATE:
        return s->call != NULL;
    case MYRI_JACOBI:
        return s->jacobi != NULL;
    case MYRI_TURNS:
        return s->to_all && s->serve;
    case MYRI_FETCH:
        return s->receive && s->fetch;
    case MYRI_SWITCH_COST:
    case MYRI_SWITCH_TIME:
        return s->receive && s->turns;
    case MYRI_LOCAL_RATE:
    case MYRI_COPY_RATE:
    case MYRI_STORE_RATE:
    case MYRI_PLAIN_RATE:
    case MYRI_PIN_RATE:
        return !s->receive && s->send;
    default:
        return s->receive != NULL;
    }
}

enum myri_measure myri_measure_usual(const struct myri_system *s, enum myri_measure usual)
{
    int m = s->call ? (int)MYRI_CALL : (int)usual;
    for (int k = 0; k < MYRI_MEASURES && !myri_measure_can(s, (enum myri_measure)m); k++)
        m = k;
    return (enum myri_measure)m;
}

static void add(char *list, size_t room, const char *name)
{
    size_t n = strlen(list);
    snprintf(list + n, room - n, "%s%s", n ? ", " : "", name);
}

int myri_system_has(const struct myri_system *s, enum myri_property p)
{
    switch (p) {
    case MYRI_HAS_NOTIFY:
        return s->notifies;
    case MYRI_HAS_FETCH:
        return s->fetch != NULL;
    case MYRI_HAS_TURNS:
        return s->turns != NULL;
    case MYRI_HAS_CACHE:
        return s->translates;
    case MYRI_HAS_PLACES:
        return s->translates || s->by_place;
    case MYRI_HAS_PROCESSES:
        return s->processes_most > 1;
    case MYRI_HAS_SPACES:
        return s->virtual;
    default:
        return s->to_all != NULL;
    }
}

/* Another system with that property has the first part of its name. */
static int is_variant(const char *name, enum myri_property p)
{
    for (int i = 0; myri_systems[i]; i++) {
        size_t n = strlen(myri_systems[i]->name);
        if (myri_system_has(myri_systems[i], p) && strncmp(name, myri_systems[i]->name, n) == 0 && name[n] == '-')
            return 1;
    }
    return 0;
}

const char *myri_systems_with(enum myri_property p)
{
    static _Thread_local char list[160];
    list[0] = 0;
    for (int i = 0; myri_systems[i]; i++)
        if (myri_system_has(myri_systems[i], p) && !is_variant(myri_systems[i]->name, p))
            add(list, sizeof list, myri_systems[i]->name);
    return list;
}

const char *myri_measures_of(const struct myri_system *s)
{
    static _Thread_local char list[240];
    list[0] = 0;
    for (int k = 0; k < MYRI_MEASURES; k++)
        if (myri_measure_can(s, (enum myri_measure)k))
            add(list, sizeof list, myri_measure_name((enum myri_measure)k));
    return list[0] ? list : "nothing";
}

int myri_measure_refused(const struct myri_system *s, enum myri_measure m)
{
    return rnl_fail(RNL_ERR_ARG, "%s of %s cannot be measured; what can: %s", myri_measure_name(m), s->name,
                    myri_measures_of(s));
}
