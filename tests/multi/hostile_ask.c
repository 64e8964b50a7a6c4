/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostile_ask.c - a question to the launcher whose answer is never taken. Apart from hostile_stop.c, since messages to
 * the launcher and lines of rings have types of one name. */
#include "multi/hostile_stop.h"

#include <poll.h>
#include <stdio.h>

#include "job/client_internal.h"
#include "multi/fm_check.h"

void hostile_ask(struct rnl_env *env, uint32_t rank, size_t bytes)
{
    struct client *c = rnl_client_of(env);
    const struct rnl_msg question = {.kind = RNL_MSG_SEGMENT, .u.segment = {.rank = rank, .bytes = bytes}};
    struct pollfd answer = {.fd = c->sock, .events = POLLIN};
    CHECK(rnl_msg_send(c->sock, &question, NULL, 1) == 0);
    CHECK(poll(&answer, 1, -1) == 1);
}
