/* SPDX-License-Identifier: BSD-3-Clause
 *
 * diagnostics.c - says things; explains which hosts of a job cannot reach each other, what was tried, and the likely
 * cause. */
#include "launcher/launcher_internal.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINES_MOST = 20, LINE_BYTES = 600 };

void rnl_launcher_report(struct rnl_launcher *l, const char *format, ...)
{
    char line[640];
    va_list args;
    const size_t n = (size_t)snprintf(line, sizeof line, "runnel: ");
    va_start(args, format);
    vsnprintf(line + n, sizeof line - n, format, args);
    va_end(args);
    if (l->console)
        rnl_console_report(l->console, line);
    else
        fprintf(stderr, "%s\n", line);
}

/* Whether that host has heard of the other: no failure of it says the contrary. */
static bool was_heard(const struct rnl_launcher *l, uint32_t by, uint32_t of)
{
    bool heard = true;
    for (uint32_t i = 0; i < l->failures; i++)
        if (l->failure[i].host == by && l->failure[i].what.other == of)
            heard = l->failure[i].what.heard != 0;
    return heard;
}

/* Returns how many lines the pair has, of which those beyond the limit are not printed. */
static unsigned report_pair(struct rnl_launcher *l, const struct rnl_host_failure *v, unsigned before)
{
    const uint32_t other = v->what.other;
    const bool heard = was_heard(l, other, v->host);
    char line[LINE_BYTES];
    unsigned lines = 0;
    for (uint32_t k = 0; k <= v->what.addresses; k++) {
        const struct rnl_probe_attempt *w = k < v->what.addresses ? &v->what.address[k] : NULL;
        if (w ? rnl_is_loopback(w->ip) : lines > 0)
            continue;
        rnl_probe_describe(&l->info[other], w, heard, l->at[v->host].name, l->at[other].name, line, sizeof line);
        if (before + lines++ < LINES_MOST)
            rnl_launcher_report(l, "%s", line);
    }
    return lines;
}

void rnl_diagnostics_report(struct rnl_launcher *l)
{
    unsigned lines = 0;
    for (uint32_t i = 0; i < l->failures; i++)
        if (l->failure[i].what.asked)
            lines += report_pair(l, &l->failure[i], lines);
    if (lines > LINES_MOST)
        rnl_launcher_report(l, "... and %u more of that kind", lines - LINES_MOST);
}
