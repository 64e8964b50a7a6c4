/* SPDX-License-Identifier: BSD-3-Clause
 *
 * socket.c - see socket.h. */
#include "sim/cluster/socket.h"

#include "sim/cluster/inside.h"
#include "sim/cluster/net.h"

#include "base/error.h"
#include "transport/udp/kernel.h"

#include <stdlib.h>

enum { SEND_NS = 1000, RECEIVE_NS = 500 }; /* a system call that has something to do */

struct vsocket {
    struct rnl_socket s;      /* first */
    struct rnl_socket *inner; /* NULL: killed */
    struct rnl_guest *guest;
    struct rnl_socket **owner;
};

static struct vsocket *of(struct rnl_socket *s)
{
    return (struct vsocket *)(void *)s;
}

/* What is known of the way may have changed in a call. */
static void learn(struct vsocket *v)
{
    v->s.datagram_max = v->inner->datagram_max;
    v->s.segments_max = v->inner->segments_max;
    v->s.segment_bytes = v->inner->segment_bytes;
    v->s.merged_bytes = v->inner->merged_bytes;
}

static int vsocket_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct vsocket *v = of(s);
    *result = (struct rnl_socket_result){.stop = RNL_SOCKET_WENT};
    rnl_cluster_step(v->guest);
    if (v->inner == NULL)
        return n;
    rnl_cluster_use(v->guest, SEND_NS);
    int went = v->inner->ops->send(v->inner, out, n, result);
    learn(v);
    return went;
}

static int vsocket_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct vsocket *v = of(s);
    rnl_cluster_step(v->guest);
    int came = v->inner ? v->inner->ops->recv(v->inner, in, n) : 0;
    if (came > 0) {
        learn(v);
        rnl_cluster_use(v->guest, RECEIVE_NS);
    }
    return came;
}

static int vsocket_error(struct rnl_socket *s, struct rnl_socket_error *out)
{
    struct vsocket *v = of(s);
    return v->inner ? v->inner->ops->error(v->inner, out) : 0;
}

static int vsocket_arm(struct rnl_socket *s)
{
    struct vsocket *v = of(s);
    rnl_cluster_step(v->guest);
    return v->inner ? v->inner->ops->arm(v->inner) : 0;
}

static int vsocket_fd(struct rnl_socket *s)
{
    (void)s;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "the virtual cluster has no descriptors to wait on: use rnl_wait or FM_wait");
}

static void vsocket_close(struct rnl_socket *s)
{
    struct vsocket *v = of(s);
    if (v->inner != NULL)
        v->inner->ops->close(v->inner);
    *v->owner = NULL;
    free(v);
}

static const struct rnl_socket_ops vsocket_ops = {
    .size = sizeof vsocket_ops,
    .send = vsocket_send,
    .recv = vsocket_recv,
    .error = vsocket_error,
    .arm = vsocket_arm,
    .fd = vsocket_fd,
    .close = vsocket_close,
};

/* Something came to a socket that was armed: as the kernel would, it wakes who sleeps on it. */
static void ring(void *arg)
{
    struct rnl_guest *g = arg;
    struct rnl_cluster *c = g->cluster;
    atomic_fetch_add_explicit(&rnl_vagent_bell(c->agent, g->rank)->word, 1, memory_order_relaxed);
    rnl_venv_rung(c, g->rank);
}

struct rnl_socket_addr rnl_vsocket_addr(const struct rnl_guest *g)
{
    return rnl_vsocket_nth_addr(g, 0);
}

struct rnl_socket_addr rnl_vsocket_nth_addr(const struct rnl_guest *g, unsigned nth)
{
    return rnl_net_nth_addr(g->host->index, nth, (uint16_t)(RNL_PORT_FIRST + g->rank - g->host->first_rank));
}

int rnl_vsocket_open(struct rnl_guest *g, struct rnl_socket **out)
{
    struct vsocket *v = calloc(1, sizeof *v);
    const struct rnl_net_socket_config config = {
        .port = rnl_vsocket_addr(g).port, .ring = ring, .arg = g, .receive_asked = RNL_KERNEL_RECEIVE_BYTES};
    if (v == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a socket");
    int status = rnl_net_socket_open(g->cluster->net, g->host->index, &config, &v->inner);
    if (status < 0) {
        free(v);
        return status;
    }
    v->s = *v->inner;
    v->s.ops = &vsocket_ops;
    v->s.has_fd = 0;
    v->guest = g;
    v->owner = out;
    *out = &v->s;
    return 0;
}

void rnl_vsocket_kill(struct rnl_socket *s)
{
    struct vsocket *v = of(s);
    if (v->inner != NULL)
        rnl_net_socket_kill(v->inner);
    v->inner = NULL;
}
