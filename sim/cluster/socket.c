/* SPDX-License-Identifier: BSD-3-Clause
 *
 * socket.c - the socket of a rank on the virtual network. */

#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/net.h"

#include "base/error.h"
#include "net/socket/kernel.h"

#include <stdlib.h>

enum { SEND_NS = 1000, RECEIVE_NS = 500 }; /* a system call that has something to do */

struct vsocket {
    struct rnl_socket s;      /* first */
    struct rnl_socket *inner; /* NULL: killed */
    struct vc_process *process;
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

static int vc_socket_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n,
                          struct rnl_socket_result *result)
{
    struct vsocket *v = of(s);
    *result = (struct rnl_socket_result){.stop = RNL_SOCKET_WENT};
    vc_env_step(v->process);
    if (!v->inner)
        return n;
    vc_env_use(v->process, SEND_NS);
    int went = v->inner->ops->send(v->inner, out, n, result);
    learn(v);
    return went;
}

static int vc_socket_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct vsocket *v = of(s);
    vc_env_step(v->process);
    int came = v->inner ? v->inner->ops->recv(v->inner, in, n) : 0;
    if (came > 0) {
        learn(v);
        vc_env_use(v->process, RECEIVE_NS);
    }
    return came;
}

static int vc_socket_error(struct rnl_socket *s, struct rnl_socket_error *out)
{
    struct vsocket *v = of(s);
    return v->inner ? v->inner->ops->error(v->inner, out) : 0;
}

static int vc_socket_arm(struct rnl_socket *s)
{
    struct vsocket *v = of(s);
    vc_env_step(v->process);
    return v->inner ? v->inner->ops->arm(v->inner) : 0;
}

static int vc_socket_fd(struct rnl_socket *s)
{
    (void)s;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "the virtual cluster has no descriptors to wait on: use rnl_wait");
}

static void vc_socket_close(struct rnl_socket *s)
{
    struct vsocket *v = of(s);
    if (v->inner)
        v->inner->ops->close(v->inner);
    *v->owner = NULL;
    free(v);
}

static const struct rnl_socket_ops vc_socket_ops = {
    .size = sizeof vc_socket_ops,
    .send = vc_socket_send,
    .recv = vc_socket_recv,
    .error = vc_socket_error,
    .arm = vc_socket_arm,
    .fd = vc_socket_fd,
    .close = vc_socket_close,
};

/* Something came to a socket that was armed: as the kernel would, it wakes who sleeps on it. */
static void ring(void *arg)
{
    struct vc_process *vp = arg;
    struct vc_cluster *c = vp->cluster;
    atomic_fetch_add_explicit(&vc_agent_bell(c->agent, vp->rank)->word, 1, memory_order_relaxed);
    vc_env_rung(c, vp->rank);
}

struct rnl_socket_addr vc_socket_addr(const struct vc_process *vp)
{
    return vc_socket_nth_addr(vp, 0);
}

struct rnl_socket_addr vc_socket_nth_addr(const struct vc_process *vp, unsigned nth)
{
    return vc_net_nth_addr(vp->host->index, nth, (uint16_t)(VC_PORT_FIRST + vp->rank - vp->host->first_rank));
}

static int open_at(struct vc_process *vp, uint16_t port, void (*ring_it)(void *arg), void *arg, struct rnl_socket **out)
{
    struct vsocket *v = calloc(1, sizeof *v);
    const struct vc_net_socket_config config = {
        .port = port, .ring = ring_it, .arg = arg, .receive_asked = RNL_KERNEL_RECEIVE_BYTES};
    if (!v)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a socket");
    int status = vc_net_socket_open(vp->cluster->net, vp->host->index, &config, &v->inner);
    if (status < 0) {
        free(v);
        return status;
    }
    v->s = *v->inner;
    v->s.ops = &vc_socket_ops;
    v->s.has_fd = 0;
    v->process = vp;
    v->owner = out;
    *out = &v->s;
    return 0;
}

int vc_socket_open(struct vc_process *vp, struct rnl_socket **out)
{
    return open_at(vp, vc_socket_addr(vp).port, ring, vp, out);
}

int vc_socket_open_any(struct vc_process *vp, void (*ring_it)(void *arg), void *arg, uint16_t *port,
                       struct rnl_socket **out)
{
    const uint16_t next = (uint16_t)(VC_PORT_ALONE + vp->host->ports++ % VC_PORTS_ALONE);
    int status = open_at(vp, next, ring_it, arg, out);
    if (status == 0)
        *port = next;
    return status;
}

void vc_socket_kill(struct rnl_socket *s)
{
    struct vsocket *v = of(s);
    if (v->inner)
        vc_net_socket_kill(v->inner);
    v->inner = NULL;
}
