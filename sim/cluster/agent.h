/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent.h - the launcher's part in a virtual job: who is in it, news, deaths, leaving together; and the segments that
 * ranks of one virtual host share, which lie on the heap. The same promises as job/hub.c. */
#ifndef RNL_CLUSTER_AGENT_H
#define RNL_CLUSTER_AGENT_H

#include "base/bell.h"
#include "base/env.h"

struct rnl_vagent;

/* notify(arg, rank): its news word has changed. 0, RNL_ERR_NO_MEMORY. */
int rnl_vagent_new(uint32_t size, void (*notify)(void *arg, uint32_t rank), void *arg, struct rnl_vagent **out);
void rnl_vagent_free(struct rnl_vagent *);

/* 0; RNL_ERR_JOB: it has been in the job before. */
int rnl_vagent_join(struct rnl_vagent *, uint32_t rank, uint64_t incarnation);
/* Another process of a rank that died; the others are told, and hear of it after the death. 0; RNL_ERR_JOB: the rank
 * lives, or the job has closed; RNL_ERR_NO_MEMORY. */
int rnl_vagent_rejoin(struct rnl_vagent *, uint32_t rank, uint64_t incarnation);
/* Which incarnation of `rank` is the one that `self` has been told of last; 0 = it has not joined. Of one that is no
 * more, never 0 and never that of the process that lives. */
uint64_t rnl_vagent_incarnation(const struct rnl_vagent *, uint32_t self, uint32_t rank);
/* It has ended, or left: the others are told, unless the job has closed. Again: nothing. */
void rnl_vagent_gone(struct rnl_vagent *, uint32_t rank, int why, int detail);
int rnl_vagent_event(struct rnl_vagent *, uint32_t rank, struct rnl_event *out);
int rnl_vagent_report(struct rnl_vagent *, uint32_t rank, uint64_t wave, uint64_t activity);
void rnl_vagent_part(struct rnl_vagent *, uint32_t rank, uint32_t from);
struct rnl_bell *rnl_vagent_bell(struct rnl_vagent *, uint32_t rank);
const _Atomic uint32_t *rnl_vagent_news(struct rnl_vagent *, uint32_t rank);

/* As in base/env.h. */
int rnl_vagent_segment_open(struct rnl_vagent *, uint32_t self, uint32_t rank, size_t bytes, int *segment);
int rnl_vagent_segment_map(struct rnl_vagent *, int segment, size_t offset, size_t bytes, void **at);
void rnl_vagent_segment_settle(struct rnl_vagent *, uint32_t self, int segment);
void rnl_vagent_segment_close(struct rnl_vagent *, uint32_t self, int segment);

#endif
