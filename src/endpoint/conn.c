/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn.c - the memory of connections. */
#include "endpoint/endpoint.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>

struct rnl_conn rnl_not_connected = {.shut = RNL_SHUT_NOT_CONNECTED,
                                     .channel.tx[0] = {.fast_handler = UINT64_MAX, .fast_bytes = UINT64_MAX}};

/* aligned_alloc would take more, and leave fragments that every later malloc looks at. */
struct rnl_conn *rnl_conn_new(void)
{
    unsigned char *memory = calloc(1, sizeof(struct rnl_conn) + RNL_CELL_BYTES - alignof(max_align_t));
    if (!memory)
        return NULL;
    struct rnl_conn *conn = (struct rnl_conn *)(void *)(memory + (-(uintptr_t)memory & (RNL_CELL_BYTES - 1)));
    conn->memory = memory;
    return conn;
}

void rnl_conn_free(struct rnl_conn *conn)
{
    if (!conn)
        return;
    free(conn->bulk);
    free(conn->memory);
}
