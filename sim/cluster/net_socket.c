/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_socket.c - sockets of virtual hosts, as net/socket/socket.h has them. Their buffers are counted as Linux counts
 * them: the receive buffer by the memory of the kernel, what does not fit is dropped; the send buffer by what has not
 * left the host. */
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/net_internal.h"

enum {
    PORT_FIRST = 49152, /* of those that are given out */
    RUN_BYTES = 65507,
    RUN_SEGMENTS = 64,
    SEND_RECORD = 256, /* beside its bytes, in the send buffer */
    NO_LINK_MTU = 65535
};

static struct net_socket *of(struct rnl_socket *s)
{
    return (struct net_socket *)(void *)s;
}

/* ---- addresses: 10.0.0.0/8, host 0 is 10.0.0.1; further ones 11.0.0.0/8 and on ---- */

enum { FIRST_NET = 10 };

struct rnl_socket_addr vc_net_nth_addr(uint32_t host, uint32_t nth, uint16_t port)
{
    uint32_t n = host + 1;
    return (struct rnl_socket_addr){
        .ip = {[10] = 0xff, 0xff, (uint8_t)(FIRST_NET + nth), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n},
        .port = port};
}

struct rnl_socket_addr vc_net_addr(uint32_t host, uint16_t port)
{
    return vc_net_nth_addr(host, 0, port);
}

uint32_t vc_net_addresses(const struct vc_net *net)
{
    return net->addresses ? net->addresses : 1;
}

int vc_net_set_addresses(struct vc_net *net, uint32_t count)
{
    if (count < 1 || count > 4)
        return rnl_fail(RNL_ERR_ARG, "%u addresses for each host: 1 to 4", count);
    net->addresses = count;
    return 0;
}

void vc_net_address_up(struct vc_net *net, uint32_t host, uint32_t nth, int in, int out)
{
    struct net_host *h = &net->host[host];
    h->deaf = (uint8_t)((h->deaf & ~(1u << nth)) | (unsigned)!in << nth);
    h->mute = (uint8_t)((h->mute & ~(1u << nth)) | (unsigned)!out << nth);
}

uint32_t vc_net_host_of(const struct vc_net *net, const struct rnl_socket_addr *a)
{
    uint32_t n = (uint32_t)a->ip[13] << 16 | (uint32_t)a->ip[14] << 8 | a->ip[15];
    uint32_t nth = (uint32_t)a->ip[12] - FIRST_NET;
    struct rnl_socket_addr same = vc_net_nth_addr(n - 1, nth, a->port);
    return n >= 1 && n <= net->hosts && nth < vc_net_addresses(net) && rnl_socket_addr_equal(&same, a) ? n - 1
                                                                                                       : UINT32_MAX;
}

static struct net_socket *find(const struct vc_net *net, uint32_t host, uint16_t port)
{
    struct net_socket *k = net->host[host].sockets;
    while (k && k->port != port)
        k = k->next;
    return k;
}

/* ---- sending ---- */

/* May it go? What a run takes of a buffer is counted for each of its packets. */
static enum rnl_socket_stop may_send(const struct net_socket *k, const struct rnl_socket_out *o, uint32_t to,
                                     uint32_t packets)
{
    const struct vc_net *net = k->net;
    uint32_t longest = o->segment ? o->segment : o->bytes;
    if (to == UINT32_MAX)
        return RNL_SOCKET_UNREACHABLE;
    if (longest > k->s.datagram_max || packets > k->s.segments_max)
        return RNL_SOCKET_TOO_LONG;
    if (to == k->host)
        return RNL_SOCKET_WENT;
    struct net_link *l = net_route_of(net, k->host, to, (uint32_t)o->to.ip[12] - FIRST_NET);
    if (!l)
        return RNL_SOCKET_UNREACHABLE;
    net_link_settle(l);
    if (k->sending && k->sending + o->bytes + (uint64_t)packets * SEND_RECORD > k->send_bytes)
        return RNL_SOCKET_FULL;
    if (l->config.buffer_bytes && l->queue_bytes && l->queue_bytes + l->config.overhead_bytes >= l->config.buffer_bytes)
        return RNL_SOCKET_NO_BUFFERS;
    return RNL_SOCKET_WENT;
}

static void send_one(struct net_socket *k, uint32_t to, const struct rnl_socket_out *o, const unsigned char *at,
                     uint32_t bytes)
{
    struct vc_net *net = k->net;
    struct net_packet *p = net_packet_new(net, bytes);
    net->counts.sent++;
    if (!p) {
        net->counts.dropped[VC_NET_DROP_MEMORY]++;
        return;
    }
    memcpy(p->data, at, bytes);
    p->from = k->host;
    p->from_port = k->port;
    p->to = to;
    p->to_port = o->to.port;
    p->nth = (uint8_t)(o->to.ip[12] - FIRST_NET);
    p->ecn = k->s.has_ecn ? o->ecn & 3 : 0;
    p->socket = k;
    p->charge = bytes + SEND_RECORD;
    k->sending += p->charge;
    net_tap(net, VC_NET_TAP_SENT, k->host, p, NULL, VC_NET_DROP_NONE);
    net_send(net, p);
}

static int socket_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct net_socket *k = of(s);
    *result = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    for (int i = 0; i < n; i++) {
        const struct rnl_socket_out *o = &out[i];
        uint32_t to = vc_net_host_of(k->net, &o->to);
        uint32_t segment = o->segment ? o->segment : o->bytes;
        uint32_t packets = segment ? (o->bytes + segment - 1) / segment : 1;
        result->stop = may_send(k, o, to, packets);
        if (result->stop != RNL_SOCKET_WENT)
            return i;
        const unsigned char *at = o->at;
        for (uint32_t j = 0; j < packets; j++) {
            uint32_t left = o->bytes - j * segment;
            send_one(k, to, o, at + (size_t)j * segment, left < segment ? left : segment);
        }
    }
    return n;
}

/* ---- receiving ---- */

static void note_error(struct net_socket *k, const struct net_packet *p)
{
    enum { MOST = sizeof k->error / sizeof *k->error };
    if (k->errors == MOST) { /* the oldest is forgotten */
        k->error_first++;
        k->errors--;
    }
    k->error[(k->error_first + k->errors++) % MOST] =
        (struct rnl_socket_error){.to = vc_net_nth_addr(p->from, p->nth, p->from_port),
                                  .kind = p->kind == NET_REFUSED ? RNL_SOCKET_ERROR_REFUSED : RNL_SOCKET_ERROR_TOO_LONG,
                                  .value = p->value};
}

void net_socket_take(struct vc_net *net, struct net_packet *p)
{
    struct net_socket *k = find(net, p->to, p->to_port);
    if (p->kind != NET_DATA) {
        if (k)
            note_error(k, p);
        net_packet_free(net, p);
        return;
    }
    if (!k) {
        net_tell(net, p, NET_REFUSED, p->to, 0);
        net_drop(net, p, NULL, VC_NET_DROP_PORT);
        return;
    }
    if (k->charged + rnl_socket_charge(p->bytes) > k->s.receive_bytes) {
        net_drop(net, p, NULL, VC_NET_DROP_RECEIVE);
        return;
    }
    k->charged += rnl_socket_charge(p->bytes);
    net->counts.delivered++;
    rnl_sim_note_bytes(net->sim, NET_NOTE_DELIVERED, p->to,
                       (uint64_t)p->from << 32 | (uint64_t)p->from_port << 16 | (uint64_t)p->nth << 8 | p->ecn, p->data,
                       p->bytes);
    net_tap(net, VC_NET_TAP_DELIVERED, p->to, p, NULL, VC_NET_DROP_NONE);
    p->next = NULL;
    if (k->first)
        k->last->next = p;
    else
        k->first = p;
    k->last = p;
    if (k->armed) {
        k->armed = 0;
        if (k->ring)
            k->ring(k->arg);
    }
}

static struct net_packet *take_first(struct net_socket *k)
{
    struct net_packet *p = k->first;
    k->first = p->next;
    k->charged -= rnl_socket_charge(p->bytes);
    return p;
}

/* Like the one before, so that both can be one run. */
static bool follows(const struct net_socket *k, const struct net_packet *p, const struct rnl_socket_in *in,
                    uint32_t segment, uint32_t segments)
{
    const struct rnl_socket_addr from = vc_net_nth_addr(p->from, p->nth, p->from_port);
    return !k->plain && segment && in->bytes % segment == 0 && p->bytes && p->bytes <= segment &&
           segments < RUN_SEGMENTS && in->bytes + p->bytes <= in->room && in->bytes + p->bytes <= RUN_BYTES &&
           (k->s.has_ecn ? p->ecn : 0) == in->ecn && rnl_socket_addr_equal(&from, &in->from);
}

static void receive_run(struct net_socket *k, struct rnl_socket_in *in)
{
    struct net_packet *p = take_first(k);
    uint32_t segment = p->bytes, segments = 1;
    in->bytes = p->bytes < in->room ? p->bytes : in->room;
    in->cut = in->bytes < p->bytes;
    in->segment = 0;
    in->ecn = k->s.has_ecn ? p->ecn : 0;
    in->from = vc_net_nth_addr(p->from, p->nth, p->from_port);
    memcpy(in->at, p->data, in->bytes);
    net_packet_free(k->net, p);
    while (!in->cut && k->first && follows(k, k->first, in, segment, segments)) {
        p = take_first(k);
        memcpy((unsigned char *)in->at + in->bytes, p->data, p->bytes);
        in->bytes += p->bytes;
        in->segment = (uint16_t)segment;
        segments++;
        net_packet_free(k->net, p);
    }
}

static int socket_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct net_socket *k = of(s);
    int got = 0;
    while (got < n && k->first)
        receive_run(k, &in[got++]);
    return got;
}

static int socket_error(struct rnl_socket *s, struct rnl_socket_error *out)
{
    struct net_socket *k = of(s);
    if (k->errors == 0)
        return 0;
    *out = k->error[k->error_first++ % (sizeof k->error / sizeof *k->error)];
    k->errors--;
    return 1;
}

static int socket_arm(struct rnl_socket *s)
{
    struct net_socket *k = of(s);
    if (k->first)
        return 1;
    if (k->drain)
        k->drain(k->arg);
    k->armed = 1;
    return 0;
}

static int socket_fd(struct rnl_socket *s)
{
    struct net_socket *k = of(s);
    if (!k->fd)
        return rnl_fail(RNL_ERR_UNSUPPORTED, "this virtual host has no descriptors to wait on");
    return k->fd(k->arg);
}

static void socket_close(struct rnl_socket *s)
{
    net_socket_end(of(s));
}

static const struct rnl_socket_ops socket_ops = {
    .size = sizeof socket_ops,
    .send = socket_send,
    .recv = socket_recv,
    .error = socket_error,
    .arm = socket_arm,
    .fd = socket_fd,
    .close = socket_close,
};

/* ---- begin and end ---- */

static uint32_t longest_of(const struct vc_net *net, uint32_t host)
{
    uint32_t link = net->host[host].first_link;
    uint32_t bytes = link < net->links ? net_longest(net->link[link]) : NO_LINK_MTU - VC_NET_HEADERS;
    return bytes < RUN_BYTES ? bytes : RUN_BYTES;
}

void net_host_limits(struct vc_net *net, uint32_t host)
{
    for (struct net_socket *k = net->host[host].sockets; k; k = k->next)
        k->s.datagram_max = longest_of(net, host);
}

static int free_port(struct vc_net *net, uint32_t host)
{
    struct net_host *h = &net->host[host];
    for (int tries = 0; tries < 65536 - PORT_FIRST; tries++) {
        if (h->next_port < PORT_FIRST)
            h->next_port = PORT_FIRST;
        uint16_t port = h->next_port++;
        if (!find(net, host, port))
            return port;
    }
    return 0;
}

void vc_net_host_receive_max(struct vc_net *net, uint32_t host, uint32_t bytes)
{
    net->host[host].receive_max = bytes;
}

static uint32_t receive_bytes(const struct net_host *h, const struct vc_net_socket_config *config)
{
    uint32_t most = h->receive_max ? h->receive_max : VC_NET_RECEIVE_MAX;
    if (config->receive_asked)
        return 2 * (config->receive_asked < most ? config->receive_asked : most);
    return config->receive_bytes ? config->receive_bytes : VC_NET_RECEIVE_BYTES;
}

int vc_net_socket_open(struct vc_net *net, uint32_t host, const struct vc_net_socket_config *config,
                       struct rnl_socket **out)
{
    if (host >= net->hosts)
        return rnl_fail(RNL_ERR_ARG, "a socket on host %u: there are hosts 0 to %u", host, net->hosts - 1);
    if (config->port && find(net, host, config->port))
        return rnl_fail(RNL_ERR_ARG, "port %u of host %u is taken", config->port, host);
    int port = config->port ? config->port : free_port(net, host);
    if (port == 0)
        return rnl_fail(RNL_ERR_ARG, "host %u has no free port", host);
    struct net_socket *k = calloc(1, sizeof *k);
    if (!k)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a socket");
    k->net = net;
    k->host = host;
    k->port = (uint16_t)port;
    k->plain = config->plain;
    k->ring = config->ring;
    k->fd = config->fd;
    k->drain = config->drain;
    k->arg = config->arg;
    k->send_bytes = config->send_bytes ? config->send_bytes : VC_NET_SEND_BYTES;
    k->s.ops = &socket_ops;
    k->s.self = vc_net_addr(host, k->port);
    k->s.datagram_max = longest_of(net, host);
    k->s.segments_max = config->plain ? 1 : RUN_SEGMENTS;
    k->s.segment_bytes = config->plain ? k->s.datagram_max : RUN_BYTES;
    k->s.merged_bytes = config->plain ? k->s.datagram_max : RUN_BYTES;
    k->s.receive_bytes = receive_bytes(&net->host[host], config);
    k->s.has_ecn = !config->blind;
    k->s.has_fd = config->fd != NULL;
    k->next = net->host[host].sockets;
    net->host[host].sockets = k;
    *out = &k->s;
    return 0;
}

void net_socket_end(struct net_socket *k)
{
    struct vc_net *net = k->net;
    struct net_socket **at = &net->host[k->host].sockets;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    while (k->first)
        net_packet_free(net, take_first(k));
    /* What it sent goes on without it. */
    for (uint32_t i = 0; i < net->links; i++)
        if (net->link[i]->from == k->host)
            for (struct net_packet *p = net->link[i]->queue_first; p; p = p->behind)
                if (p->socket == k)
                    p->socket = NULL;
    free(k);
}

void vc_net_socket_kill(struct rnl_socket *s)
{
    net_socket_end(of(s));
}
