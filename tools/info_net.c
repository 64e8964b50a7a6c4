/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info_net.c - the section of the network: what a socket of this kernel has, how datagrams are protected, and what the
 * interfaces take. */
#include "info.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/socket/i8255x/grant.h"
#include "net/socket/kernel.h"
#include "net/socket/xdp/queue.h"
#include "net/wire/seal.h"

/* "lo 65536, eth0 1500": the interfaces that are up, each once. */
static void name_interfaces(char *text, size_t room)
{
    struct ifaddrs *all = NULL;
    size_t used = 0;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(text, room, "none");
    if (fd < 0 || getifaddrs(&all) < 0)
        all = NULL;
    for (const struct ifaddrs *a = all; a && used < room; a = a->ifa_next) {
        struct ifreq r = {0};
        int seen = 0;
        for (const struct ifaddrs *b = all; b != a && !seen; b = b->ifa_next)
            seen = strcmp(b->ifa_name, a->ifa_name) == 0;
        if (seen || !(a->ifa_flags & IFF_UP))
            continue;
        snprintf(r.ifr_name, sizeof r.ifr_name, "%s", a->ifa_name);
        if (ioctl(fd, SIOCGIFMTU, &r) < 0)
            continue;
        int n = snprintf(text + used, room - used, "%s%s %d", used ? ", " : "", a->ifa_name, r.ifr_mtu);
        used += n > 0 ? (size_t)n : 0;
    }
    freeifaddrs(all);
    if (fd >= 0)
        close(fd);
}

/* Whether a peer gets a socket of its own shows when it is sent to: this socket is a peer of itself, over loopback. */
static void try_peer(struct rnl_socket *s)
{
    enum { SENDS = 32 }; /* more than a peer needs */
    const struct rnl_socket_out o = {
        .to = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, .port = s->self.port}, .at = "", .bytes = 1};
    struct rnl_socket_result r;
    for (int i = 0; i < SENDS; i++)
        (void)s->ops->send(s, &o, 1, &r);
}

static void show_protection(struct info_page *p)
{
    struct rnl_ciphers c;
    char text[256] = "";
    if (rnl_ciphers_init(&c, ~0u) < 0) {
        info_row(p, "ciphers", "none", rnl_last_error()->text);
        return;
    }
    for (unsigned i = 0, used = 0; i < RNL_CIPHERS && used < sizeof text; i++)
        if (c.have >> i & 1)
            used += (unsigned)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", rnl_cipher_text(i));
    info_row(p, "ciphers", text, NULL);
}

void info_network(struct info_page *p)
{
    const struct rnl_socket_addr any = {.port = 0};
    struct rnl_kernel_facts f = {0};
    struct rnl_socket *s = NULL;
    const _Atomic uint32_t *word;
    uint32_t bits;
    char text[512];
    int is_open = rnl_kernel_socket_open(&any, NULL, &s) == 0;
    info_section(p, "network");
    info_flag(p, "udp", is_open, is_open ? "between hosts; needs no privilege" : rnl_last_error()->text);
    if (!is_open)
        return;
    try_peer(s);
    (void)s->ops->bell(s, &word, &bits);
    rnl_kernel_socket_facts(s, &f);
    info_flag(p, "ipv4", !!(f.features & RNL_KERNEL_IPV4), "");
    info_flag(p, "ipv6", !!(f.features & RNL_KERNEL_IPV6), "one socket speaks both");
    info_flag(p, "segmentation offload", !!(f.features & RNL_KERNEL_SEGMENT),
              "UDP_SEGMENT: runs of datagrams in one call");
    info_flag(p, "receive coalescing", !!(f.features & RNL_KERNEL_MERGE), "UDP_GRO: they come in one, too");
    info_flag(p, "connected sockets", !!(f.features & RNL_KERNEL_CONNECT), "for the peers that are sent to most");
    info_flag(p, "arrivals in memory", !!(f.features & RNL_KERNEL_BELL),
              "io_uring tells of them; without it a silent network is asked now and then");
    info_flag(p, "congestion marks", !!(f.features & RNL_KERNEL_ECN), "ECN can be set and read");
    info_flag(p, "error queue", !!(f.features & RNL_KERNEL_ERRORS), "IP_RECVERR: whom an error is about");
    info_flag(p, "path mtu probing", !!(f.features & RNL_KERNEL_PROBE), "datagrams are never cut up on their way");
    info_number(p, "datagram bytes at most", s->datagram_max, "that this host sends in one");
    info_number(p, "receive buffer bytes", f.receive_bytes, "as the kernel counts; net.core.rmem_max limits it");
    s->ops->close(s);
    const bool rings = rnl_xdp_queue_allowed() == 0;
    info_flag(p, "af_xdp", rings, rings ? "`runnel run --transport xdp` can open queues" : rnl_last_error()->text);
    char slot[RNL_I8255X_CARDS][RNL_I8255X_SLOT_BYTES];
    enum rnl_i8255x_way way[RNL_I8255X_CARDS];
    const int cards = rnl_i8255x_find(slot, way);
    info_flag(p, "cards of 8255x", cards > 0,
              cards <= 0       ? rnl_last_error()->text
              : geteuid() == 0 ? "`runnel run --transport i8255x` has ranks drive them"
                               : "root can hand them out: `runnel run --transport i8255x`");
    name_interfaces(text, sizeof text);
    info_row(p, "interfaces and mtu", text, NULL);
    show_protection(p);
}
