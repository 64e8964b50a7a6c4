/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tree.h - which host's agent is started by which. Made of numbers alone, so everybody knows it: hosts [first, end)
 * below somebody are dealt to at most `fan` branches, as blocks that differ by one at most; the first host of a block
 * is started, and starts the others of its block in the same way. */
#ifndef RNL_JOB_TREE_H
#define RNL_JOB_TREE_H

#include <stdint.h>

/* How many branches [first, end) are. */
uint32_t rnl_tree_branches(uint32_t first, uint32_t end, uint32_t fan);
/* The k-th of them. */
void rnl_tree_block(uint32_t first, uint32_t end, uint32_t fan, uint32_t k, uint32_t *host, uint32_t *block_end);
/* Behind `host`, of all hosts: [host + 1, return value). *parent: the host that starts it, UINT32_MAX = the launcher.
 */
uint32_t rnl_tree_end(uint32_t hosts, uint32_t fan, uint32_t host, uint32_t *parent);

#endif
