/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs.h - what a scenario can do to hosts and ranks. */
#ifndef RNL_CLUSTER_VERBS_H
#define RNL_CLUSTER_VERBS_H

#include <stdint.h>

struct rnl_cluster;

struct rnl_verb {
    const char *name, *arguments, *what;
    int least, most; /* arguments */
    int (*run)(struct rnl_cluster *, int count, const char *const *arguments, int dry);
};
extern const struct rnl_verb rnl_verbs[]; /* ends with name == NULL */

/* words[0] is the verb. dry: only looks whether it could. 0, RNL_ERR_ARG; RNL_ERR_UNSUPPORTED: it is none of these. */
int rnl_verb_run(struct rnl_cluster *, int count, const char *const *words, int dry);

/* 1 = it is one: "5ms" in ns; "17", at most `most`. */
#define RNL_VERB_TIME_MAX_S 184467440
#define RNL_VERB_TIME_IS    "a time like 5ms, at most 184467440s"
int rnl_verb_time(const char *text, uint64_t *ns);
int rnl_verb_number(const char *text, uint64_t most, uint64_t *out);

#endif
