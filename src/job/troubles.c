/* SPDX-License-Identifier: BSD-3-Clause
 *
 * troubles.c - see troubles.h. */
#include "job/troubles.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINES_MOST = 20, LINE_BYTES = 640 };

static void show(const uint8_t ip[16], char *out, size_t room)
{
    if (rnl_here_is_ipv4(ip))
        inet_ntop(AF_INET, ip + 12, out, (socklen_t)room);
    else
        inet_ntop(AF_INET6, ip, out, (socklen_t)room);
}

/* What was seen, and what is likely behind it. `heard`: the other has heard of the asker. */
static void cause(const struct rnl_vain_way *w, int heard, const char *asker, const char *other, char *out, size_t room)
{
    if (w->small)
        snprintf(out, room,
                 "datagrams of 64 bytes pass and those of 1200 do not; the MTU on the way is too small, or "
                 "differs between its two ends: it has to be 1280 at least");
    else if (w->crooked)
        snprintf(out, room,
                 "the answer comes from another address than was asked; routes of the two directions differ, "
                 "or addresses are translated: correct the routes of %s",
                 other);
    else if (w->sys_errno != 0 && w->from_us)
        snprintf(out, room, "the kernel of %s says: %s; %s", asker, strerror(w->sys_errno),
                 w->sys_errno == EPERM || w->sys_errno == EACCES ? "its firewall forbids UDP to there"
                 : w->sys_errno == EMSGSIZE                      ? "the MTU of its interface is below 1280"
                 : w->sys_errno == ECONNREFUSED
                     ? "the address is its own, too: give each host another one, or leave "
                       "this interface out, if another leads there"
                     : "it has no route to there: give both hosts addresses of one network, and "
                       "of one kind, IPv4 or IPv6, or "
                       "add a route (ip route)");
    else if (w->sys_errno == ECONNREFUSED)
        snprintf(out, room,
                 "refused (%s); a firewall of %s or on the way rejects UDP, or the address is another host's",
                 strerror(w->sys_errno), other);
    else if (w->sys_errno != 0)
        snprintf(out, room, "a host on the way says: %s", strerror(w->sys_errno));
    else if (heard)
        snprintf(out, room, "%s hears %s, but its answers do not arrive; a firewall drops UDP from %s to %s", other,
                 asker, other, asker);
    else
        snprintf(out, room, "no answer; a firewall drops UDP from %s to %s, or nothing leads there", asker, other);
}

static int was_heard(const struct rnl_troubles *t, uint32_t by, uint32_t of)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->at[i].host == by && t->at[i].what.other == of)
            return t->at[i].what.heard != 0;
    return 1; /* it has no trouble with that one */
}

static unsigned pair(const struct rnl_troubles *t, const struct rnl_trouble *v, unsigned lines)
{
    const char *asker = t->hosts[v->host].name, *other = t->hosts[v->what.other].name;
    unsigned said = 0;
    char why[400], at[INET6_ADDRSTRLEN], line[LINE_BYTES];
    int heard = was_heard(t, v->what.other, v->host);
    for (uint32_t k = 0; k < v->what.ways; k++) {
        const struct rnl_vain_way *w = &v->what.way[k];
        if (rnl_here_is_loopback(w->ip))
            continue;
        const char *interface = t->interface(t->arg, v->what.other, w->ip);
        cause(w, heard, asker, other, why, sizeof why);
        show(w->ip, at, sizeof at);
        snprintf(line, sizeof line, "host %s does not reach host %s at %s (%s), UDP port %u: %s", asker, other, at,
                 interface != NULL ? interface : "?", w->port, why);
        if (lines + said < LINES_MOST)
            t->say(t->arg, line);
        said++;
    }
    snprintf(line, sizeof line,
             "host %s has no address that host %s could reach: no interface of it but the loopback is up and has an "
             "address that is not link-local; give it one of a network that both are in",
             other, asker);
    if (said == 0 && lines < LINES_MOST)
        t->say(t->arg, line);
    return said > 0 ? said : 1;
}

void rnl_troubles_say(const struct rnl_troubles *t)
{
    unsigned lines = 0;
    char line[64];
    for (uint32_t i = 0; i < t->n; i++)
        if (t->at[i].what.asked)
            lines += pair(t, &t->at[i], lines);
    snprintf(line, sizeof line, "... and %u more of that kind", lines - LINES_MOST);
    if (lines > LINES_MOST)
        t->say(t->arg, line);
}
