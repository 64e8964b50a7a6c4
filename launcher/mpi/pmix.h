/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix.h - a node agent as a PMIx server, by which the ranks of Open MPI and its kin find each other. libpmix does
 * it, and is loaded only when it is wanted: it has threads, and takes a tenth of a second to begin, and nearly as long
 * to end, which is left to the end of the process. */
#ifndef RNL_LAUNCHER_MPI_PMIX_H
#define RNL_LAUNCHER_MPI_PMIX_H

#include "launcher/control.h"

struct rnl_pmix_server;

/* Whether the file of a program has the name of that library in it. */
bool rnl_program_names(const char *path, const char *name);
/* Begins to serve the job's ranks of this host, once in a process. NULL, and a sentence that says why not. */
struct rnl_pmix_server *rnl_pmix_server_new(uv_loop_t *, const struct rnl_job_spec *, const char *host, char *sentence,
                                            size_t room);
/* Puts the variables by which that rank finds the server into *out, valid until the next call. 0 or -errno. */
int rnl_pmix_server_add(struct rnl_pmix_server *, uint32_t rank, char ***out);
/* Whether all ranks of this host have come to a fence over all hosts, which is told once; with what they bring. */
bool rnl_pmix_server_fence(struct rnl_pmix_server *, const void **bytes, size_t *count);
/* Tells libpmix that the fence over all hosts is over, and what all hosts have brought. */
void rnl_pmix_server_fenced(struct rnl_pmix_server *, const void *bytes, size_t count);

#endif
