/* SPDX-License-Identifier: BSD-3-Clause
 *
 * names.c - AMUDP's names are IPv4 socket addresses, and programs look into them: they print them, and tell hosts apart
 * by sin_addr. Ours have what such a program expects in sin_addr and sin_port, and the core's name where an address has
 * nothing:
 *
 *   sin_family | sin_port             | sin_addr              | sin_zero: generation 4 | number 2 | rank 2 |
 *   AF_INET    | another for each     | of the endpoint's     |
 *              | endpoint of a host   | host, for the reader  |
 *
 * So a name never leads to a socket, and a stranger's datagram is nobody's message. */
#include "api/amudp/amudp_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

struct inner {
    uint32_t generation;
    uint16_t number, rank;
};
static_assert(sizeof(struct inner) == 8, "it is kept in sin_zero");
static_assert(sizeof(en_t) == 16 && sizeof(((en_t *)0)->sin_zero) == 8, "programs have this size compiled in");

static uint32_t interface; /* host order; 0 = not chosen */

int AMUDP_SetUDPInterface(uint32_t address)
{
    interface = address;
    return AM_OK;
}

/* WORKERIP names an address of this host, or a network that one of its addresses is in: 10.1.0.0. */
static bool wished(uint32_t address, uint32_t wish)
{
    uint32_t mask = ~0u;
    for (int shift = 0; shift < 24 && (wish >> shift & 0xff) == 0; shift += 8)
        mask <<= 8;
    return (address & mask) == wish;
}

/* What a host without IPv4 shows: one of 240.0.0.0/4, which no host has, made of its IPv6 address. */
static uint32_t stands_for(const unsigned char ip[16])
{
    uint32_t h = 2166136261u;
    for (int i = 0; i < 16; i++)
        h = (h ^ ip[i]) * 16777619u;
    return 0xf0000000u | (h ^ h >> 28);
}

/* In host order; 0 = of no kind that is wanted. */
static uint32_t address_of(const struct ifaddrs *i, int family)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP))
        return 0;
    if (family == AF_INET) {
        memcpy(&in, i->ifa_addr, sizeof in);
        return ntohl(in.sin_addr.s_addr);
    }
    memcpy(&in6, i->ifa_addr, sizeof in6);
    return IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) ? 0 : stands_for(in6.sin6_addr.s6_addr);
}

/* In host order. The host's first address that is not its loopback, which is the same for all its processes. */
static uint32_t own_address(void)
{
    static uint32_t found;
    struct ifaddrs *all, *i;
    struct in_addr wish = {.s_addr = 0};
    struct in6_addr wish6;
    const char *text = AMUDP_getenv_prefixed("WORKERIP");
    if (interface != 0)
        return interface;
    if (found != 0)
        return found;
    int wants = text && inet_pton(AF_INET, text, &wish) == 1;
    if (text && inet_pton(AF_INET6, text, &wish6) == 1)
        return found = stands_for(wish6.s6_addr);
    if (getifaddrs(&all) < 0)
        return found = INADDR_LOOPBACK;
    for (i = all; i && found == 0; i = i->ifa_next) {
        uint32_t address = address_of(i, AF_INET);
        if (address != 0 && (wants ? wished(address, ntohl(wish.s_addr)) : !(i->ifa_flags & IFF_LOOPBACK)))
            found = address;
    }
    for (i = all; i && found == 0; i = i->ifa_next)
        if (!(i->ifa_flags & IFF_LOOPBACK))
            found = address_of(i, AF_INET6);
    freeifaddrs(all);
    if (found == 0)
        found = INADDR_LOOPBACK;
    return found;
}

en_t rnl_amudp_name(rnl_am_en core, uint32_t ranks)
{
    struct inner inner = {.generation = core.generation, .number = core.number, .rank = (uint16_t)core.rank};
    en_t name;
    memset(&name, 0, sizeof name);
    name.sin_family = AF_INET;
    name.sin_port = htons((uint16_t)(1 + (core.rank + (uint64_t)core.number * ranks) % 65535));
    name.sin_addr.s_addr = htonl(own_address());
    memcpy(name.sin_zero, &inner, sizeof inner);
    return name;
}

int rnl_amudp_core_name(en_t name, rnl_am_en *out)
{
    struct inner inner;
    memcpy(&inner, name.sin_zero, sizeof inner);
    if (name.sin_family != AF_INET || inner.generation == 0)
        return -1;
    *out = (rnl_am_en){.rank = inner.rank, .generation = inner.generation, .number = inner.number};
    return 0;
}

int AMUDP_enEqual(en_t a, en_t b)
{
    rnl_am_en x, y;
    return rnl_amudp_core_name(a, &x) == 0 && rnl_amudp_core_name(b, &y) == 0 && rnl_am_name_equal(x, y);
}
