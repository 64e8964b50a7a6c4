/* SPDX-License-Identifier: BSD-3-Clause
 *
 * orca.h - the part of Orca's run-time system that its figures are of (paper 003, sections 2.1, 3.1, 4.3 and 5.1.3):
 * shared objects, of which one node has the only copy, or each node one. An operation on the first kind is a call of
 * that node; one that writes an object of the second kind is multicast, and all nodes execute it in one order. Reads of
 * a copy are local.
 *
 * An operation whose guard is false is kept with its object, and tried again after each write: of the program's own
 * it waits, of another node's it is a continuation, which ties up no thread. The operation function is called once for
 * each copy, and has to do the same with the same state. */
#ifndef MYRI_ORCA_H
#define MYRI_ORCA_H

#include "sim/myrinet/systems/panda/below.h"

enum { ORCA_OBJECTS = 16, ORCA_OPERATIONS = 4, ORCA_BLOCKED = 64, ORCA_HEADER = 16 };
#define ORCA_EVERYWHERE 0xffffffffu

struct orca;
struct orca_object;
/* What an operation is called with: parameters and room for results, at host addresses. */
struct orca_arguments {
    uint32_t in, in_bytes, out, out_bytes, from; /* from: the node whose operation it is */
};
/* 0: its guard is false, and nothing has changed. */
typedef int orca_operation(struct orca *, struct orca_object *, struct orca_arguments *);

struct orca_type {
    orca_operation *operation[ORCA_OPERATIONS];
    unsigned writes; /* a bit for each operation that changes the object */
};

struct orca_object {
    const struct orca_type *type;
    uint32_t id, owner; /* a node, or ORCA_EVERYWHERE */
    void *state;        /* of this node's copy */
};

/* An operation that a process of this node waits for. */
struct orca_waiting {
    struct orca_arguments *arguments;
    int done;
};

struct orca_blocked {
    struct orca_blocked *next;
    struct orca_object *object;
    uint32_t operation;
    struct orca_waiting *waiting;  /* of this node; */
    struct panda_message *message; /* or of another */
};

/* The optimizations of section 4.3 that the run-time lacks. */
struct orca_lacks {
    unsigned marshalling : 1; /* routines made for each operation */
    unsigned lean : 1;        /* coarse locks, one header for all modules, few statistics, inlined procedures */
};

struct orca {
    struct panda_on on; /* first */
    struct myri_side *side;
    void *owner;
    struct orca_lacks lacks;
    struct orca_object object[ORCA_OBJECTS];
    uint32_t objects;
    struct orca_blocked blocked[ORCA_BLOCKED], *unused, *first, **last;
    struct orca_waiting *multicast;      /* this node's own, on its way */
    struct panda_message *late, **later; /* calls that are ahead of the multicasts that they came after */
    uint32_t handled_wanted;             /* a reply is ahead: of so many */
    int handled_enough;
    uint32_t message, reply, in, out; /* places for one of each, with what goes behind it */
};

/* After `lacks` and the lacks of its Panda have been set. -1 with a fault. */
int orca_open(struct orca *, struct myri_side *, enum panda_below);
/* In the same order on all nodes, before any operation. */
struct orca_object *orca_new(struct orca *, const struct orca_type *, uint32_t owner, void *state);
/* Whether it has been executed; not with a fault. */
int orca_invoke(struct orca *, struct orca_object *, uint32_t operation, struct orca_arguments *);

#endif
