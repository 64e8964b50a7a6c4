/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tree.c - see tree.h. */
#include "job/tree.h"

uint32_t rnl_tree_branches(uint32_t first, uint32_t end, uint32_t fan)
{
    return end - first < fan ? end - first : fan;
}

void rnl_tree_block(uint32_t first, uint32_t end, uint32_t fan, uint32_t k, uint32_t *host, uint32_t *block_end)
{
    uint32_t n = rnl_tree_branches(first, end, fan), each = (end - first) / n, more = (end - first) % n;
    *host = first + k * each + (k < more ? k : more); /* the first ones get those that are left over */
    *block_end = *host + each + (k < more);
}

uint32_t rnl_tree_end(uint32_t hosts, uint32_t fan, uint32_t host, uint32_t *parent)
{
    uint32_t first = 0, end = hosts, at = 0, block_end = 0;
    *parent = UINT32_MAX;
    for (;;) {
        for (uint32_t k = 0; k < rnl_tree_branches(first, end, fan); k++) {
            rnl_tree_block(first, end, fan, k, &at, &block_end);
            if (host < block_end)
                break;
        }
        if (at == host)
            return block_end;
        *parent = at;
        first = at + 1;
        end = block_end;
    }
}
