/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_report.c - what a node agent says to the launcher in sentences. */
#include "launcher/node_agent_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FAILED_MS = 5000 /* an agent that cannot go on waits so long for END */ };

void rnl_node_agent_report(struct rnl_node_agent *n, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    rnl_control_send(&n->control, RNL_CONTROL_REPORT, line, strlen(line));
}

static void on_end(uv_timer_t *timer)
{
    struct rnl_node_agent *n = timer->data;
    n->phase = RNL_NODE_AGENT_OVER;
}

void rnl_node_agent_fail(struct rnl_node_agent *n, int status, const char *format, ...)
{
    const uint32_t header = (uint32_t)status;
    char line[512];
    va_list args;
    if (n->phase >= RNL_NODE_AGENT_FAILED)
        return; /* once, not for every rank */
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    rnl_control_send_parts(&n->control, RNL_CONTROL_FAIL, &header, sizeof header, line, strlen(line));
    n->phase = RNL_NODE_AGENT_FAILED;
    n->ending = true;
    rnl_timer_start(&n->silence, on_end, FAILED_MS, 0);
}
