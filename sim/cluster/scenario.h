/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenario.h - what befalls a virtual cluster: a text with a line for each thing. The network's words are net.h's, the
 * others stand here. runnel-sim(1) describes it for users.
 *
 *   scenario := line*
 *   line     := [ "at" TIME ] VERB WORD*    an event, at 0 if nothing is said
 *             | "hosts" N | "switches" N | "link" NODE NODE     how it is built
 *             | "#" anything, to the end of the line */
#ifndef VC_SCENARIO_H
#define VC_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

struct vc_cluster;
struct vc_net;
struct vc_scenario;

/* Splits it. name: of its file, for errors, which begin with NAME:LINE. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int vc_scenario_read(const char *text, const char *name, struct vc_scenario **out);
void vc_scenario_free(struct vc_scenario *);
/* Adds a line, as if it stood before the others. */
int vc_scenario_add(struct vc_scenario *, const char *line);
uint32_t vc_scenario_hosts(const struct vc_scenario *); /* 0 = it does not say */

/* Makes c->net, for c->opt.hosts, and looks at all lines: nothing can be wrong with them later. */
int vc_scenario_build(struct vc_scenario *, struct vc_cluster *c);
/* Has its events happen, those of time 0 now. 0, RNL_ERR_NO_MEMORY. */
int vc_scenario_start(struct vc_scenario *, struct vc_cluster *c);

/* ---- verbs.c: what a scenario can do to hosts and ranks ---- */

struct vc_cluster;

struct vc_verb {
    const char *name, *arguments, *what;
    int least, most; /* arguments */
    int (*run)(struct vc_cluster *, int count, const char *const *arguments, int dry);
};
extern const struct vc_verb vc_verbs[]; /* ends with !name */

/* words[0] is the verb. dry: only looks whether it could. 0, RNL_ERR_ARG; RNL_ERR_UNSUPPORTED: it is none of these. */
int vc_verb_run(struct vc_cluster *, int count, const char *const *words, int dry);

/* 1 = it is one: "5ms" in ns; "17", at most `most`. */
#define VC_VERB_TIME_MAX_S 184467440
#define VC_VERB_TIME_IS    "a time like 5ms, at most 184467440s"
bool vc_verb_time(const char *text, uint64_t *ns);
bool vc_verb_number(const char *text, uint64_t most, uint64_t *out);

#endif
