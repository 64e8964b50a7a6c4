/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue.c - makes what the endpoints of a queue share, and the filter. */
#include "net/socket/xdp/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/if_xdp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/socket/netlink.h"
#include "net/socket/xdp/filter.h"

enum {
    ADDRESSES = 32, /* of the interface */
    BIND_TRIES = 100,
    BIND_WAIT_NS = 10000000
};

struct rnl_xdp_queue {
    const char *name; /* of the interface, while it is opened */
    uint32_t interface, queue, endpoints;
    int memory;
    uint8_t mac[6];
    uint32_t queues; /* to receive, of the interface */
    bool is_veth;
    enum rnl_xdp_mode mode;
    struct rnl_xdp_area *area;
    uint64_t bytes;
    struct rnl_xdp_filter filter;
    int socket[RNL_XDP_ENDPOINTS_MAX];
};

const char *rnl_xdp_mode_text(enum rnl_xdp_mode mode)
{
    static const char *const text[] = {"any", "generic", "native, copies", "native, zero copy"};
    return (unsigned)mode < sizeof text / sizeof text[0] ? text[mode] : "unknown";
}

/* ---- the interface ---- */

static int find_interface(struct rnl_xdp_queue *q)
{
    struct ifreq r = {0};
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    q->interface = if_nametoindex(q->name);
    if (q->interface == 0)
        return rnl_fail_errno(RNL_ERR_ARG, errno, "there is no interface %s: `ip link` lists them", q->name);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    strncpy(r.ifr_name, q->name, sizeof r.ifr_name - 1);
    if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &r) < 0 || r.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
        if (fd >= 0)
            close(fd);
        return rnl_fail(RNL_ERR_UNSUPPORTED, "%s is no Ethernet interface: AF_XDP is used on those only", q->name);
    }
    memcpy(q->mac, r.ifr_hwaddr.sa_data, sizeof q->mac);
    r.ifr_data = (void *)&driver;
    q->is_veth = ioctl(fd, SIOCETHTOOL, &r) == 0 && strcmp(driver.driver, "veth") == 0;
    r.ifr_data = (void *)&channels;
    q->queues = ioctl(fd, SIOCETHTOOL, &r) == 0 ? channels.rx_count + channels.combined_count : 1;
    close(fd);
    return 0;
}

/* Has the filter take what is sent to the addresses of the interface, and of VLANs on it. */
static int list_addresses(struct rnl_xdp_queue *q)
{
    struct ifaddrs *all;
    struct rnl_netlink_link link[RNL_NETLINK_LINKS];
    const int netlink = rnl_netlink_open(RNL_NETLINK_ASKS);
    const int links = netlink < 0 ? netlink : rnl_netlink_links(netlink, q->interface, link);
    int status = 0;
    if (netlink >= 0)
        close(netlink);
    if (links < 0)
        return links;
    if (getifaddrs(&all) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the addresses of %s cannot be listed", q->name);
    for (const struct ifaddrs *a = all; a && status == 0; a = a->ifa_next) {
        uint8_t ip[16] = {[10] = 0xff, [11] = 0xff};
        if (!a->ifa_addr || !rnl_netlink_link_find(link, links, if_nametoindex(a->ifa_name)))
            continue;
        if (a->ifa_addr->sa_family == AF_INET)
            memcpy(ip + 12, &((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr, 4);
        else if (a->ifa_addr->sa_family == AF_INET6)
            memcpy(ip, &((const struct sockaddr_in6 *)(const void *)a->ifa_addr)->sin6_addr, 16);
        else
            continue;
        for (uint32_t i = 0; i < q->endpoints && status == 0; i++)
            status = rnl_xdp_filter_address(&q->filter, ip, q->area->port[i], q->queue, i);
    }
    freeifaddrs(all);
    return status;
}

/* ---- memory and sockets ---- */

static int make_memory(struct rnl_xdp_queue *q, const uint16_t *ports)
{
    q->bytes = rnl_xdp_area_bytes(q->endpoints);
    q->memory = memfd_create("runnel-xdp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (q->memory < 0 || ftruncate(q->memory, (off_t)q->bytes) < 0 ||
        fcntl(q->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no %llu bytes of shared memory for an AF_XDP queue",
                              (unsigned long long)q->bytes);
    void *at = mmap(NULL, q->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, q->memory, 0);
    if (at == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "the memory of an AF_XDP queue cannot be mapped");
    q->area = at;
    q->area->magic = RNL_XDP_MAGIC;
    q->area->begin = rnl_xdp_area_begin(q->endpoints);
    q->area->bytes = rnl_xdp_chunks(q->endpoints) * RNL_XDP_CHUNK;
    q->area->interface = q->interface;
    q->area->queue = q->queue;
    q->area->endpoints = q->endpoints;
    memcpy(q->area->port, ports, q->endpoints * sizeof *ports);
    return 0;
}

static int set_ring(int fd, int which, uint32_t entries)
{
    return setsockopt(fd, SOL_XDP, which, &entries, sizeof entries);
}

static int open_sockets(struct rnl_xdp_queue *q)
{
    struct xdp_umem_reg memory = {
        .addr = (uintptr_t)q->area + q->area->begin, .len = q->area->bytes, .chunk_size = RNL_XDP_CHUNK};
    for (uint32_t i = 0; i < q->endpoints; i++) {
        q->socket[i] = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
        if (q->socket[i] < 0)
            return rnl_fail_errno(errno == EAFNOSUPPORT ? RNL_ERR_UNSUPPORTED : RNL_ERR_SYSTEM, errno,
                                  "an AF_XDP socket cannot be opened: it takes CAP_NET_RAW, and a kernel with "
                                  "CONFIG_XDP_SOCKETS");
        if (set_ring(q->socket[i], XDP_RX_RING, RNL_XDP_IN) < 0 || set_ring(q->socket[i], XDP_TX_RING, RNL_XDP_OUT) < 0)
            return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the rings of an AF_XDP socket cannot be made");
    }
    if (setsockopt(q->socket[0], SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno,
                              "%u bytes cannot be pinned for AF_XDP: raise the limit of locked memory (ulimit -l)",
                              q->area->bytes);
    if (set_ring(q->socket[0], XDP_UMEM_FILL_RING, rnl_xdp_power(q->endpoints * RNL_XDP_IN)) < 0 ||
        set_ring(q->socket[0], XDP_UMEM_COMPLETION_RING, rnl_xdp_power(q->endpoints * RNL_XDP_OUT)) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the rings of an AF_XDP queue cannot be made");
    return 0;
}

/* Gives the kernel all chunks to receive into. */
static int fill(struct rnl_xdp_queue *q)
{
    struct rnl_xdp_rings r;
    int status = rnl_xdp_rings_map(&r, q->socket[0], q->memory, q->area->port[0]);
    if (status < 0)
        return status;
    const uint32_t in = q->endpoints * RNL_XDP_IN;
    for (uint32_t i = 0; i < in; i++)
        ((uint64_t *)r.fill.entries)[i] = (uint64_t)(q->endpoints * RNL_XDP_OUT + i) * RNL_XDP_CHUNK;
    atomic_store_explicit(r.fill.producer, in, memory_order_release); /* pairs with the kernel's */
    rnl_xdp_rings_unmap(&r);
    return 0;
}

/* ---- binding ---- */

/* The kernel lets go of the queue of an earlier process some time after its end: until then it is busy. 0 or errno. */
static int bind_first(const struct rnl_xdp_queue *q, uint16_t flags)
{
    const struct sockaddr_xdp a = {.sxdp_family = AF_XDP,
                                   .sxdp_flags = flags | XDP_USE_NEED_WAKEUP,
                                   .sxdp_ifindex = q->interface,
                                   .sxdp_queue_id = q->queue};
    const struct timespec wait = {.tv_nsec = BIND_WAIT_NS};
    for (int i = 0; bind(q->socket[0], (const void *)&a, sizeof a) < 0; i++) {
        if (errno != EBUSY || i == BIND_TRIES)
            return errno;
        nanosleep(&wait, NULL);
    }
    return 0;
}

static int bind_others(const struct rnl_xdp_queue *q)
{
    const struct sockaddr_xdp a = {.sxdp_family = AF_XDP,
                                   .sxdp_flags = XDP_SHARED_UMEM,
                                   .sxdp_ifindex = q->interface,
                                   .sxdp_queue_id = q->queue,
                                   .sxdp_shared_umem_fd = (uint32_t)q->socket[0]};
    for (uint32_t i = 1; i < q->endpoints; i++)
        if (bind(q->socket[i], (const void *)&a, sizeof a) < 0)
            return errno;
    return 0;
}

/* Attaches the filter and binds the first socket in this mode. 0 or errno. */
static int try_mode(struct rnl_xdp_queue *q, enum rnl_xdp_mode mode)
{
    if (q->filter.link < 0) {
        int error = -rnl_xdp_filter_attach(&q->filter, q->interface, mode == RNL_XDP_GENERIC);
        if (error)
            return error;
    }
    int error = bind_first(q, mode == RNL_XDP_ZERO_COPY ? XDP_ZEROCOPY : XDP_COPY);
    if (error && mode != RNL_XDP_ZERO_COPY) {
        close(q->filter.link);
        q->filter.link = -1;
    }
    q->mode = mode;
    return error;
}

static int bind_all(struct rnl_xdp_queue *q, enum rnl_xdp_mode wanted)
{
    static const enum rnl_xdp_mode card[] = {RNL_XDP_ZERO_COPY, RNL_XDP_COPY, RNL_XDP_GENERIC};
    static const enum rnl_xdp_mode veth[] = {RNL_XDP_GENERIC, RNL_XDP_COPY, RNL_XDP_COPY};
    const enum rnl_xdp_mode *modes = wanted != RNL_XDP_ANY ? &wanted : q->is_veth ? veth : card;
    int error = EOPNOTSUPP;
    for (int i = 0; i < (wanted != RNL_XDP_ANY ? 1 : 3) && error; i++) {
        int now = try_mode(q, modes[i]);
        error = i == 0 || now != EOPNOTSUPP ? now : error;
    }
    if (error == EBUSY || error == EEXIST)
        return rnl_fail_errno(RNL_ERR_SYSTEM, error,
                              "queue %u of %s is in use: another program is attached to the interface (`ip link` shows "
                              "xdp), or another process has an AF_XDP socket there",
                              q->queue, q->name);
    if (error == 0)
        error = bind_others(q);
    return error == 0 ? 0
                      : rnl_fail_errno(error == EOPNOTSUPP ? RNL_ERR_UNSUPPORTED : RNL_ERR_SYSTEM, error,
                                       "AF_XDP sockets cannot be bound to queue %u of %s", q->queue, q->name);
}

/* ---- privileges ---- */

int rnl_xdp_queue_allowed(void)
{
    enum { NET_ADMIN = 12, NET_RAW = 13, BPF = 39 }; /* numbers of capabilities, which never change */
    const uint64_t all = UINT64_C(1) << NET_ADMIN | UINT64_C(1) << NET_RAW | UINT64_C(1) << BPF;
    char line[128];
    uint64_t has = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "CapEff: %" SCNx64, &has) == 1)
            break;
    if (f)
        (void)fclose(f);
    if ((has & all) != all)
        return rnl_fail(RNL_ERR_SYSTEM,
                        "to open a queue takes CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN, which this process "
                        "has not");
    const int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return rnl_fail_errno(RNL_ERR_UNSUPPORTED, errno, "this kernel has no AF_XDP sockets");
    close(fd);
    return 0;
}

/* ---- which interface ---- */

/* The interface below a VLAN takes its place; every other stays. */
static void below_vlan(char name[IF_NAMESIZE])
{
    struct vlan_ioctl_args ask = {.cmd = GET_VLAN_REALDEV_NAME_CMD};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(ask.device1, name, IF_NAMESIZE);
    if (fd >= 0 && ioctl(fd, SIOCGIFVLAN, &ask) == 0)
        memcpy(name, ask.u.device2, IF_NAMESIZE);
    if (fd >= 0)
        close(fd);
}

int rnl_xdp_interface_to(const uint8_t ip[16], char name[16])
{
    _Static_assert(IF_NAMESIZE == 16, "a name of an interface");
    struct rnl_netlink_route way;
    const int ask = rnl_netlink_open(RNL_NETLINK_ASKS);
    if (ask < 0)
        return ask;
    const bool found = rnl_netlink_way(ask, ip, 0, &way) == 0 && if_indextoname(way.link, name);
    close(ask);
    if (!found)
        return rnl_fail(RNL_ERR_UNREACHABLE, "the kernel has no plain route to another host, by which frames could go");
    below_vlan(name);
    return 0;
}

/* ---- beginning and end ---- */

static int open_all(struct rnl_xdp_queue *q, enum rnl_xdp_mode mode, const uint16_t *ports)
{
    int status = find_interface(q);
    if (status == 0)
        status = make_memory(q, ports);
    if (status == 0)
        status = open_sockets(q);
    if (status == 0)
        status = rnl_xdp_filter_make(&q->filter, q->endpoints, ADDRESSES, q->mac, RNL_XDP_FRAME_MOST);
    if (status == 0)
        status = bind_all(q, mode);
    if (status == 0)
        status = fill(q);
    for (uint32_t i = 0; i < q->endpoints && status == 0; i++)
        status = rnl_xdp_filter_add(&q->filter, i, q->socket[i]);
    if (status == 0) {
        q->area->mode = q->mode;
        status = list_addresses(q); /* from here on frames come */
    }
    return status;
}

int rnl_xdp_queue_open(const char *interface, uint32_t queue, enum rnl_xdp_mode mode, const uint16_t *ports,
                       uint32_t endpoints, struct rnl_xdp_queue **out)
{
    if (endpoints == 0 || endpoints > RNL_XDP_ENDPOINTS_MAX)
        return rnl_fail(RNL_ERR_ARG, "an AF_XDP queue for %u endpoints: it serves 1 to %d", endpoints,
                        RNL_XDP_ENDPOINTS_MAX);
    struct rnl_xdp_queue *q = calloc(1, sizeof *q);
    if (!q)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an AF_XDP queue");
    q->name = interface;
    q->queue = queue;
    q->endpoints = endpoints;
    q->memory = -1;
    q->filter = (struct rnl_xdp_filter){.program = -1, .link = -1, .sockets = -1, .places = -1};
    for (uint32_t i = 0; i < RNL_XDP_ENDPOINTS_MAX; i++)
        q->socket[i] = -1;
    int status = open_all(q, mode, ports);
    q->name = NULL;
    if (status < 0)
        rnl_xdp_queue_close(q);
    else
        *out = q;
    return status;
}

int rnl_xdp_queue_socket(struct rnl_xdp_queue *q, uint32_t endpoint)
{
    const int fd = q->socket[endpoint];
    q->socket[endpoint] = -1;
    return fd;
}

int rnl_xdp_queue_memory(const struct rnl_xdp_queue *q)
{
    return q->memory;
}

uint32_t rnl_xdp_queue_others(const struct rnl_xdp_queue *q)
{
    return q->queues > 1 && !(q->is_veth && q->mode == RNL_XDP_GENERIC) ? q->queues - 1 : 0;
}

enum rnl_xdp_mode rnl_xdp_queue_mode(const struct rnl_xdp_queue *q)
{
    return q->mode;
}

void rnl_xdp_queue_close(struct rnl_xdp_queue *q)
{
    rnl_xdp_filter_end(&q->filter);
    for (uint32_t i = 0; i < q->endpoints; i++)
        if (q->socket[i] >= 0)
            close(q->socket[i]);
    if (q->area)
        (void)munmap(q->area, q->bytes);
    if (q->memory >= 0)
        close(q->memory);
    free(q);
}
