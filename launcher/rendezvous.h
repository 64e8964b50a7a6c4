/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous.h - the launcher's side of job/rendezvous.h: node agents that processes have started on their hosts call
 * at its bootstrap socket and report who waits there to join. When all have come, it is known which hosts the job has,
 * and which ranks are where; from then on these agents are like those that are started over ssh. */
#ifndef RNL_LAUNCHER_RENDEZVOUS_H
#define RNL_LAUNCHER_RENDEZVOUS_H

struct rnl_bootstrap;
struct rnl_launcher;

/* Listens, and writes the file. 0, or -1 after printing the reason. */
int rnl_rendezvous_open(struct rnl_launcher *);
void rnl_rendezvous_work(struct rnl_launcher *); /* called in each turn of the loop */
/* How many have joined. */
unsigned rnl_rendezvous_joined(const struct rnl_bootstrap *);
/* Removes the file; when the loop has closed its handles. Fine on NULL. */
void rnl_rendezvous_free(struct rnl_bootstrap *);

#endif
