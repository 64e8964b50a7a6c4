/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenario.h - what befalls a virtual cluster: a text with a line for each thing. The network's words are net.h's, the
 * others stand here. runnel-sim(1) describes it for users.
 *
 *   scenario := line*
 *   line     := [ "at" TIME ] VERB WORD*    an event, at 0 if nothing is said
 *             | "hosts" N | "switches" N | "link" NODE NODE     how it is built
 *             | "#" anything, to the end of the line */
#ifndef RNL_CLUSTER_SCENARIO_H
#define RNL_CLUSTER_SCENARIO_H

#include <stdint.h>

struct rnl_cluster;
struct rnl_net;
struct rnl_scenario;

/* Splits it. name: of its file, for errors, which begin with NAME:LINE. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int rnl_scenario_read(const char *text, const char *name, struct rnl_scenario **out);
void rnl_scenario_free(struct rnl_scenario *);
/* Adds a line, as if it stood before the others. */
int rnl_scenario_add(struct rnl_scenario *, const char *line);
uint32_t rnl_scenario_hosts(const struct rnl_scenario *); /* 0 = it does not say */

/* Makes c->net, for c->opt.hosts, and looks at all lines: nothing can be wrong with them later. */
int rnl_scenario_build(struct rnl_scenario *, struct rnl_cluster *c);
/* Has its events happen, those of time 0 now. 0, RNL_ERR_NO_MEMORY. */
int rnl_scenario_start(struct rnl_scenario *, struct rnl_cluster *c);

#endif
