/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.h - how ranks that are MPI's find each other: a node agent serves PMI-1 (pmi.h) and PMIx (pmix.h), and
 * the launcher exchanges between hosts what their ranks say before a barrier or a fence. */
#ifndef RNL_LAUNCHER_MPI_H
#define RNL_LAUNCHER_MPI_H

#include "launcher/control.h"

struct rnl_node_agent;
struct rnl_launcher;
struct rnl_node;

/* ---- mpi.c: in a node agent ---- */

/* Prepares to serve. Failures end in FAIL. */
void rnl_mpi_prepare(struct rnl_node_agent *);
/* Makes the rank's connection, and puts its end and what else is the rank's alone into `how`. 0 or -errno. */
int rnl_mpi_add(struct rnl_node_agent *, uint32_t rank);
/* Takes in FENCE. 0, or -1 if it must not come. */
int rnl_mpi_receive(struct rnl_node_agent *, struct rnl_unpack *);
void rnl_mpi_work(struct rnl_node_agent *); /* called in each turn of the loop */
void rnl_mpi_end(struct rnl_node_agent *, uint32_t rank);
void rnl_mpi_free(struct rnl_node_agent *); /* when the loop has closed its handles */

/* ---- fence.c: in the launcher ---- */

/* Takes in FENCE. 0, or -1 if it must not come. */
int rnl_fence_receive(struct rnl_node *, struct rnl_unpack *);
/* Ends the fences that all hosts have come to whose ranks run; called in each turn of the loop. */
void rnl_fence_work(struct rnl_launcher *);

#endif
