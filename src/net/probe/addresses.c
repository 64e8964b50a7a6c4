/* SPDX-License-Identifier: BSD-3-Clause
 *
 * addresses.c - which addresses this host has and which kernel it runs, and the sentences about addresses by which no
 * other host is reached (address_probe.h). The addresses are read with getifaddrs, the kernel's identity from its boot
 * id. */
#include "base/error.h"
#include "net/probe/address_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* ---- this host ---- */

static bool usable(const struct ifaddrs *i, uint8_t ip[16])
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
        return false;
    if (i->ifa_addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, i->ifa_addr, sizeof in);
        memset(ip, 0, 10);
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, &in.sin_addr, 4);
        return true;
    }
    if (i->ifa_addr->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 in6;
    memcpy(&in6, i->ifa_addr, sizeof in6);
    memcpy(ip, &in6.sin6_addr, 16);
    return !IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

int rnl_host_addresses(struct rnl_host_address *out, unsigned max)
{
    struct ifaddrs *all;
    unsigned n = 0;
    if (getifaddrs(&all) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the system does not say which addresses this host has");
    memset(out, 0, max * sizeof *out);
    for (unsigned loopback = 0; loopback < 2; loopback++)
        for (const struct ifaddrs *i = all; i && n < max; i = i->ifa_next) {
            if (!!(i->ifa_flags & IFF_LOOPBACK) != loopback || !usable(i, out[n].ip))
                continue;
            snprintf(out[n].interface, sizeof out[n].interface, "%s", i->ifa_name);
            n++;
        }
    freeifaddrs(all);
    return (int)n;
}

uint64_t rnl_host_kernel(void)
{
    char text[64] = ""; /* hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh */
    uint64_t id = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f)
        return 0;
    if (!fgets(text, sizeof text, f))
        text[0] = '\0';
    fclose(f);
    for (const char *c = text; *c; c++) /* some of the digits of a UUID are fixed, so all are hashed (FNV-1a) */
        if (strchr("0123456789abcdef", *c))
            id = (id ^ (unsigned char)*c) * 0x100000001b3u;
    return id;
}

/* ---- what was seen of other hosts ---- */

static bool is_ipv4(const uint8_t ip[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(ip, mapped, sizeof mapped) == 0;
}

bool rnl_is_loopback(const uint8_t ip[16])
{
    return is_ipv4(ip) ? ip[12] == 127 : memcmp(ip, &in6addr_loopback, 16) == 0;
}

static const char *interface_of(const struct rnl_host_info *info, const uint8_t ip[16])
{
    for (uint32_t k = 0; k < info->addresses; k++)
        if (memcmp(info->address[k].ip, ip, 16) == 0)
            return info->address[k].interface;
    return "?";
}

static void show(const uint8_t ip[16], char *out, size_t room)
{
    if (is_ipv4(ip))
        inet_ntop(AF_INET, ip + 12, out, (socklen_t)room);
    else
        inet_ntop(AF_INET6, ip, out, (socklen_t)room);
}

/* What was seen, and what is likely behind it. `heard`: the other has heard of the asker. */
static void cause(const struct rnl_probe_attempt *w, bool heard, const char *asker, const char *other, char *out,
                  size_t room)
{
    if (w->only_short)
        snprintf(out, room,
                 "datagrams of 64 bytes pass and those of 1200 do not; the MTU on the way is too small, or "
                 "differs between its two ends: it has to be 1280 at least");
    else if (w->other_source)
        snprintf(out, room,
                 "the answer comes from another address than was asked; routes of the two directions differ, "
                 "or addresses are translated: correct the routes of %s",
                 other);
    else if (w->sys_errno != 0 && w->from_own_kernel)
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

void rnl_probe_describe(const struct rnl_host_info *other_info, const struct rnl_probe_attempt *w, bool heard,
                        const char *asker, const char *other, char *out, size_t room)
{
    char at[INET6_ADDRSTRLEN], why[400];
    if (!w) {
        snprintf(out, room,
                 "host %s has no address that host %s could reach: no interface of it but the loopback is up and has "
                 "an address that is not link-local; give it one of a network that both are in",
                 other, asker);
        return;
    }
    show(w->ip, at, sizeof at);
    cause(w, heard, asker, other, why, sizeof why);
    snprintf(out, room, "host %s does not reach host %s at %s (%s), UDP port %u: %s", asker, other, at,
             interface_of(other_info, w->ip), w->port, why);
}

const char *rnl_probe_remedy(const struct rnl_probe_attempt *w, bool heard, const char *asker, const char *other,
                             char *remedy, char *ask, size_t room)
{
    static const char ports[] = "Runnel takes UDP ports of net.ipv4.ip_local_port_range";
    if (w->only_short) {
        snprintf(remedy, room,
                 "give both interfaces, and all that lies between, one MTU of 1280 bytes or more (ip link set "
                 "DEVICE mtu 1500)");
        snprintf(ask, room, "who runs the network between %s and %s", asker, other);
        return "mtu";
    }
    if (w->other_source) {
        snprintf(remedy, room,
                 "let %s answer from the address that was asked: look at its routes (ip route get ADDRESS) "
                 "and at what translates addresses",
                 other);
        snprintf(ask, room, "the administrator of %s", other);
        return "route";
    }
    if (w->sys_errno != 0 && w->from_own_kernel && (w->sys_errno == EPERM || w->sys_errno == EACCES)) {
        snprintf(remedy, room, "allow UDP to %s in the firewall of %s (nft list ruleset; its output chain)", other,
                 asker);
        snprintf(ask, room, "the administrator of %s", asker);
        return "firewall";
    }
    if (w->sys_errno != 0 && w->from_own_kernel && w->sys_errno != ECONNREFUSED) {
        snprintf(remedy, room,
                 w->sys_errno == EMSGSIZE
                     ? "raise the MTU of its interface to 1280 bytes or more (ip link set DEVICE mtu 1500)"
                     : "give both hosts addresses of one network and of one kind, or add a route (ip route)");
        snprintf(ask, room, "the administrators of %s and %s", asker, other);
        return w->sys_errno == EMSGSIZE ? "mtu" : "route";
    }
    if (w->sys_errno == ECONNREFUSED) {
        snprintf(remedy, room, "allow UDP from %s in the firewall of %s (nft list ruleset; a rule that rejects); %s",
                 asker, other, ports);
        snprintf(ask, room, "the administrator of %s", other);
        return "firewall";
    }
    if (w->sys_errno != 0) {
        snprintf(remedy, room, "look at the routers between them (traceroute -U), which refuse it");
        snprintf(ask, room, "who runs the network between %s and %s", asker, other);
        return "route";
    }
    const char *from = heard ? other : asker, *to = heard ? asker : other;
    snprintf(remedy, room, "allow UDP from %s to %s in the firewall of %s, and in those between; %s", from, to, to,
             ports);
    snprintf(ask, room, "the administrator of %s, then who runs the network between %s and %s", to, from, to);
    return heard ? "one way" : "firewall";
}
