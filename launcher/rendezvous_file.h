/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous_file.h - the bootstrap socket and the file that leads to it (job/rendezvous.h). */
#ifndef RNL_LAUNCHER_RENDEZVOUS_FILE_H
#define RNL_LAUNCHER_RENDEZVOUS_FILE_H

struct rnl_launch;

/* Listens at the job's rendezvous_address, NULL: at all of this host, and writes the file, which must not be there yet.
 * 0, *fd (non-blocking, the caller's); or -1: it has been said why. */
int rnl_rendezvous_file_new(const struct rnl_launch *, const unsigned char *key, int *fd);

#endif
