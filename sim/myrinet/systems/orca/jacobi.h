/* SPDX-License-Identifier: BSD-3-Clause
 *
 * jacobi.h - the linear equation solver of paper 003 (5.2.2): a vector that each node has a copy of, to which each node
 * writes its part after each iteration, and a guard that waits for the parts of all. */
#ifndef MYRI_ORCA_JACOBI_H
#define MYRI_ORCA_JACOBI_H

#include "sim/myrinet/systems/orca/orca.h"

enum { JACOBI_MOST = 512, JACOBI_NUMBER = 8, JACOBI_HEAD = 8 };

/* A node's copy. */
struct jacobi {
    double x[JACOBI_MOST], next[JACOBI_MOST];
    uint32_t equations, nodes, stored, round;
    struct orca_object *object;
    uint32_t in, out; /* host addresses */
};

/* On all nodes, when objects are made. */
void jacobi_open(struct jacobi *, struct orca *, uint32_t equations);
/* So many iterations from zero on; a sum of the bits of the solution. */
uint32_t jacobi_run(struct jacobi *, struct orca *, uint32_t iterations);

#endif
